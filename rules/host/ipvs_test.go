package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ipvsMachine has these settings of IPVS, and the ones that strict ARP is about.
func ipvsMachine(t *testing.T, conntrack, template, reuse, nodest, forward string) Machine {
	t.Helper()
	return machine(t, map[string]string{
		ipvsDir + "conntrack": conntrack, ipvsDir + "expire_quiescent_template": template,
		ipvsDir + "conn_reuse_mode": reuse, ipvsDir + "expire_nodest_conn": nodest,
		ipForwardFile: forward, arpDir + "arp_ignore": "0", arpDir + "arp_announce": "0",
	})
}

func TestApplyIPVS(t *testing.T) {
	m := ipvsMachine(t, "0", "0", "0", "0", "0")
	settings, err := m.ApplyIPVS(false)
	if err != nil || !settings.Quiet || settings.Warnings != nil {
		t.Fatalf("%+v, %v", settings, err)
	}
	m.expect(t, map[string]string{
		ipvsDir + "conntrack": "1", ipvsDir + "expire_quiescent_template": "1",
		ipvsDir + "conn_reuse_mode": "1", ipvsDir + "expire_nodest_conn": "1",
		ipForwardFile: "1", arpDir + "arp_ignore": "0", arpDir + "arp_announce": "0",
	})
	if _, err := m.ApplyIPVS(true); err != nil {
		t.Error(err)
	}
	m.expect(t, map[string]string{arpDir + "arp_ignore": "1", arpDir + "arp_announce": "2"})
}

func TestApplyIPVSLeavesReuseMode(t *testing.T) {
	m := ipvsMachine(t, "1", "1", "2", "1", "1")
	if settings, err := m.ApplyIPVS(false); err != nil || !settings.Quiet {
		t.Errorf("%+v, %v", settings, err)
	}
	m.expect(t, map[string]string{ipvsDir + "conn_reuse_mode": "2"})
}

// TestApplyIPVSClasses: a missing setting is an error, disables draining, or is only a warning.
func TestApplyIPVSClasses(t *testing.T) {
	for _, test := range []struct {
		missing  string
		refused  bool
		quiet    bool
		warnings int
	}{
		{ipvsDir + "conntrack", true, false, 0},
		{ipForwardFile, true, false, 0},
		{ipvsDir + "expire_quiescent_template", false, false, 1},
		{ipvsDir + "conn_reuse_mode", false, false, 1},
		{ipvsDir + "expire_nodest_conn", false, false, 1},
		{arpDir + "arp_ignore", false, true, 1},
	} {
		t.Run(test.missing, func(t *testing.T) {
			m := ipvsMachine(t, "0", "0", "0", "0", "0")
			must(t, os.Remove(m.path(test.missing)))
			settings, err := m.ApplyIPVS(true)
			if (err != nil) != test.refused || settings.Quiet != test.quiet || len(settings.Warnings) != test.warnings {
				t.Fatalf("%+v, %v; want %+v", settings, err, test)
			}
			told := errors.Join(append(settings.Warnings, err)...).Error()
			for _, part := range []string{settingName(test.missing), "without it", "start with --"} {
				if !strings.Contains(told, part) {
					t.Errorf("%q does not say %q", told, part)
				}
			}
		})
	}
}

// TestApplyIPVSReuseDelay: on an old kernel, a warning says which connections are delayed.
func TestApplyIPVSReuseDelay(t *testing.T) {
	for release, delays := range map[string]bool{
		"4.18.0-553.el8.x86_64\n": true, "5.8.18\n": true, "5.9.0-rc1\n": false, "5.10.0-33-amd64\n": false, "6.12.1\n": false, "odd\n": false,
	} {
		for _, before := range []string{"0", "1"} {
			m := ipvsMachine(t, "1", "1", before, "1", "1")
			file := m.path("proc/sys/kernel/osrelease")
			must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			must(t, os.WriteFile(file, []byte(release), 0o644))
			settings, err := m.ApplyIPVS(false)
			must(t, err)
			told := errors.Join(settings.Warnings...)
			if !settings.Quiet || (told != nil) != delays || delays && !strings.Contains(told.Error(), strings.TrimSpace(release)) {
				t.Errorf("kernel %q, mode %s before: %+v, want a warning %t", release, before, settings, delays)
			}
		}
	}
}
