package boot

import (
	"encoding/json"
	"fmt"
	"os"
)

// Config is all that pid 1 has to know. It is passed as a file.
type Config struct {
	Name string
	// VarLib and Log are folders that become the machine's /var/lib and /var/log: its disk.
	VarLib, Log string
	// Binds are further files and folders, by the path that they are seen at on the machine.
	Binds map[string]string
	// Cgroups are the machine's own control groups, which become the roots that it sees.
	Cgroups []Cgroup

	Containerd, Kubelet Service
	// Imports are image files, and Import the command that imports the one whose path it is given.
	Imports []string
	Import  []string
	// Socket is there once containerd answers, and Kubeconfig once the kubelet can start.
	Socket, Kubeconfig string
}

// Service is a program that is started again when it ends.
type Service struct {
	Path, Called string
	Args         []string
	Log          string
}

// Cgroup is a control group of one hierarchy.
type Cgroup struct {
	Mount   string // where the hierarchy is mounted
	Dir     string // of the control group
	Type    string // cgroup or cgroup2
	Options string // of the mount: the controllers of the hierarchy
}

// Read reads a Config from a file.
func Read(path string) (Config, error) {
	var c Config
	content, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("reading the machine's configuration: %w", err)
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return c, fmt.Errorf("reading the machine's configuration %s: %w", path, err)
	}
	return c, nil
}

// Write writes it.
func (c Config) Write(path string) error {
	content, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the machine's configuration: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing the machine's configuration: %w", err)
	}
	return nil
}
