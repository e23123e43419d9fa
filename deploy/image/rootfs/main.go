package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		slog.Error("the root file system was not made", "error", err)
		os.Exit(1) //nolint:gocritic // stop has nothing to undo
	}
}

// run makes the tar that args ask for, and prints what is in it. It returns flag.ErrHelp if
// args ask for help.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("rootfs", flag.ContinueOnError)
	archive := Archive{}
	flags.StringVar(&archive.Mirror, "mirror", "http://deb.debian.org/debian", "where Debian's packages are")
	flags.StringVar(&archive.Security, "security-mirror", "http://deb.debian.org/debian-security",
		"where Debian's security updates are; empty: take none, only the last point release")
	flags.StringVar(&archive.Suite, "suite", "bookworm", "the release of Debian")
	flags.StringVar(&archive.Keyring, "keyring", "/usr/share/keyrings/debian-archive-keyring.gpg", "the keys that the release files must be signed with")
	flags.StringVar(&archive.Cache, "cache", "", "folder that keeps indexes and packages; default: gridproxy/debian in the user's cache folder")
	flags.DurationVar(&archive.MaxAge, "max-age", 0, "fetch no indexes if the last ones are younger than this")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("%d arguments: call it as `rootfs [flags] ARCH OUT.tar`", flags.NArg())
	}
	arch, err := ParseArch(flags.Arg(0))
	if err != nil {
		return err
	}
	if archive.Cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("finding the cache folder: %w (set HOME, or give -cache)", err)
		}
		archive.Cache = filepath.Join(cache, "gridproxy", "debian")
	}
	modified, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	return makeTar(ctx, archive, arch, modified, flags.Arg(1), stdout)
}

// makeTar fetches, merges and checks packages, writes them to path as a tar in which all files
// have the time modified, and prints their versions. If it fails, path stays as it was.
func makeTar(ctx context.Context, archive Archive, arch Arch, modified time.Time, path string, stdout io.Writer) error {
	packages, err := archive.Fetch(ctx, arch, wanted...)
	if err != nil {
		return fmt.Errorf("fetching packages for %s: %w", arch.Debian, err)
	}
	root, err := Build(ctx, packages)
	if err != nil {
		return fmt.Errorf("putting the root file system for %s together: %w", arch.Debian, err)
	}
	if err := check(root, arch, programs()); err != nil {
		return fmt.Errorf("checking the root file system for %s: %w", arch.Debian, err)
	}
	size, err := writeFile(path, func(w io.Writer) error { return root.WriteTar(w, modified) })
	if err != nil {
		return err
	}
	for _, p := range packages {
		fmt.Fprintf(stdout, "  %s %s\n", p.Name, p.Version)
	}
	fmt.Fprintf(stdout, "%s: %s, %d files and folders, %.1f MB\n", path, arch.Debian, len(root), float64(size)/1e6)
	return nil
}

// writeFile writes a file with what write writes, and returns its size in bytes. If it fails,
// the file at path stays as it was.
func writeFile(path string, write func(io.Writer) error) (int64, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.RemoveAll(f.Name()) // renamed by then if all went well
	err = write(f)
	info, errStat := f.Stat()
	if err := errors.Join(err, errStat, f.Chmod(0o644), f.Close()); err != nil {
		return 0, fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, fmt.Errorf("writing %s: %w", path, err)
	}
	return info.Size(), nil
}

// sourceDate returns the time in s, the seconds since 1970 of SOURCE_DATE_EPOCH; 1970 for "".
func sourceDate(s string) (time.Time, error) {
	if s == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: give seconds since 1970: %w", s, err)
	}
	return time.Unix(seconds, 0), nil
}
