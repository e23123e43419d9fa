package iptables

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"syscall"

	"gridproxy/rules/netfilter"
)

// toolSuffixes are those of the programs of one variant and family.
var toolSuffixes = [...]string{"", "-restore", "-save"}

// fileID changes whenever a package upgrade replaces a file or the target of a link. The zero value
// is that of a file that does not exist.
type fileID struct {
	dev, inode uint64
	size       int64
	modified   syscall.Timespec
}

func identify(path string) fileID {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}
	}
	id := fileID{size: info.Size()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		id.dev, id.inode, id.modified = s.Dev, s.Ino, s.Mtim
	}
	return id
}

// toolFiles are the files of programs, by path.
type toolFiles map[string]fileID

// resolveTools finds the programs of one variant and family: paths by suffix, and their files.
func resolveTools(v netfilter.Variant, f netfilter.Family) (paths map[string]string, files toolFiles, err error) {
	paths, files = map[string]string{}, toolFiles{}
	for _, suffix := range toolSuffixes {
		path, err := findTool(toolName(v, f, suffix))
		if err != nil {
			return nil, nil, err
		}
		paths[suffix], files[path] = path, identify(path)
	}
	return paths, files, nil
}

// current reports whether the programs still have these files.
func (files toolFiles) current(v netfilter.Variant, f netfilter.Family) bool {
	_, now, err := resolveTools(v, f)
	return err == nil && maps.Equal(files, now)
}

// probeVersion asks a tool for its version. A tool of the other variant is an error: the rules of
// both would be in force.
func probeVersion(ctx context.Context, tool command, v netfilter.Variant) (version, error) {
	found, err := tool.version(ctx)
	if err != nil {
		return version{}, fmt.Errorf("probing %s: %w", tool.path, err)
	}
	if found.variant != "" && found.variant != v {
		return version{}, fmt.Errorf("%s says that it is iptables-%s: reinstall the package iptables; nothing is written, "+
			"because rules of both variants would be in force", tool.path, found.variant)
	}
	return found, nil
}

// refresh opens the kernel again if the programs were replaced. Broken programs are an error, and
// the rules in force stay.
func (k *familySyncer) refresh(ctx context.Context) error {
	old := k.kernel
	if old.files == nil || old.files.current(old.variant, old.family) {
		return nil
	}
	fresh, err := findKernel(ctx, old.variant, old.family)
	if err == nil {
		err = fresh.probe(ctx)
	}
	if err != nil && !isUnreadable(err) {
		return fmt.Errorf("the programs of iptables were removed or replaced; the rules in force stay: %w", err)
	}
	k.kernel, k.mark = fresh, watermark{}
	k.log.Info("the programs of iptables were replaced", "before", old.version.String(), "now", fresh.version.String())
	return nil
}

// generalTool returns the program iptables that other programs on this machine call, of
// whichever variant; "" = it is not installed.
func generalTool() (path string, file fileID) {
	path, err := exec.LookPath("iptables")
	if err != nil {
		return "", fileID{}
	}
	return path, identify(path)
}

// noticeSwitch warns when the machine's iptables has become another variant, for example by
// update-alternatives. Our rules keep their variant: rules of both would be in force otherwise.
func (b *Backend) noticeSwitch(ctx context.Context) {
	path, file := generalTool()
	if file == b.general {
		return
	}
	b.general = file
	if path == "" {
		return
	}
	v, err := command{path: path}.version(ctx)
	if err != nil || v.variant == "" || v.variant == b.variant {
		return
	}
	b.config.Log.Warn("the program iptables of this machine is now of another variant than our rules; they stay in force in their own variant; "+
		"to switch, stop gridproxy, run gridproxy cleanup, and start gridproxy again", "iptables", string(v.variant), "gridproxy", string(b.variant))
}

// toolName returns the name of a program of one variant and family; suffix is "", "-save" or
// "-restore".
func toolName(v netfilter.Variant, f netfilter.Family, suffix string) string {
	name := "iptables-"
	if f == netfilter.IPv6 {
		name = "ip6tables-"
	}
	return name + string(v) + suffix
}

func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not on this machine: install the package iptables (Debian: apt-get install iptables): %w", name, err)
	}
	return path, nil
}
