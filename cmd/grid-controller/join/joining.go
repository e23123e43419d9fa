package join

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/topology/excerpt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (r *request) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	h, err := connect(r.kubeconfig)
	if err != nil {
		return err
	}
	if r.memberKubeconfig != "" {
		return r.push(ctx, h)
	}
	return r.pull(ctx, h)
}

// say prints a line of progress, or what to do next, to standard error.
func (r *request) say(format string, args ...any) { fmt.Fprintf(r.std.Err, format+"\n", args...) }

// pull prepares the hub for a member that fetches its Grids, and prints the manifest for it. It
// ends all earlier tokens of the member.
func (r *request) pull(ctx context.Context, h hub) error {
	c := credentials{cluster: r.cluster, server: r.server}
	if c.server == "" {
		c.server = h.config.Host
		if !isServer(c.server) {
			return fmt.Errorf("the server of the hub's kubeconfig, %s, is not a URL with https: give --server", excerpt.Quoted(c.server))
		}
		if isLoopback(c.server) {
			r.say("warning: %s leads to this machine, and the member may be another one: run this again with --server", c.server)
		}
	}
	var err error
	if c.ca, err = h.ca(); err != nil {
		return err
	}
	if err := r.isFree(ctx, h, true); err != nil {
		return err
	}
	if c.hub, err = uidOf(ctx, h.client); err != nil {
		return remedied("reading", "Namespace "+metav1.NamespaceSystem, err)
	}
	for _, o := range append([]client.Object{newNamespace(r.cluster)}, accountRights(r.cluster)...) {
		if err := h.apply(ctx, o); err != nil {
			return err
		}
	}
	account, err := r.renewAccount(ctx, h)
	if err != nil {
		return err
	}
	if err := r.admit(ctx, h, newPullCluster(r.cluster), nil); err != nil {
		return err
	}
	if c.token, c.expires, err = h.token(ctx, account, r.lifetime); err != nil {
		return err
	}
	text, err := manifest(c, r.namespace)
	if err != nil {
		return err
	}
	if err := command.Flush(r.std.Out, text); err != nil {
		return err
	}
	r.explain(c)
	return nil
}

// explain prints what to do with the manifest.
func (r *request) explain(c credentials) {
	r.say("FleetCluster %s and namespace %s are ready. The token in the manifest is valid until %s.",
		r.cluster, namespaceOf(r.cluster), c.expires.UTC().Format(time.RFC3339))
	r.say("In the member:")
	r.say("  1. Apply the manifest: kubectl apply --server-side -f FILE. Then delete the file.")
	r.say("  2. Install Flux: kubectl apply -k deploy/federation/flux")
	r.say("  3. Apply deploy/crds, and run grid-controller with --federation=member (chart: federation.mode=member; else deploy/federation/member.yaml).")
}

// push prepares the hub for a member that it reaches, once that has answered. The kubeconfig of
// the member is then in a Secret on the hub.
func (r *request) push(ctx context.Context, h hub) error {
	text, err := readBounded(r.memberKubeconfig)
	if err != nil {
		return fmt.Errorf("reading --member-kubeconfig: %w", err)
	}
	kept, err := portable(text)
	if err != nil {
		return fmt.Errorf("--member-kubeconfig %s: %w", r.memberKubeconfig, err)
	}
	if err := r.isFree(ctx, h, false); err != nil {
		return err
	}
	own, err := uidOf(ctx, h.client)
	if err != nil {
		return remedied("reading", "Namespace "+metav1.NamespaceSystem, err)
	}
	other, err := memberUID(ctx, kept)
	if err != nil {
		return fmt.Errorf("--member-kubeconfig %s: asking the member: %s; correct the kubeconfig, or let the member fetch its Grids: leave out --member-kubeconfig",
			r.memberKubeconfig, excerpt.Message(err.Error()))
	}
	if other == own {
		return fmt.Errorf("--member-kubeconfig %s: it is of the hub itself, which has its Grids already: give that of another cluster", r.memberKubeconfig)
	}
	objects := append([]client.Object{newNamespace(r.cluster)}, kubeconfigObjects(r.cluster, r.namespace, kept)...)
	for _, o := range objects {
		if err := h.apply(ctx, o); err != nil {
			return err
		}
	}
	if err := r.admit(ctx, h, newPushCluster(r.cluster), &other); err != nil {
		return err
	}
	r.say("FleetCluster %s is ready. The member answers; the UID of its Namespace kube-system is %s.", r.cluster, other)
	r.say("On the hub: install Flux with kubectl apply -k deploy/federation/flux, and run grid-controller with --federation=hub (chart: federation.mode=hub).")
	r.say("In the member: apply deploy/crds, and run grid-controller there.")
	return nil
}

