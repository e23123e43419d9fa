package machines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// bootConfig is all that pid 1 has to know. The command in integration/env/programs reads it from a
// file and says what the fields are.
type bootConfig struct {
	Name                string
	VarLib, Log         string
	Binds               map[string]string
	Cgroups             json.RawMessage // as the command prints them
	Containerd, Kubelet bootService
	Imports, Import     []string
	Socket, Kubeconfig  string
}

// bootService is a program that is started again when it ends.
type bootService struct {
	Path, Called string
	Args         []string
	Log          string
}

func (c bootConfig) write(path string) error {
	content, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the machine's configuration: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing the machine's configuration: %w", err)
	}
	return nil
}

// ownCgroups runs the command that makes and removes control groups, in the control groups of the
// caller.
func (c *Cluster) ownCgroups(args ...string) (json.RawMessage, error) {
	var diag bytes.Buffer
	cmd := exec.Command(c.program, args...)
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s of control groups: %w: %s", args[0], err, bytes.TrimSpace(diag.Bytes()))
	}
	return out, nil
}
