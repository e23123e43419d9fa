package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"

	"github.com/vishvananda/netlink"
)

// Machine is a machine of a Cluster. Its methods are not for concurrent use with PowerOff and PowerOn.
type Machine struct {
	Name  string
	Addrs []netip.Addr // the IPv4 address first
	// Namespace is the machine's own network; another one after each PowerOn.
	Namespace *netns.Namespace

	cluster *Cluster
	spec    Spec
	number  byte   // in the network
	dir     string // of its disk and configuration
	init    *apiserver.Child
	bridge  netlink.Link // that its cable leads to
}

func newMachine(c *Cluster, spec Spec, number byte) *Machine {
	if spec.Variant == "" {
		spec.Variant = apiserver.NFT
	}
	return &Machine{
		Name: spec.Name, Addrs: []netip.Addr{fabricAddr4(number), fabricAddr6(number)},
		cluster: c, spec: spec, number: number, dir: filepath.Join(c.options.Dir, "machines", spec.Name), bridge: c.fabric.bridge,
	}
}

// Disk is where a path in the machine's /var/lib is found by the caller, whether the machine is on
// or off.
func (m *Machine) Disk(path string) string {
	return filepath.Join(m.dir, "lib", strings.TrimPrefix(path, "/var/lib"))
}

// log is where a process of the machine writes to; ForTest shows what is there when a test fails.
func (m *Machine) log(process string) string {
	return filepath.Join(m.cluster.options.Dir, m.Name+"-"+process+".log")
}

func (m *Machine) kubeconfig() string { return filepath.Join(m.dir, "kubelet.kubeconfig") }

func (m *Machine) boot() error {
	config, err := m.configure()
	if err != nil {
		return err
	}
	if m.Namespace, err = netns.NewNamespace(m.Name); err != nil {
		return err
	}
	if err := m.cluster.fabric.plug(m.Namespace, m.number, m.bridge); err != nil {
		return err
	}
	m.init, err = apiserver.StartChild(apiserver.Spec{
		Name: m.Name + "-init", Path: m.cluster.program, Called: m.Name + "/init", Args: []string{"enter", config},
		Env: m.env(), Dir: m.cluster.options.Dir, Namespace: m.Namespace,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	})
	return err
}

// env has the machine's own iptables and its container runtime first.
func (m *Machine) env() []string {
	path := []string{m.tools(), m.cluster.runtime.Dir, os.Getenv("PATH"), "/usr/sbin", "/sbin"}
	return []string{"PATH=" + strings.Join(path, ":"), "HOME=/run", "KUBECONFIG=" + m.kubeconfig()}
}

func (m *Machine) tools() string { return filepath.Join(m.dir, "bin-"+string(m.spec.Variant)) }

// configure writes the machine's configuration and returns that of pid 1.
func (m *Machine) configure() (string, error) {
	lib, logs := m.Disk("/var/lib"), filepath.Join(m.dir, "log")
	for _, dir := range []string{lib, logs, m.Disk(Kubernetes + "/manifests")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", fmt.Errorf("making the disk of %s: %w", m.Name, err)
		}
	}
	if _, err := apiserver.VariantPath(m.dir, m.spec.Variant); err != nil {
		return "", err
	}
	c := m.cluster
	cgroups, err := c.ownCgroups("groups", c.name, m.Name)
	if err != nil {
		return "", err
	}
	config := bootConfig{
		Name: m.Name, VarLib: lib, Log: logs, Cgroups: cgroups,
		Import: append([]string{c.runtime.Path("ctr")}, ctrImport...),
		Socket: socket, Kubeconfig: m.kubeconfig(),
	}
	for _, image := range c.images {
		config.Imports = append(config.Imports, image.Tar)
	}
	if config.Binds, err = m.alternatives(); err != nil {
		return "", err
	}
	if config.Containerd, err = containerd(m.dir, m.Name, c.runtime, m.log("containerd")); err != nil {
		return "", err
	}
	ca := filepath.Join(c.options.Dir, "ca.crt") // it is there once there is a kubeconfig
	if config.Kubelet, err = m.kubelet(c.tools.Path("kubelet"), ca, c.options.NodeGrace); err != nil {
		return "", err
	}
	file := filepath.Join(m.dir, "boot.json")
	return file, config.write(file)
}

// ctrImport are the arguments of ctr before the path of an image.
var ctrImport = []string{"--address=" + socket, "--namespace=k8s.io", "images", "import"}

