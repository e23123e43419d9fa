package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// GuestTools are the programs of this machine that every guest has. What each comes with is in
// Debian's packages iptables, nftables, ipset, ipvsadm, conntrack, iproute2, kmod and
// busybox-static.
func GuestTools() []string {
	tools := []string{"nft", "ipset", "ipvsadm", "ipvsadm-save", "ipvsadm-restore", "conntrack", "ip", "busybox"}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, variant := range []string{"", "-nft", "-legacy"} {
			for _, command := range []string{"", "-save", "-restore"} {
				tools = append(tools, family+variant+command)
			}
		}
	}
	// kmod is what all of these are links to. The kernel itself calls modprobe.
	return append(tools, "xtables-monitor", "modprobe", "lsmod", "rmmod")
}

// applets are the commands that busybox stands in for.
var applets = [...]string{"sh", "cat", "ls", "sleep", "flock", "readlink", "dmesg", "ps", "kill", "mount", "grep", "basename",
	"awk", "mktemp", "rm", "env"}

// Image is a root file system of files of this machine.
type Image struct{ *Archive }

// BaseImage adds to an archive what a program may expect of any system: the tools, a shell, and the
// names of users and protocols.
func BaseImage(a *Archive) (Image, error) {
	i := Image{a}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			i.Link(dir, target)
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run", "/tmp", "/root"} {
		i.Dir(dir)
	}
	for _, file := range []string{"/etc/protocols", "/etc/services", "/etc/ethertypes"} {
		if _, err := os.Stat(file); err == nil {
			i.File(file, file)
		}
	}
	i.Bytes("/etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	i.Bytes("/etc/group", 0o644, []byte("root:x:0:\n"))
	i.Bytes("/etc/hosts", 0o644, []byte("127.0.0.1 localhost\n::1 localhost\n"))
	return i, i.tools()
}

func (i Image) tools() error {
	for _, tool := range GuestTools() {
		path, err := exec.LookPath(tool)
		if err != nil {
			return fmt.Errorf("%s is not installed: run `go run ./integration/suites/run -install qemu`", tool)
		}
		if err := i.Program(path); err != nil {
			return err
		}
	}
	for _, dir := range libraryDirs() {
		extensions, err := filepath.Glob(filepath.Join(dir, "xtables", "*.so"))
		if err != nil {
			return fmt.Errorf("looking for the extensions of iptables: %w", err)
		}
		for _, e := range extensions {
			if err := i.Program(e); err != nil {
				return err
			}
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("busybox is not installed: run `go run ./integration/suites/run -install qemu`")
	}
	for _, a := range applets {
		i.Link("/usr/bin/"+a, busybox)
	}
	return nil
}

// Program adds an executable or a library, by way of the links that lead to it, and the libraries
// that it is linked with.
func (i Image) Program(path string) error {
	real, err := i.follow(path)
	if err != nil {
		return fmt.Errorf("adding %s: %w", path, err)
	}
	if i.Has(real) {
		return nil
	}
	i.File(real, real)
	needed, err := libraries(real)
	if err != nil {
		return fmt.Errorf("reading what %s is linked with: %w", path, err)
	}
	for _, n := range needed {
		if err := i.Program(n); err != nil {
			return err
		}
	}
	return nil
}

// Tree adds a folder and all that is in it; one that is not there adds nothing.
func (i Image) Tree(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			i.Dir(path)
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			i.Link(path, target)
		case entry.Type().IsRegular():
			i.File(path, path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("adding the folder %s: %w", dir, err)
	}
	return nil
}

// follow adds the symbolic links from path on and returns the file that they lead to. Folders are
// taken by their real names: where /lib is a link, as on Debian, BaseImage added that.
func (i Image) follow(path string) (string, error) {
	for range 10 {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, filepath.Base(path))
		info, err := os.Lstat(path)
		if err != nil {
			return "", err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			return path, nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		i.Link(path, target)
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", errors.New("more than ten symbolic links, one behind the other")
}

// libraries are the paths of what the dynamic loader would load, and of the loader; of a script the path
// of what runs it; nothing for a static program.
func libraries(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var format *elf.FormatError
	f, err := elf.NewFile(file)
	if errors.As(err, &format) {
		return interpreter(file)
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err != nil {
				return nil, err
			}
			found = append(found, strings.TrimRight(string(name), "\x00"))
		}
	}
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		library, err := findLibrary(name)
		if err != nil {
			return nil, err
		}
		found = append(found, library)
	}
	return found, nil
}

// interpreter is what the first line of a script names; nothing if the file is no script.
func interpreter(file io.ReaderAt) ([]string, error) {
	begin := make([]byte, 256)
	n, err := file.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	line, _, _ := strings.Cut(string(begin[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return nil, nil
	}
	return words[:1], nil
}

func findLibrary(name string) (string, error) {
	for _, dir := range libraryDirs() {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is in none of %v", name, libraryDirs())
}

func libraryDirs() []string {
	return []string{"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib"}
}
