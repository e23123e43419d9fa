package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// guestConfigPath is where the first process looks for its guestConfig.
const guestConfigPath = "/vmexec.json"

type guestConfig struct {
	Args []string // the program's absolute path, then its arguments
	Dir  string   // the folder that it starts in
	Env  []string // KEY=value

	// Mark is a text that the program does not know. It precedes the exit code, so that no output of
	// the program can be taken for that.
	Mark string
}

func readGuestConfig() (guestConfig, error) {
	b, err := os.ReadFile(guestConfigPath)
	if err != nil {
		return guestConfig{}, fmt.Errorf("reading what to run: %w", err)
	}
	var c guestConfig
	if err := json.Unmarshal(b, &c); err != nil {
		return guestConfig{}, fmt.Errorf("reading %s: %w", guestConfigPath, err)
	}
	if len(c.Args) == 0 {
		return guestConfig{}, fmt.Errorf("%s names no program", guestConfigPath)
	}
	return c, nil
}

// exitLine is what the guest writes when the program has ended.
func (c guestConfig) exitLine(code int) string { return fmt.Sprintf("%s%d\n", c.prefix(), code) }

func (c guestConfig) prefix() string { return "\x01vmexec " + c.Mark + " exit " }

// ReadLine takes a line of the guest apart: what the program wrote, and the exit code if the line
// ends with one. A program's last line need not be complete.
func (c guestConfig) ReadLine(line string) (output string, code int, ended bool) {
	output, rest, found := strings.Cut(line, c.prefix())
	if !found {
		return line, 0, false
	}
	code, err := strconv.Atoi(strings.TrimSpace(rest))
	if err != nil {
		return line, 0, false
	}
	return output, code, true
}