func (m *Machine) off() error {
	if m.Namespace == nil {
		return nil
	}
	if m.init != nil {
		m.init.Stop(syscall.SIGKILL, 0)
		m.init = nil
	}
	// Booted again, it gets new control groups: of version 2, those that have had others beneath them take no process.
	_, err := m.cluster.ownCgroups("remove", filepath.Join(m.cluster.name, m.Name))
	err = errors.Join(err, m.cluster.fabric.unplug(m.Name), m.Namespace.Close())
	m.Namespace = nil
	return err
}

var errOff = errors.New("the machine is off")

// Run runs a program to its end on the machine, in all of its namespaces, and returns what it wrote to standard
// output. An error carries what it wrote to standard error.
func (m *Machine) Run(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
	if m.init == nil {
		return nil, fmt.Errorf("running %s on %s: %w", name, m.Name, errOff)
	}
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, "nsenter", m.enter(name, args)...)
	cmd.Env = append(os.Environ(), m.env()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &diag
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("running %s on %s: %w: %s",
			strings.Join(append([]string{name}, args...), " "), m.Name, err, bytes.TrimSpace(diag.Bytes()))
	}
	return out.Bytes(), nil
}

// enter are nsenter's arguments for a program on the machine.
func (m *Machine) enter(name string, args []string) []string {
	return append([]string{"--target=" + strconv.Itoa(m.init.PID()), "--mount", "--uts", "--ipc", "--net", "--pid", "--", name}, args...)
}

// Start starts a program on the machine, as its systemd would. It ends with the machine, or when a
// signal is sent to its process group. What it prints goes to the log of that name.
func (m *Machine) Start(log, program string, args ...string) (*apiserver.Child, error) {
	if m.init == nil {
		return nil, fmt.Errorf("starting %s on %s: %w", log, m.Name, errOff)
	}
	return apiserver.StartChild(apiserver.Spec{
		Name: m.Name + "-" + log, Path: "nsenter", Args: m.enter(program, args), Env: m.env(), Dir: m.cluster.options.Dir,
	})
}

// PID is the machine's pid 1, as the caller sees it; 0 while it is off.
func (m *Machine) PID() int {
	if m.init == nil {
		return 0
	}
	return m.init.PID()
}

// Import puts an image on the machine.
func (m *Machine) Import(ctx context.Context, image Image) error {
	_, err := m.Run(ctx, nil, m.cluster.runtime.Path("ctr"), append(ctrImport[:len(ctrImport):len(ctrImport)], image.Tar)...)
	if err != nil {
		return fmt.Errorf("importing %s: %w", image.Name, err)
	}
	return nil
}

// PowerOff ends everything on the machine at once and unplugs it. What is on its disk stays.
func (m *Machine) PowerOff() error {
	if m.init == nil {
		return fmt.Errorf("switching %s off: %w", m.Name, errOff)
	}
	return m.off()
}

var errOn = errors.New("the machine is on")

// PowerOn boots the machine from its disk and returns when its Node is Ready again, by the new
// kubelet's word.
func (m *Machine) PowerOn(ctx context.Context) error {
	if m.init != nil {
		return fmt.Errorf("switching %s on: %w", m.Name, errOn)
	}
	begin := time.Now()
	if err := m.boot(); err != nil {
		return fmt.Errorf("switching %s on: %w", m.Name, err)
	}
	if err := m.ready(ctx, begin); err != nil {
		return err
	}
	return m.cluster.teach(ctx, m.Namespace)
}

// CutLink pulls the machine's network cable.
func (m *Machine) CutLink() error { return m.cluster.fabric.carry(m.Name, false) }

// MendLink plugs it in again.
func (m *Machine) MendLink() error { return m.cluster.fabric.carry(m.Name, true) }

// alternatives is where Debian says which variant /usr/sbin/iptables is.
const alternatives = "/etc/alternatives"

// alternatives makes the machine's own /etc/alternatives, in which iptables and its relatives are
// of its variant. A computer without that folder keeps its iptables, and the machine has its own
// only in its PATH.
func (m *Machine) alternatives() (map[string]string, error) {
	entries, err := os.ReadDir(alternatives)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which programs are chosen: %w", err)
	}
	dir := filepath.Join(m.dir, "alternatives")
	if _, err := os.Stat(dir); err == nil {
		return map[string]string{alternatives: dir}, nil // a reboot
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder of choices: %w", err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(alternatives, e.Name()))
		if err != nil {
			continue // a README is no choice
		}
		if tool, kind, _ := strings.Cut(e.Name(), "-"); (tool == "iptables" || tool == "ip6tables") && (kind == "" || kind == "save" || kind == "restore") {
			to = filepath.Join(m.tools(), e.Name())
		}
		if err := os.Symlink(to, filepath.Join(dir, e.Name())); err != nil {
			return nil, fmt.Errorf("choosing %s: %w", e.Name(), err)
		}
	}
	return map[string]string{alternatives: dir}, nil
}