func memberUID(ctx context.Context, kubeconfig []byte) (string, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return "", err
	}
	c, err := newClient(config)
	if err != nil {
		return "", err
	}
	return uidOf(ctx, c)
}

// isFree returns an error unless the cluster can join, or join again in the same way, which
// pull says. It is called before anything is written.
func (r *request) isFree(ctx context.Context, h hub, pull bool) error {
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: r.cluster}}
	switch found, err := h.get(ctx, cluster); {
	case err != nil:
		return err
	case found && cluster.DeletionTimestamp != nil:
		return fmt.Errorf("FleetCluster %s is being deleted: run grid-controller leave --cluster %s, and join when it has ended", r.cluster, r.cluster)
	case found && cluster.Spec.Pull != pull:
		return fmt.Errorf("FleetCluster %s was joined in the other way, pull: %t: run grid-controller leave --cluster %s first; the Grids in the cluster stay if its spec.onDelete is Orphan",
			r.cluster, cluster.Spec.Pull, r.cluster)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(r.cluster)}}
	switch found, err := h.get(ctx, namespace); {
	case err != nil:
		return err
	case found && namespace.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted: run this again when it is gone", namespace.Name)
	case found && namespace.Labels[v1alpha1.LabelCluster] != r.cluster:
		return fmt.Errorf("namespace %s exists and is not of this cluster: choose another --cluster, or make sure that no tenant has rights in it and run: kubectl label namespace %s %s=%s",
			namespace.Name, namespace.Name, v1alpha1.LabelCluster, r.cluster)
	}
	return nil
}

// renewAccount makes the account of a member again, which ends every token of it. Its rights go by
// its name, so they stay.
func (r *request) renewAccount(ctx context.Context, h hub) (*corev1.ServiceAccount, error) {
	account := newAccount(r.cluster)
	was, err := h.remove(ctx, account)
	if err != nil {
		return nil, err
	}
	if was {
		r.say("The account of the cluster was made again: every earlier token ends within seconds.")
	}
	account = newAccount(r.cluster)
	if err := h.client.Create(ctx, account, client.FieldOwner(writer)); err != nil {
		return nil, remedied("creating", h.nameOf(account), err)
	}
	return account, nil
}

// admit applies a FleetCluster, removes its Lease and writes uid into its status, so that
// another cluster may take the place of an earlier one. With a nil uid the next cluster that
// reports is accepted.
func (r *request) admit(ctx context.Context, h hub, cluster *v1alpha1.FleetCluster, uid *string) error {
	// The Lease says which cluster was heard last.
	if _, err := h.remove(ctx, &coordinationv1.Lease{ObjectMeta: metaOf(r.cluster, v1alpha1.HeartbeatLease)}); err != nil {
		return err
	}
	if err := h.apply(ctx, cluster); err != nil {
		return err
	}
	known, err := json.Marshal(map[string]any{"status": map[string]any{"clusterUID": uid}})
	if err != nil {
		return fmt.Errorf("encoding the UID of the cluster: %w", err)
	}
	if err := h.client.Status().Patch(ctx, cluster.DeepCopy(), client.RawPatch(types.MergePatchType, known), client.FieldOwner(writer)); err != nil {
		return remedied("writing the status of", h.nameOf(cluster), err)
	}
	return nil
}

// readBounded reads a file, or returns an error if it has more than kubeconfigMax bytes.
func readBounded(path string) ([]byte, error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if about.Size() > kubeconfigMax {
		return nil, fmt.Errorf("%s: it is too long: want at most %d bytes", path, kubeconfigMax)
	}
	return os.ReadFile(path)
}
