package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/controller/api/v1alpha1"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// departure is the command line of leave.
type departure struct {
	std        command.Stdio
	cluster    string
	kubeconfig string // of the hub; "" = as kubectl finds it
	timeout    time.Duration
}

// NewLeave makes the command leave.
func NewLeave(std command.Stdio) *cobra.Command {
	d := &departure{std: std}
	cmd := &cobra.Command{
		Use:   "leave --cluster NAME [--kubeconfig FILE] [--timeout DURATION]",
		Short: "Remove a cluster from those that have this cluster's Grids",
		Long: `Remove from this cluster, the hub, what join has made for a member: its FleetCluster, its namespace
fleet-NAME with its account, and its ClusterRole. Print what was removed.

The FleetCluster goes first, and the command waits for that. The hub's grid-controller lets it go
when it has done what spec.onDelete says: Orphan, the default, leaves the Grids in the member; Remove
takes them away. If that is not within --timeout, nothing else is removed: run the command again.`,
		Example:               `  grid-controller leave --cluster west`,
		DisableFlagsInUseLine: true,
		Args:                  command.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			err := nameFault(d.cluster)
			if d.timeout < 0 || d.timeout > time.Hour {
				err = errors.Join(err, fmt.Errorf("--timeout %s: want 0s to 1h", d.timeout))
			}
			return command.NewUsageError(err)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&d.cluster, "cluster", "", "`NAME` of the cluster on the hub, of its FleetCluster")
	f.StringVar(&d.kubeconfig, "kubeconfig", "", kubeconfigHelp)
	f.DurationVar(&d.timeout, "timeout", time.Minute, "how long to wait until the FleetCluster is gone")
	return cmd
}

func (d *departure) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout+d.timeout)
	defer cancel()
	h, err := connect(d.kubeconfig)
	if err != nil {
		return err
	}
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: d.cluster}}
	known, err := h.get(ctx, cluster)
	if err != nil {
		return err
	}
	if known {
		if err := d.end(ctx, h, cluster); err != nil {
			return err
		}
	}
	rest, err := d.removeRest(ctx, h)
	if err != nil {
		return err
	}
	if !known && !rest {
		return fmt.Errorf("--cluster %s: the hub has nothing of this cluster; kubectl get fleetclusters lists those that it has", d.cluster)
	}
	d.explain(cluster)
	return nil
}

// end deletes a FleetCluster, waits until it is gone, and prints that. It returns an error if
// it is not gone within d.timeout.
func (d *departure) end(ctx context.Context, h hub, cluster *v1alpha1.FleetCluster) error {
	if _, err := h.remove(ctx, cluster); err != nil {
		return err
	}
	live := cluster.DeepCopy()
	var failure error
	err := wait.PollUntilContextTimeout(ctx, time.Second, d.timeout, true, func(ctx context.Context) (bool, error) {
		found, err := h.get(ctx, live)
		if ctx.Err() == nil { // else the request was given up because the time is over
			failure = err
		}
		return err == nil && (!found || live.UID != cluster.UID), nil
	})
	switch {
	case err == nil:
		return command.Flush(d.std.Out, []byte("FleetCluster "+d.cluster+" removed\n"))
	case failure != nil:
		return fmt.Errorf("waiting until FleetCluster %s is gone: %w", d.cluster, failure)
	}
	return fmt.Errorf("FleetCluster %s is not gone within %s, because of its finalizers %v: run this again when grid-controller with --federation=hub has taken them off"+
		"; without that controller, and then no Grid is removed from the member: kubectl patch fleetcluster %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'",
		d.cluster, d.timeout, live.Finalizers, d.cluster)
}

// removeRest removes and prints what exists beside the FleetCluster, except, with a warning, a
// namespace without the cluster's label. It reports false if it removed nothing.
func (d *departure) removeRest(ctx context.Context, h hub) (bool, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(d.cluster)}}
	found, err := h.get(ctx, namespace)
	if err != nil {
		return false, err
	}
	name := metav1.ObjectMeta{Name: clusterRoleOf(d.cluster)}
	gone := []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: name}, &rbacv1.ClusterRole{ObjectMeta: name}}
	switch {
	case found && namespace.Labels[v1alpha1.LabelCluster] == d.cluster:
		gone = append([]client.Object{namespace}, gone...)
	case found:
		fmt.Fprintf(d.std.Err, "warning: Namespace %s does not have the label %s=%s, so it is not removed\n", namespace.Name, v1alpha1.LabelCluster, d.cluster)
	}
	some := false
	for _, o := range gone {
		was, err := h.remove(ctx, o)
		if err != nil {
			return some, err
		}
		if !was {
			continue
		}
		some = true
		if err := command.Flush(d.std.Out, []byte(h.nameOf(o)+" removed\n")); err != nil {
			return some, err
		}
	}
	return some, nil
}

// explain prints what stays in the member, and what to do there.
func (d *departure) explain(cluster *v1alpha1.FleetCluster) {
	text := "The Grids that the member has stay there, with what they run."
	if cluster.Spec.OnDelete == v1alpha1.Remove {
		text = "The Grids of this hub have been removed from the member."
	}
	fmt.Fprintln(d.std.Err, text)
	if cluster.Spec.KubeConfig == nil {
		fmt.Fprintf(d.std.Err, "In the member, run grid-controller without --federation=member, and delete the token: kubectl --namespace %s delete secret %s\n",
			defaultNamespace, v1alpha1.HubSecret)
	}
}
