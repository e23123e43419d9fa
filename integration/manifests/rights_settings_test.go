package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gridproxy/rules/host"
)

// TestSettings: docs/security.md lists the settings of the kernel that the init container writes, no fewer and no more. What is not
// listed is not there on a machine that has the listed ones only, and so is an error; what is listed must have been written.
func TestSettings(t *testing.T) {
	files := map[string][]string{}
	for _, row := range tableUnder(t, textOf(t, "../../docs/security.md"), "What the init container changes") {
		for _, setting := range codes(row[0]) {
			files[row[1]] = append(files[row[1]], fileOf(setting))
		}
	}
	for mode, apply := range map[string]func(host.Machine) error{
		"any": func(m host.Machine) error {
			return errors.Join(append(m.Apply(t.Context(), everySetting(t)), m.RouteLocalnet())...)
		},
		"ipvs": func(m host.Machine) error {
			settings, err := m.ApplyIPVS(true)
			return errors.Join(append(settings.Warnings, err)...)
		},
	} {
		m := host.Machine{Root: t.TempDir()}
		for _, f := range files[mode] {
			path := filepath.Join(m.Root, f)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("0\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := apply(m); err != nil {
			t.Errorf("mode %s writes more than docs/security.md lists: %v", mode, err)
		}
		for _, f := range files[mode] {
			if now, err := os.ReadFile(filepath.Join(m.Root, f)); err != nil || strings.TrimSpace(string(now)) == "0" {
				t.Errorf("mode %s: docs/security.md lists %s, which is not written (%q, %v)", mode, f, now, err)
			}
		}
		delete(files, mode)
	}
	if len(files) > 0 {
		t.Errorf("docs/security.md lists settings of modes that there are not: %v", files)
	}
}

// fileOf is where a setting is; one that is no path is a sysctl.
func fileOf(setting string) string {
	if strings.HasPrefix(setting, "/") {
		return setting
	}
	return "/proc/sys/" + strings.ReplaceAll(setting, ".", "/")
}

// everySetting asks for all that there is to be set, of fields that come later too.
func everySetting(t *testing.T) host.Sysctls {
	t.Helper()
	var s host.Sysctls
	fields := reflect.ValueOf(&s).Elem()
	for i := range fields.NumField() {
		switch f := fields.Field(i).Addr().Interface().(type) {
		case *int:
			*f = 1000
		case *bool:
			*f = true
		case *time.Duration:
			*f = time.Hour
		default:
			t.Fatalf("host.Sysctls.%s is a %T: say here how to ask for it", fields.Type().Field(i).Name, f)
		}
	}
	return s
}
