package iptables

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"

	"golang.org/x/sys/unix"
)

// hangingTool is a wrapper that starts a program which never ends and holds the wrapper's input and
// output. started is the file with that program's process id. It answers --version if version is
// set.
func hangingTool(t *testing.T, version string) (path, started string) {
	t.Helper()
	dir := t.TempDir()
	started = filepath.Join(dir, "pid")
	path = program(t, dir, "tool", version+"\nsh -c 'echo $$ >"+started+"; exec sleep 100000' &\nwait")
	t.Cleanup(func() {
		if pid := pidIn(started); pid > 1 && !ended(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return path, started
}

func pidIn(file string) int {
	b, _ := os.ReadFile(file)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// ended reports whether a process has ended; a zombie has.
func ended(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}

// TestHangingToolIsEnded: every program of iptables is killed at its limit, with its child
// processes. The error says so.
func TestHangingToolIsEnded(t *testing.T) {
	const limit = 300 * time.Millisecond // long enough for a shell to start another
	for name, run := range map[string]func(ctx context.Context, path string) error{
		"restore": func(ctx context.Context, path string) error {
			return restorer{path: path, limit: limit}.run(ctx, []byte("*nat\nCOMMIT\n"))
		},
		"save": func(ctx context.Context, path string) error {
			for _, err := range (saver{path: path, limit: limit}).lines(ctx, "nat") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"command": func(ctx context.Context, path string) error {
			c, err := openCommand(ctx, path, netfilter.IPv4)
			if err != nil {
				return err
			}
			c.limit = limit
			return c.newChain(ctx, render.ChainID{Table: netfilter.NAT, Chain: "KUBE-SERVICES"})
		},
		"version": func(ctx context.Context, path string) error {
			_, err := command{path: path, limit: limit}.version(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			version := ""
			if name == "command" {
				version = `[ "$1" = --version ] && echo "iptables v1.8.9 (nf_tables)" && exit`
			}
			path, started := hangingTool(t, version)
			result := make(chan error, 1)
			go func() { result <- run(t.Context(), path) }()
			err := wait.Receive(t, "the program is ended", result)
			if err == nil || !strings.Contains(err.Error(), "did not end within "+limit.String()+" and was killed") {
				t.Errorf("%v, want that it was killed at its limit", err)
			}
			wait.Until(t, "what the program started ends", func() error {
				if pid := pidIn(started); !ended(pid) {
					return fmt.Errorf("process %d goes on", pid)
				}
				return nil
			})
		})
	}
}

// TestRefusedRestoreIsProgress: a run that searches for a refused line restores many times. It must
// not look hung, and a restore that hangs must.
func TestRefusedRestoreIsProgress(t *testing.T) {
	refusing := program(t, t.TempDir(), "tool", "exit 2")
	hanging, _ := hangingTool(t, "")
	for path, c := range map[string]struct {
		limit time.Duration
		steps int
	}{refusing: {time.Minute, 1}, hanging: {500 * time.Millisecond, 0}} {
		steps := 0
		ctx := rules.WithProgress(t.Context(), func() { steps++ })
		if err := (restorer{path: path, limit: c.limit}).run(ctx, []byte("*nat\nCOMMIT\n")); err == nil {
			t.Error("a restore that failed is no error")
		}
		if steps != c.steps {
			t.Errorf("%d steps of %s, want %d", steps, path, c.steps)
		}
	}
}

// TestParseVersion: the versions in use, and texts that name none.
func TestParseVersion(t *testing.T) {
	for _, test := range []struct {
		text   string
		want   version
		random bool
	}{
		{"iptables v1.8.9 (nf_tables)\n", version{[3]int{1, 8, 9}, netfilter.VariantNFT}, true},
		{"ip6tables v1.8.11 (legacy)\n", version{[3]int{1, 8, 11}, netfilter.VariantLegacy}, true},
		{"iptables v1.6.2\n", version{[3]int{1, 6, 2}, ""}, true},
		{"iptables v1.6.1\n", version{[3]int{1, 6, 1}, ""}, false},
		{"iptables v1.4.21\n", version{[3]int{1, 4, 21}, ""}, false},
		{"iptables v2.0.0\n", version{[3]int{2, 0, 0}, ""}, true},
	} {
		got, err := parseVersion(test.text)
		if err != nil || got != test.want || got.randomFully() != test.random {
			t.Errorf("%q: %+v, %v, --random-fully %t", test.text, got, err, got.randomFully())
		}
	}
	for _, text := range []string{"", "command not found", "iptables v1.8", "iptables v1.99999999999999999999.0"} {
		if v, err := parseVersion(text); err == nil {
			t.Errorf("%q: %+v, want an error", text, v)
		}
	}
}
