package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// ServiceCIDRs are where cluster IPs come from.
const ServiceCIDRs = "10.96.0.0/16,fd00:10:96::/112"

// Options say where a Cluster runs.
type Options struct {
	Tools Tools
	Dir   string // data, keys and logs; the caller removes it

	// Namespace is where its processes run; nil is the caller's, and then only loopback is used.
	Namespace Namespace
	// Addrs are the addresses of the Namespace that clients in other namespaces use.
	Addrs []netip.Addr
	// Machines says that real kubelets join, from other namespaces: API servers talk to them, take in their
	// privileged Pods, and are the endpoints of default/kubernetes.
	Machines bool
	// APIServer are further flags of the API servers.
	APIServer []string
}

// Cluster is an etcd and the API servers on it. There is no kubelet, and no controller manager and
// scheduler before they are started: nothing changes but what a test changes.
type Cluster struct {
	API *APIServer // the first API server

	options    Options
	ca         *authority
	admin      pair
	files      map[string]string // what writePKI wrote
	kubeconfig string            // of admin
	etcd       *etcd
	servers    []*APIServer
	children   []*Child        // controller manager and scheduler
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
}

// Start starts etcd and one API server, and returns when that is ready. Close ends them.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{options: o}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	err := c.issue()
	if err == nil {
		c.etcd, err = startEtcd(ctx, o)
	}
	if err == nil {
		c.API, err = c.AddAPIServer(ctx)
	}
	if err == nil {
		c.kubeconfig, err = WriteKubeconfig(o.Dir, "admin.kubeconfig", c.Admin())
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	return c, nil
}

func (c *Cluster) issue() error {
	var err error
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	if c.admin, err = c.ca.client("admin", "system:masters"); err != nil {
		return err
	}
	addrs := append([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, c.options.Addrs...)
	names := []string{"localhost", "kubernetes.default.svc"}
	if c.options.Machines {
		names = append(names, "kubernetes", "kubernetes.default")
		for cidr := range strings.SplitSeq(ServiceCIDRs, ",") {
			addrs = append(addrs, netip.MustParsePrefix(cidr).Addr().Next()) // of default/kubernetes
		}
	}
	if c.files, err = writePKI(c.options.Dir, c.ca, names, addrs); err != nil || !c.options.Machines {
		return err
	}
	return c.writeKubeletClient()
}

// AddAPIServer starts one more API server on the same etcd, so that objects can be changed while
// another one is down.
func (c *Cluster) AddAPIServer(ctx context.Context) (*APIServer, error) {
	ports, err := FreePorts(c.options.Namespace, 1)
	if err != nil {
		return nil, fmt.Errorf("choosing a port for an API server: %w", err)
	}
	addr := ports[0]
	if len(c.options.Addrs) > 0 {
		addr = netip.AddrPortFrom(c.options.Addrs[c.addrOf(len(c.servers))], addr.Port())
	}
	a := &APIServer{Addr: addr, cluster: c, name: fmt.Sprintf("kube-apiserver-%d", len(c.servers))}
	c.servers = append(c.servers, a)
	return a, a.Start(ctx)
}

// Close kills everything.
func (c *Cluster) Close() {
	c.cancel()
	for _, child := range c.children {
		child.Stop(signalKill, 0)
	}
	for _, a := range c.servers {
		a.Stop()
	}
	if c.etcd != nil {
		c.etcd.Stop(signalKill, 0)
	}
}

// Tools are the programs that it runs.
func (c *Cluster) Tools() Tools { return c.options.Tools }

// Dir is the folder of its data, keys and logs.
func (c *Cluster) Dir() string { return c.options.Dir }

// Namespace is where its processes run; nil is the caller's.
func (c *Cluster) Namespace() Namespace { return c.options.Namespace }

// Processes are those that run now, by the name of their log: for a test that looks what becomes of them.
func (c *Cluster) Processes() map[string]int {
	all := map[string]int{"etcd": c.etcd.PID()}
	for _, a := range c.servers {
		if a.child != nil {
			all[a.name] = a.child.PID()
		}
	}
	for _, child := range c.children {
		all[child.spec.Name] = child.PID()
	}
	return all
}

// Admin is a configuration that may do everything, on the first API server.
func (c *Cluster) Admin() *rest.Config { return c.AdminAt(c.API.Addr) }

// AdminAt is Admin on another address: another API server's, or a Link's.
func (c *Cluster) AdminAt(addr netip.AddrPort) *rest.Config { return c.configFor(addr, c.admin) }

// User is a configuration for a user of that name, whom RBAC allows what is bound to it.
func (c *Cluster) User(addr netip.AddrPort, name string, groups ...string) (*rest.Config, error) {
	p, err := c.ca.client(name, groups...)
	if err != nil {
		return nil, fmt.Errorf("making the user %s: %w", name, err)
	}
	return c.configFor(addr, p), nil
}

// Bearer is a configuration that shows a token, as a ServiceAccount's Pods do.
func (c *Cluster) Bearer(addr netip.AddrPort, token string) *rest.Config {
	config := c.configFor(addr, pair{})
	config.BearerToken = token
	return config
}

// configFor has no client-side rate limit: a test waits for the server, not for itself. A Link
// listens in the caller's namespace, so loopback addresses are dialled from there unless the
// cluster has a namespace of its own.
func (c *Cluster) configFor(addr netip.AddrPort, user pair) *rest.Config {
	config := &rest.Config{
		Host: "https://" + addr.String(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.ca.pem(), CertData: user.cert, KeyData: user.key,
		},
		QPS:            -1,
		WarningHandler: rest.NoWarnings{},
	}
	if c.options.Namespace != nil && !addr.Addr().IsLoopback() {
		config.Dial = Dialer(c.options.Namespace)
	}
	return config
}

// CompactAndForceGone makes every resourceVersion of before this call too old to watch from: etcd
// forgets it, and the API servers that run start again with an empty watch cache. It returns an
// error if a watch from such a version is still served.
func (c *Cluster) CompactAndForceGone(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	before, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("reading the version before compaction: %w", err)
	}
	if err := c.touch(ctx, client); err != nil {
		return err
	}
	revision, err := c.etcd.revision(ctx)
	if err != nil {
		return fmt.Errorf("reading etcd's revision: %w", err)
	}
	if err := c.etcd.compact(ctx, revision); err != nil {
		return fmt.Errorf("compacting etcd at revision %d: %w", revision, err)
	}
	for _, a := range c.servers {
		if a.child == nil {
			continue
		}
		a.Stop()
		if err := a.Start(ctx); err != nil {
			return fmt.Errorf("restarting %s after compaction: %w", a.name, err)
		}
	}
	return c.expectGone(ctx, before.ResourceVersion)
}

