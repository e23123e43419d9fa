package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// newCgroups makes a control group NAME/PART in every hierarchy that is mounted below
// /sys/fs/cgroup, beneath that of the caller where limits are meant to hold (version 1), at the
// root of version 2, where a group cannot have both processes and children. What stays is that the
// root of version 2 lets its children have its controllers, as systemd sees to anyway. sweep
// removes NAME. All machines together, and all Pods of one, weigh more than a process beside them:
// with processors of their own they would not wait for it.
func newCgroups(name, part string) ([]cgroup, error) {
	hierarchies, err := mounted()
	if err != nil {
		return nil, err
	}
	var all []cgroup
	for _, g := range hierarchies {
		parent := g.Dir
		g.Dir = filepath.Join(parent, name, part)
		for _, dir := range []string{filepath.Join(parent, name), g.Dir} {
			if err := g.makeGroup(dir); err != nil {
				return nil, fmt.Errorf("making a control group: %w", err)
			}
		}
		if err := g.weigh(filepath.Join(parent, name)); err != nil {
			return nil, err
		}
		if g.Type != "cgroup2" { // there it is made by delegate
			if err := g.makePods(g.Dir); err != nil {
				return nil, err
			}
		}
		all = append(all, g)
	}
	return all, nil
}

// makePods makes the group of all Pods of a machine, where containerd puts them.
func (g cgroup) makePods(machine string) error {
	pods := filepath.Join(machine, "k8s.io")
	if err := g.makeGroup(pods); err != nil {
		return fmt.Errorf("making the control group of Pods: %w", err)
	}
	return g.weigh(pods)
}

// weigh gives a group four times the processor time that a process beside it gets, where both
// want it.
func (g cgroup) weigh(dir string) error {
	for file, weight := range map[string]int{"cpu.shares": 4 * 1024, "cpu.weight": 4 * 100} {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err != nil {
			continue // another version's, or another controller's hierarchy
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(weight)), 0o644); err != nil {
			return fmt.Errorf("setting the weight of a control group: %w", err)
		}
	}
	return nil
}

// makeGroup makes one group and passes on to it what the kernel does not pass on.
func (g cgroup) makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if g.Type == "cgroup2" {
		return enableControllers(parent)
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, os.ErrNotExist) {
			continue // another controller's hierarchy
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enableControllers lets the children of a group have all controllers that it has itself.
func enableControllers(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(content)) {
		// One by one: some, such as those for real time, cannot be had at every moment.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
	return nil
}

// join moves this process into the group or one beneath it.
func (g cgroup) join(beneath string) error {
	if err := os.WriteFile(filepath.Join(g.Dir, beneath, "cgroup.procs"), []byte("0"), 0o644); err != nil {
		return fmt.Errorf("joining a control group: %w", err)
	}
	return nil
}

// delegate moves this process out of the root that the machine sees, which of version 2 must have no processes
// when there are groups with controllers beneath it.
func (g cgroup) delegate() error {
	inside := cgroup{Dir: g.Mount}
	if err := os.Mkdir(filepath.Join(inside.Dir, "init"), 0o755); err != nil {
		return fmt.Errorf("making pid 1's control group: %w", err)
	}
	if err := inside.join("init"); err != nil {
		return err
	}
	if err := enableControllers(inside.Dir); err != nil {
		return err
	}
	return cgroup{Type: g.Type}.makePods(inside.Dir)
}

// mounted are the hierarchies of this computer; Dir is where groups of the caller's belong.
func mounted() ([]cgroup, error) {
	own, err := ownGroups()
	if err != nil {
		return nil, err
	}
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("reading what is mounted: %w", err)
	}
	defer file.Close()
	var all []cgroup
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[2] != "cgroup" && f[2] != "cgroup2" || !strings.HasPrefix(f[1], "/sys/fs/cgroup") {
			continue
		}
		g := cgroup{Mount: f[1], Dir: f[1], Type: f[2]}
		if g.Type == "cgroup" {
			controllers := controllersOf(f[3])
			g.Options = strings.Join(controllers, ",")
			if strings.HasPrefix(g.Options, "name=") {
				g.Options = "none," + g.Options
			}
			if dir := filepath.Join(f[1], own[strings.Join(controllers, ",")]); isDir(dir) {
				g.Dir = dir
			}
		}
		all = append(all, g)
	}
	if len(all) == 0 {
		return nil, errors.New("no control groups are mounted below /sys/fs/cgroup: mount them, or run this where they are")
	}
	return all, lines.Err()
}

// controllersOf are what is left of the options of a mount without those that any file system has.
func controllersOf(options string) []string {
	general := []string{"rw", "ro", "nosuid", "nodev", "noexec", "relatime", "noatime", "xattr", "clone_children", "cpuset_v2_mode"}
	all := slices.DeleteFunc(strings.Split(options, ","), func(o string) bool {
		return slices.Contains(general, o) || strings.HasPrefix(o, "release_agent=")
	})
	slices.Sort(all)
	return all
}

// ownGroups are the paths of this process's groups of version 1, by their controllers.
func ownGroups() (map[string]string, error) {
	content, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("reading the control groups of this process: %w", err)
	}
	own := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			controllers := strings.Split(f[1], ",")
			slices.Sort(controllers)
			own[strings.Join(controllers, ",")] = f[2]
		}
	}
	return own, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
