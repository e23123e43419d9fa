package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// bootConfig is all that pid 1 has to know. Package machines, which cannot import a command, writes
// it to a file with the same fields.
type bootConfig struct {
	Name string
	// VarLib and Log are folders that become the machine's /var/lib and /var/log: its disk.
	VarLib, Log string
	// Binds are further files and folders, by the path that they are seen at on the machine.
	Binds map[string]string
	// Cgroups are the machine's own control groups, which become the roots that it sees.
	Cgroups []cgroup

	Containerd, Kubelet service
	// Imports are image files, and Import the command that imports the one whose path it is given.
	Imports []string
	Import  []string
	// Socket is there once containerd answers, and Kubeconfig once the kubelet can start.
	Socket, Kubeconfig string
}

type service struct {
	Path, Called string
	Args         []string
	Log          string
}

// cgroup is a control group of one hierarchy.
type cgroup struct {
	Mount   string // where the hierarchy is mounted
	Dir     string // of the control group
	Type    string // cgroup or cgroup2
	Options string // of the mount: the controllers of the hierarchy
}

func readConfig(path string) (bootConfig, error) {
	var c bootConfig
	content, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("reading the machine's configuration: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields() // package machines has the same fields
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("reading the machine's configuration %s: %w", path, err)
	}
	return c, nil
}
