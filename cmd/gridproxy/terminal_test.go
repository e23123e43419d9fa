package main

import (
	"regexp"
	"strings"
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestColoursOnATerminal: words of state have colours there, unless NO_COLOR or TERM say otherwise,
// and never in a format for programs.
func TestColoursOnATerminal(t *testing.T) {
	site := "../../deploy/samples/site"
	answer := func(env []string, args ...string) string {
		cmd := gridproxy(append(args, "--manifests", site)...)
		cmd.Env = append(cmd.Env, env...)
		tty, shown := commandtest.Terminal(t)
		cmd.Stdout = tty
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(shown(), "\r\n", "\n")
	}
	piped, err := gridproxy("matrix", "--manifests", site).Output()
	if err != nil || strings.Contains(string(piped), "\x1b") {
		t.Errorf("error %v, without a terminal:\n%q", err, piped)
	}
	has := []string{"TERM=xterm", "NO_COLOR="}
	coloured := answer(has, "matrix")
	if !strings.Contains(coloured, "\x1b[31mrefused\x1b[0m") {
		t.Errorf("on a terminal:\n%q", coloured)
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(coloured, ""); got != string(piped) {
		t.Errorf("on a terminal, but for colours:\n%s\nwant\n%s", got, piped)
	}
	for what, text := range map[string]string{
		"NO_COLOR":  answer([]string{"TERM=xterm", "NO_COLOR=1"}, "matrix"),
		"TERM=dumb": answer([]string{"TERM=dumb", "NO_COLOR="}, "matrix"),
	} {
		if text != string(piped) {
			t.Errorf("with %s:\n%q", what, text)
		}
	}
	for _, format := range []string{"json", "yaml", "html"} {
		if text := answer(has, "matrix", "-o", format); strings.Contains(text, "\x1b") || text == "" {
			t.Errorf("-o %s has colours:\n%q", format, text)
		}
	}
}
