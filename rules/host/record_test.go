package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const closeWaitFile = conntrackDir + "nf_conntrack_tcp_timeout_close_wait"

// TestChangesAreLoggedAndRestored: each setting is logged with its old and new value; after any
// number of starts the values from before the first one come back, except where another program
// has had its way since.
func TestChangesAreLoggedAndRestored(t *testing.T) {
	const udp = conntrackDir + "nf_conntrack_udp_timeout"
	before := map[string]string{closeWaitFile: "60", udp: "30", routeLocalnetFile: "0", conntrackMaxFile: "65536", hashsizeFile: "16384"}
	m := machine(t, before)
	var text bytes.Buffer
	m.Log = slog.New(slog.NewTextHandler(&text, nil))
	for _, seconds := range []int{100, 200} { // two starts with other flags
		want := Sysctls{MaxPerCore: 1, Min: 400000, TCPTimeoutCloseWait: time.Duration(seconds) * time.Second, UDPTimeout: time.Minute}
		for _, w := range m.Apply(t.Context(), want) {
			t.Error(w)
		}
		must(t, m.RouteLocalnet())
	}
	for _, want := range []string{
		`setting="sysctl net.netfilter.nf_conntrack_tcp_timeout_close_wait" old=60 new=100`,
		`setting="sysctl net.netfilter.nf_conntrack_tcp_timeout_close_wait" old=100 new=200`,
		`setting="sysctl net.ipv4.conf.all.route_localnet" old=0 new=1`,
		`setting=/sys/module/nf_conntrack/parameters/hashsize old=16384 new=100000`,
	} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("the log says %q %d times, want 1:\n%s", want, strings.Count(text.String(), want), text.String())
		}
	}
	must(t, os.WriteFile(m.path(udp), []byte("77"), 0o644)) // an administrator
	would, err := m.Restorable()
	must(t, err)
	if recorded, err := m.Recorded(); err != nil || len(recorded) != len(before) {
		t.Errorf("after a dry run %v are recorded, %v", recorded, err)
	}
	done, err := m.Restore()
	must(t, err)
	if !slices.Equal(would, done) {
		t.Errorf("a dry run says %v, and then %v are restored", would, done)
	}
	if len(done) != len(before) {
		t.Errorf("restored %v, want %d settings", done, len(before))
	}
	before[udp] = "77"
	m.expect(t, before)
	if left, err := m.Recorded(); err != nil || len(left) > 0 {
		t.Errorf("still recorded: %v, %v", left, err)
	}
	if again, err := m.Restore(); err != nil || len(again) > 0 {
		t.Errorf("restored again: %v, %v", again, err)
	}
}

// TestValuesOfAnotherProgramAreOld: what another program has set in between is what is restored.
func TestValuesOfAnotherProgramAreOld(t *testing.T) {
	m := machine(t, map[string]string{closeWaitFile: "60"})
	for _, by := range []string{"60", "90"} {
		must(t, os.WriteFile(m.path(closeWaitFile), []byte(by), 0o644))
		m.Apply(t.Context(), Sysctls{TCPTimeoutCloseWait: time.Hour})
	}
	_, err := m.Restore()
	must(t, err)
	m.expect(t, map[string]string{closeWaitFile: "90"})
}

// TestChangeThatDidNotTakePlace: a crash between the record and the second change of a setting, or
// a kernel that refuses it, does not lose the value from before the first one.
func TestChangeThatDidNotTakePlace(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		m := machine(t, map[string]string{closeWaitFile: "60"})
		m.Apply(t.Context(), Sysctls{TCPTimeoutCloseWait: 100 * time.Second})
		must(t, m.record(closeWaitFile, 100, 200)) // and no change
		if restarted {
			m.Apply(t.Context(), Sysctls{TCPTimeoutCloseWait: 300 * time.Second})
		}
		done, err := m.Restore()
		must(t, err)
		if len(done) != 1 || !done[0].Done {
			t.Errorf("restarted %t: restored %+v", restarted, done)
		}
		m.expect(t, map[string]string{closeWaitFile: "60"})
	}
}

// TestBadRecords: a record that is damaged, too large, or names other files is an error that writes
// nothing, and does not keep a start from its settings.
func TestBadRecords(t *testing.T) {
	for name, text := range map[string]string{
		"cut off":     `[{"name":"` + closeWaitFile + `","old":60,`,
		"other files": `[{"name":"proc/sys/kernel/core_pattern","old":1,"new":60}]`,
		"a way out":   `[{"name":"` + conntrackDir + `../../kernel/x","old":1,"new":60}]`,
		"too large":   `[` + strings.Repeat(" ", recordMax) + `]`,
		"too many":    `[` + strings.Repeat(`{"name":"`+ipForwardFile+`"},`, recordedMax) + `{}]`,
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t, map[string]string{closeWaitFile: "60", "proc/sys/kernel/core_pattern": "60", "proc/sys/kernel/x": "60"})
			file, err := m.recordFile()
			must(t, err)
			must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			must(t, os.WriteFile(file, []byte(text), 0o600))
			if done, err := m.Restore(); err == nil || len(done) > 0 {
				t.Errorf("restored %v, %v; want an error", done, err)
			}
			m.expect(t, map[string]string{closeWaitFile: "60", "proc/sys/kernel/core_pattern": "60", "proc/sys/kernel/x": "60"})
			if w := m.Apply(t.Context(), Sysctls{TCPTimeoutCloseWait: time.Hour}); len(w) > 0 {
				t.Error(w)
			}
			m.expect(t, map[string]string{closeWaitFile: "3600"})
		})
	}
}

// TestRecordIsForRootOnly: whoever could write the record would choose what is restored.
func TestRecordIsForRootOnly(t *testing.T) {
	m := machine(t, map[string]string{closeWaitFile: "60"})
	file, err := m.recordFile()
	must(t, err)
	for _, seconds := range []int{100, 200} {
		m.Apply(t.Context(), Sysctls{TCPTimeoutCloseWait: time.Duration(seconds) * time.Second})
		info, err := os.Stat(file)
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("the record has mode %v, want 0600", info.Mode())
		}
		must(t, os.Chmod(file, 0o666))
	}
}

// TestRecordsAreBounded: namespaces come and go, their records do not pile up.
func TestRecordsAreBounded(t *testing.T) {
	m := machine(t, map[string]string{closeWaitFile: "60"})
	dir := m.path(strings.TrimPrefix(RecordDir, "/"))
	must(t, os.MkdirAll(dir, 0o755))
	for i := range 3 * recordsMax {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("settings-%d.json", 1_000_000+i)), nil, 0o600))
	}
	m.Apply(t.Context(), Sysctls{TCPTimeoutCloseWait: time.Hour})
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) > recordsMax {
		t.Errorf("%d records, want at most %d", len(entries), recordsMax)
	}
	if all, err := m.Recorded(); err != nil || len(all) != 1 {
		t.Errorf("recorded %v, %v; want this change", all, err)
	}
}
