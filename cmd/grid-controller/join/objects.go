package join

import (
	"errors"
	"fmt"
	"strings"

	"gridproxy/controller/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// controllerAccount is the ServiceAccount of grid-controller, in every cluster.
	controllerAccount = "grid-controller"
	// kubeconfigSecret is the Secret with a member's kubeconfig, in its namespace on the hub, and the
	// Role with which the hub's grid-controller reads it.
	kubeconfigSecret = v1alpha1.KubeConfigSecret
	// kubeconfigKey is where Flux looks for a kubeconfig in a Secret.
	kubeconfigKey = "value"
)

// nameFault returns an error unless name can be the name of a cluster.
func nameFault(name string) error {
	switch {
	case name == "":
		return errors.New("--cluster is not given: name the cluster, as in --cluster west")
	case len(name) > clusterNameMax:
		return fmt.Errorf("--cluster %.20s... has %d characters: want at most %d, since %sNAME is its namespace on the hub",
			strings.ToValidUTF8(name, "?"), len(name), clusterNameMax, v1alpha1.NamespacePrefix)
	case len(validation.IsDNS1123Label(name)) > 0:
		return fmt.Errorf("--cluster %q: want lower-case letters, digits and hyphens, with a letter or digit at both ends", name)
	default:
		return nil
	}
}

// namespaceOf returns the name of a cluster's namespace on the hub.
func namespaceOf(cluster string) string { return v1alpha1.NamespacePrefix + cluster }

// clusterRoleOf returns the name of the ClusterRole of a member's account, and of its binding.
func clusterRoleOf(cluster string) string { return "grid-fleet-member-" + cluster }

func newNamespace(cluster string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(cluster), Labels: map[string]string{v1alpha1.LabelCluster: cluster}}}
}

// newPullCluster returns the FleetCluster of a cluster that fetches its Grids.
func newPullCluster(cluster string) *v1alpha1.FleetCluster {
	return &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: v1alpha1.FleetClusterSpec{Pull: true}}
}

// newPushCluster returns the FleetCluster of a cluster whose API server the hub reaches.
func newPushCluster(cluster string) *v1alpha1.FleetCluster {
	return &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: v1alpha1.FleetClusterSpec{
		KubeConfig: &v1alpha1.KubeConfig{SecretRef: v1alpha1.SecretRef{Name: kubeconfigSecret}},
	}}
}

func newAccount(cluster string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metaOf(cluster, v1alpha1.MemberAccount)}
}

// accountRights returns the objects on the hub that say what a member's account may do, and how
// much.
func accountRights(cluster string) []client.Object {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: v1alpha1.MemberAccount, Namespace: namespaceOf(cluster)}
	role, binding := newRole(cluster, v1alpha1.MemberAccount, account,
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"gridbundles"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.Group}, Resources: []string{"gridreports"},
			Verbs: []string{"list", "create", "patch", "delete"},
		},
		rbacv1.PolicyRule{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{v1alpha1.HeartbeatLease},
			Verbs: []string{"patch"},
		},
		// Creation cannot be confined to a name. The ResourceQuota bounds it.
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{v1alpha1.MemberAccount},
			Verbs: []string{"create"},
		},
	)
	ownLabels := map[string]string{v1alpha1.LabelCluster: cluster}
	own := metav1.ObjectMeta{Name: clusterRoleOf(cluster), Labels: ownLabels}
	return []client.Object{
		&corev1.ResourceQuota{ObjectMeta: metaOf(cluster, "fleet"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/gridreports." + v1alpha1.Group: *resource.NewQuantity(reportsMax, resource.DecimalSI),
			"count/leases.coordination.k8s.io":    *resource.NewQuantity(leasesMax, resource.DecimalSI),
		}}},
		role, binding,
		&rbacv1.ClusterRole{ObjectMeta: own, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.Group}, Resources: []string{"fleetclusters"}, ResourceNames: []string{cluster},
			Verbs: []string{"get", "list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: own, Subjects: []rbacv1.Subject{account},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: own.Name},
		},
	}
}

// kubeconfigObjects returns the objects that keep a member's kubeconfig on the hub, and give
// the hub's grid-controller, in controllerNamespace of the hub, the rights to do the work of
// the member's agent.
func kubeconfigObjects(cluster, controllerNamespace string, kubeconfig []byte) []client.Object {
	controller := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: controllerAccount, Namespace: controllerNamespace}
	const flux, sources = "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"
	every := []string{"get", "list", "watch", "create", "patch", "delete"}
	role, binding := newRole(cluster, kubeconfigSecret, controller,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{kubeconfigSecret}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{v1alpha1.HeartbeatLease},
			Verbs: []string{"patch"},
		},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"gridreports"}, Verbs: []string{"create", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{sources}, Resources: []string{"externalartifacts"}, Verbs: every},
		rbacv1.PolicyRule{APIGroups: []string{sources}, Resources: []string{"externalartifacts/status"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{flux}, Resources: []string{"kustomizations"}, Verbs: every},
	)
	return []client.Object{
		role, binding,
		&corev1.Secret{ObjectMeta: metaOf(cluster, kubeconfigSecret), Data: map[string][]byte{kubeconfigKey: kubeconfig}},
	}
}

// newRole returns a Role with rights in the namespace of a cluster, and a RoleBinding that
// gives them to subject.
func newRole(cluster, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	return &rbacv1.Role{ObjectMeta: metaOf(cluster, name), Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: metaOf(cluster, name), Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
}

// metaOf returns the metadata of an object in the namespace of a cluster.
func metaOf(cluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespaceOf(cluster), Labels: map[string]string{v1alpha1.LabelCluster: cluster}}
}
