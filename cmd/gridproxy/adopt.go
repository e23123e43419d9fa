package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology/regularfile"

	"github.com/spf13/pflag"
)

// procDir is where the kernel lists processes.
const procDir = "/proc"

// runningDaemon is a process with the command line `gridproxy run`.
type runningDaemon struct {
	process int
	flags   []string
}

// runningDaemons returns process 1 if that is a daemon, else the daemons in the network and
// mount namespaces of this process, by number: in others a daemon writes other rules, and its
// paths are other files. Any user can start a process with any command line, and flags name
// files that are trusted, so of these only processes of this one's user count.
func runningDaemons(proc string) []runningDaemon {
	if flags := daemonFlags(filepath.Join(proc, "1", "cmdline")); flags != nil {
		return []runningDaemon{{1, flags}}
	}
	entries, _ := os.ReadDir(proc) // without /proc no daemon is found
	var found []runningDaemon
	for _, e := range entries {
		process, err := strconv.Atoi(e.Name())
		if err != nil || !sharesNamespaces(proc, e.Name()) {
			continue
		}
		flags := daemonFlags(filepath.Join(proc, e.Name(), "cmdline"))
		if flags != nil && isOurUsers(filepath.Join(proc, e.Name(), "status")) {
			found = append(found, runningDaemon{process, flags})
		}
	}
	slices.SortFunc(found, func(a, b runningDaemon) int { return a.process - b.process })
	return found
}

// isOurUsers reports whether a process belongs to the user of this one, by its file status in
// /proc. The real, effective, saved and file system user all have to match: a setuid program keeps
// the user that started it as its real user.
func isOurUsers(file string) bool {
	text, err := regularfile.Read(file, commandLineMax)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if users, found := strings.CutPrefix(line, "Uid:"); found {
			us := strconv.Itoa(os.Geteuid())
			return slices.Equal(strings.Fields(users), []string{us, us, us, us})
		}
	}
	return false
}

func sharesNamespaces(proc, process string) bool {
	for _, namespace := range []string{"net", "mnt"} {
		own, err := os.Readlink(filepath.Join(proc, "self", "ns", namespace))
		if err != nil {
			return false
		}
		if other, err := os.Readlink(filepath.Join(proc, process, "ns", namespace)); err != nil || other != own {
			return false
		}
	}
	return true
}

// daemonFlags returns the flags of a running daemon, by the file with its command line. It
// returns nil if the process is no daemon, or its command line cannot be read.
func daemonFlags(file string) []string {
	text, err := regularfile.Read(file, commandLineMax)
	if err != nil {
		return nil
	}
	return flagsOf(text)
}

// flagsOf returns the flags of a daemon in a command line from /proc, in which a zero byte ends
// each word: empty, but not nil, if it has none. It returns nil for another command line, such
// as that of a run with --cleanup, which is no daemon.
func flagsOf(text []byte) []string {
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	if len(words) < 2 || path.Base(words[0]) != "gridproxy" || words[1] != "run" {
		return nil
	}
	if o, err := optionsOf(words[2:]); err == nil && o.Ends() {
		return nil
	}
	return words[2:]
}

// optionsOf returns the options of a daemon with these flags. It does not read its --config.
func optionsOf(words []string) (options.Options, error) {
	o := options.Defaults()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	err := flags.Parse(words)
	return o, err
}

// adoption is how a command takes over the flags of the running daemon.
type adoption struct {
	own      []string // flags of the command itself, which no daemon has
	required bool     // warn if there is neither a flag nor a daemon
}

// from sets flags to those of the running daemon, unless flags other than the command's own are
// given. It returns that daemon, or one with process 0 if it took over no flag. It also takes
// over none, and warns, if several daemons run, or if none does and one is required.
func (a adoption) from(flags *pflag.FlagSet, proc string, warn func(string)) (runningDaemon, error) {
	others := false
	own := map[string]string{}
	flags.Visit(func(f *pflag.Flag) {
		if slices.Contains(a.own, f.Name) {
			own[f.Name] = f.Value.String()
		} else {
			others = true
		}
	})
	if others {
		return runningDaemon{}, nil
	}
	found := runningDaemons(proc)
	switch {
	case len(found) > 1:
		var processes []string
		for _, d := range found {
			processes = append(processes, strconv.Itoa(d.process))
		}
		warn(fmt.Sprintf("several daemons run here, processes %s, so that no flags are taken over; give the flags of one of them", strings.Join(processes, ", ")))
		return runningDaemon{}, nil
	case len(found) == 0 && a.required:
		warn("there are no flags, and no gridproxy run was found here to take them from: the rules are compared with those of a daemon without flags; give the flags of the daemon")
		return runningDaemon{}, nil
	case len(found) == 0:
		return runningDaemon{}, nil
	}
	if err := flags.Parse(found[0].flags); err != nil {
		return runningDaemon{}, fmt.Errorf("taking over the flags of process %d, because there are none on the command line: %w", found[0].process, err)
	}
	for name, value := range own {
		if err := flags.Set(name, value); err != nil {
			return runningDaemon{}, err
		}
	}
	return found[0], nil
}
