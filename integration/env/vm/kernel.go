package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kernel is an unpacked kernel package.
type Kernel struct {
	Release string // as uname -r says, such as 6.1.0-56-cloud-amd64
	Image   string // path of what a machine boots
	Modules string // path of the folder whose name is the release
}

// meta are the packages that always depend on the newest kernel of a series. Names of the kernels'
// own packages change with every update.
var meta = map[string]string{
	"6.1":  "linux-image-cloud-amd64", // of Debian 12
	"6.12": "linux-image-6.12-cloud-amd64",
}

// HostTools are the programs that EnsureKernel runs.
func HostTools() []string { return []string{"apt-get", "apt-cache", "dpkg-deb", "xz", "depmod"} }

// EnsureKernel returns the newest kernel of a series ("6.1", "6.12"), and fetches it first if it is
// not in the cache: about 30 MB, once. Where apt cannot say which is the newest, a kernel of the
// series that is in the cache will do.
func EnsureKernel(ctx context.Context, series string, progress io.Writer) (Kernel, error) {
	name, found := meta[series]
	if !found {
		return Kernel{}, fmt.Errorf("no kernel %q: choose 6.1 or 6.12", series)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return Kernel{}, fmt.Errorf("finding the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	cache := filepath.Join(base, "gridproxy", "kernels")
	p, err := newest(ctx, name)
	if err != nil {
		if k, cached := newestCached(cache, series); cached {
			fmt.Fprintf(progress, "apt does not know the newest kernel %s (%v): taking %s\n", series, err, k.Release)
			return k, nil
		}
		return Kernel{}, fmt.Errorf("finding the newest kernel %s (run `apt-get update`): %w", series, err)
	}
	dir := filepath.Join(cache, p.file)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(progress, "fetching %s\n", p.file)
		if err := fetch(ctx, p, dir); err != nil {
			return Kernel{}, fmt.Errorf("fetching the kernel %s: %w", p.name, err)
		}
	}
	return openKernel(dir)
}

// newestCached is the kernel of a series that was fetched last.
func newestCached(cache, series string) (Kernel, bool) {
	dirs, _ := filepath.Glob(filepath.Join(cache, "linux-image-"+series+".*.deb"))
	slices.SortFunc(dirs, func(a, b string) int { return modified(b).Compare(modified(a)) })
	for _, dir := range dirs {
		if k, err := openKernel(dir); err == nil {
			return k, true
		}
	}
	return Kernel{}, false
}

func openKernel(dir string) (Kernel, error) {
	images, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if len(images) != 1 {
		return Kernel{}, fmt.Errorf("%s holds %d kernels instead of one: remove it, it will be fetched again", dir, len(images))
	}
	release := strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	for _, lib := range []string{"lib", "usr/lib"} {
		modules := filepath.Join(dir, lib, "modules", release)
		if _, err := os.Stat(filepath.Join(modules, "modules.dep")); err == nil {
			return Kernel{Release: release, Image: images[0], Modules: modules}, nil
		}
	}
	return Kernel{}, fmt.Errorf("%s holds no modules of %s: remove it, it will be fetched again", dir, release)
}

// modified is when a folder was put in place; the zero time where it is gone.
func modified(dir string) time.Time {
	info, err := os.Stat(dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