// touch moves etcd's revision on, so that the versions clients know lie before the compaction.
func (c *Cluster) touch(ctx context.Context, client kubernetes.Interface) error {
	for range 2 {
		if _, err := client.CoreV1().Events("default").Create(ctx, touchEvent(), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("moving the revision on: %w", err)
		}
	}
	return nil
}

// WriteKubeconfig writes a configuration for another process to dir/name and returns the path.
func WriteKubeconfig(dir, name string, config *rest.Config) (string, error) {
	path := filepath.Join(dir, name)
	content, err := kubeconfig(config)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return path, nil
}

var errServed = errors.New("a watch from before the compaction is still served")

// expectGone watches from a version and wants 410, which comes as the answer's status or, once the
// answer has begun, as its first event.
func (c *Cluster) expectGone(ctx context.Context, version string) error {
	client, err := rest.HTTPClientFor(c.Admin())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer client.CloseIdleConnections()
	url := c.Admin().Host + "/api/v1/services?watch=1&timeoutSeconds=2&resourceVersion=" + version
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("watching from version %s: %w", version, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusGone || firstEventIsGone(response.Body) {
		return nil
	}
	return fmt.Errorf("%w: version %s", errServed, version)
}

// machineArgs returns the further flags of an API server that real kubelets join.
func (a *APIServer) machineArgs() []string {
	files := a.cluster.files
	return []string{
		"--advertise-address=" + a.Addr.Addr().String(),
		"--allow-privileged=true",
		"--kubelet-client-certificate=" + files["kubelet-client.crt"],
		"--kubelet-client-key=" + files["kubelet-client.key"],
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// writeKubeletClient writes what API servers show to kubelets.
func (c *Cluster) writeKubeletClient() error {
	p, err := c.ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"kubelet-client.crt": p.cert, "kubelet-client.key": p.key} {
		c.files[name] = filepath.Join(c.options.Dir, name)
		if err := os.WriteFile(c.files[name], content, 0o600); err != nil {
			return fmt.Errorf("writing the API server's certificate for kubelets: %w", err)
		}
	}
	return nil
}

// addrOf returns which of the Addrs the n-th API server uses. Endpoints of default/kubernetes
// differ in their addresses, so where machines join, each server has its own as long as there are
// some.
func (c *Cluster) addrOf(n int) int {
	if !c.options.Machines {
		return 0
	}
	var same []int
	for i, a := range c.options.Addrs {
		if a.Is4() == c.options.Addrs[0].Is4() {
			same = append(same, i)
		}
	}
	return same[n%len(same)]
}

// ClientCA returns the path of the certificate that signs all clients', for kubelets.
func (c *Cluster) ClientCA() string { return c.files["ca.crt"] }

// APIServers returns all that were added, those that are stopped too.
func (c *Cluster) APIServers() []*APIServer { return c.servers }

// kubeconfig returns a rest.Config as the file that every Kubernetes program reads.
func kubeconfig(config *rest.Config) ([]byte, error) {
	const name = "test"
	file := api.NewConfig()
	file.CurrentContext = name
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	file.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &api.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	content, err := clientcmd.Write(*file)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return content, nil
}

// touchEvent returns an object that no client watches.
func touchEvent() *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "touch-", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "touch"},
	}
}

func firstEventIsGone(stream io.Reader) bool {
	var event struct {
		Type   string
		Object metav1.Status
	}
	err := json.NewDecoder(stream).Decode(&event)
	return err == nil && event.Type == "ERROR" && event.Object.Code == http.StatusGone
}
