package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Archive is a Debian archive, read by apt with a configuration and a state of its own, so
// that neither the machine's packages nor its sources matter.
type Archive struct {
	Mirror, Security string // Security "" = no security updates
	Suite, Keyring   string
	Cache            string // folder
	MaxAge           time.Duration
}

// Package is a package in the cache.
type Package struct {
	Name, Version string
	File          string // the .deb
}

// Fetch brings packages, and all that these depend on, into the cache, and returns all of them.
// Every file that it fetches has the checksum that the signed release file names.
func (a Archive) Fetch(ctx context.Context, arch Arch, names ...string) ([]Package, error) {
	if _, err := os.Stat(a.Keyring); err != nil {
		return nil, fmt.Errorf("the keys of Debian's archive are missing: install debian-archive-keyring, or give -keyring: %w", err)
	}
	dir := filepath.Join(a.Cache, a.Suite+"-"+arch.Debian)
	if a.Security == "" {
		dir += "-point-release"
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	config, err := a.configure(ctx, dir, arch)
	if err != nil {
		return nil, fmt.Errorf("configuring apt: %w", err)
	}
	if err := a.update(ctx, config, filepath.Join(dir, "updated")); err != nil {
		return nil, err
	}
	install := append([]string{"install", "--yes", "--no-install-recommends"}, names...)
	planned, err := apt(ctx, config, append([]string{"--simulate"}, install...)...)
	if err != nil {
		return nil, fmt.Errorf("finding what %s depend on: %w", strings.Join(names, ", "), err)
	}
	packages := parsePlan(planned, filepath.Join(dir, "cache", "archives"))
	if len(packages) == 0 {
		return nil, fmt.Errorf("apt-get would install nothing: %s", planned)
	}
	if !allThere(packages) {
		if _, err := apt(ctx, config, append([]string{"--download-only"}, install...)...); err != nil {
			return nil, fmt.Errorf("fetching packages: %w", err)
		}
	}
	return packages, nil
}

// allThere reports whether the files of all packages are in the cache.
func allThere(packages []Package) bool {
	for _, p := range packages {
		if _, err := os.Stat(p.File); err != nil {
			return false
		}
	}
	return true
}

// configure writes apt's configuration into dir, and returns the path of the file. Of the
// machine's own it takes only how to reach the network: Acquire has the proxies.
func (a Archive) configure(ctx context.Context, dir string, arch Arch) (string, error) {
	for _, d := range []string{"lists/partial", "cache/archives/partial", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return "", err
		}
	}
	acquire, err := exec.CommandContext(ctx, "apt-config", "dump", "Acquire").Output()
	if err != nil {
		return "", fmt.Errorf("reading how apt reaches the network (is this Debian?): %w", err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	sources := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", a.Keyring, a.Mirror, a.Suite)
	if a.Security != "" {
		sources += fmt.Sprintf("deb [signed-by=%s] %s %s-security main\n", a.Keyring, a.Security, a.Suite)
	}
	config := string(acquire) + fmt.Sprintf(`
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "3";
APT::Architecture %[1]q;
APT::Architectures { %[1]q; };
APT::Sandbox::User "";
Dir::Etc::main "/dev/null";
Dir::Etc::parts %[2]q;
Dir::Etc::sourcelist %[3]q;
Dir::Etc::sourceparts %[2]q;
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts %[2]q;
Dir::State %[4]q;
Dir::State::status %[7]q;
Dir::State::lists %[5]q;
Dir::Cache %[6]q;
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Log "/dev/null";
`, arch.Debian, in("empty"), in("sources.list"), in(""), in("lists"), in("cache"), in("status"))
	return in("apt.conf"), errors.Join(
		os.WriteFile(in("status"), nil, 0o644), // not /dev/null: dpkg's lock stands beside it, and would be everybody's
		os.WriteFile(in("sources.list"), []byte(sources), 0o644),
		os.WriteFile(in("apt.conf"), []byte(config), 0o644))
}

// update fetches the indexes, unless the file stamp is younger than MaxAge, and renews stamp.
// Unlike apt, it fails if a mirror does: security updates would be missed.
func (a Archive) update(ctx context.Context, config, stamp string) error {
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < a.MaxAge {
		return nil
	}
	if err := os.RemoveAll(stamp); err != nil {
		return fmt.Errorf("fetching the indexes: %w", err)
	}
	if _, err := apt(ctx, config, "update", "--error-on=any"); err != nil {
		return fmt.Errorf("fetching the indexes: %w\n"+
			"(give another -mirror or -security-mirror; an empty -security-mirror does without security updates)", err)
	}
	if err := os.WriteFile(stamp, nil, 0o644); err != nil {
		return fmt.Errorf("fetching the indexes: %w", err)
	}
	return nil
}

// apt runs apt-get with the configuration file config, and returns its standard output.
func apt(ctx context.Context, config string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+config, "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("apt-get %s: %w: %s", args[0], errors.Join(err, context.Cause(ctx)), strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// plan is a line of apt-get --simulate: Inst libc6 (2.36-9 Debian:12.12/stable [amd64]).
var plan = regexp.MustCompile(`(?m)^Inst (\S+) \((\S+) .*\[(\w+)\]\)`)

func parsePlan(printed, folder string) []Package {
	var packages []Package
	for _, m := range plan.FindAllStringSubmatch(printed, -1) {
		name, version, arch := m[1], m[2], m[3]
		file := name + "_" + strings.ReplaceAll(version, ":", "%3a") + "_" + arch + ".deb"
		packages = append(packages, Package{Name: name, Version: version, File: filepath.Join(folder, file)})
	}
	return packages
}

// lock waits until no other run uses the cache in dir, and locks it until unlock is called.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}
