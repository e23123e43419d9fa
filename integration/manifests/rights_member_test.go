package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestFleetMember: the token that grid-controller join prints can do what a member needs, for its
// own cluster, and nothing else; joining again ends it, and leaving removes all.
func TestFleetMember(t *testing.T) {
	t.Parallel()
	h := newFleetHub(t)
	h.fails(t, "run this with the kubeconfig of an administrator of the hub", "join", "--cluster", "west", "--kubeconfig", h.stranger(t))
	manifest, _, west := h.join(t, "west")
	_, _, east := h.join(t, "east")
	h.MustKubectl(t, "apply", "--server-side", "-f", fileIn(t, manifest))
	h.MustKubectl(t, "apply", "--server-side", "-f", fileIn(t, manifest))

	must(t, h.objects, create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: fleet-west}}`),
		create(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: fleet-west}}`),
		create(bundles, bundle("fleet-west")), create(bundles, bundle("fleet-east")),
		patch(fleetClusters, "", "west", `{"metadata": {"labels": {"region": "eu"}}}`),
		patch(fleetClusters, "", "west", `{"status": {"clusterUID": "earlier"}}`, "status"))
	member, config := as(t, west)
	t.Run("rights", func(t *testing.T) { h.usesRights(t, member, config) })
	t.Run("again", func(t *testing.T) { h.joinsAgain(t, member) })
	t.Run("push", func(t *testing.T) { h.joinsByPush(t) })
	other, _ := as(t, east)
	must(t, other, get(fleetClusters, "", "east"), get(bundles, "fleet-east", "b"))
	t.Run("leave", h.leaves)
}

func bundle(namespace string) string {
	return `{apiVersion: superedge.io/v1alpha1, kind: GridBundle, metadata: {name: b, namespace: ` + namespace + `}, spec: {digest: "sha256:0", archive: "YQ=="}}`
}

func report(namespace string) string {
	return `{apiVersion: superedge.io/v1alpha1, kind: GridReport, metadata: {name: r, namespace: ` + namespace + `},
spec: {format: 1, from: h/u, kind: DeploymentGrid, namespace: default, name: web}}`
}

func lease(namespace, name string) string {
	return `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: ` + name + `, namespace: ` + namespace + `}}`
}

// usesRights tries each request that the member of west has a right to, and others.
func (h *fleetHub) usesRights(t *testing.T, member dynamic.Interface, config *rest.Config) {
	wait.Until(t, "the quota is known, and the Lease is made", func() error {
		return create(leases, lease("fleet-west", "member")).do(t.Context(), member)
	})
	const annotated = `{"metadata": {"annotations": {"superedge.io/heartbeat": "{}"}}}`
	must(t, member,
		get(fleetClusters, "", "west"), list(fleetClusters, "", "metadata.name=west"),
		get(bundles, "fleet-west", "b"), list(bundles, "fleet-west", ""),
		create(reports, report("fleet-west")), patch(reports, "fleet-west", "r", annotated),
		list(reports, "fleet-west", ""), erase(reports, "fleet-west", "r"), create(reports, report("fleet-west")),
		patch(leases, "fleet-west", "member", annotated),
		create(leases, lease("fleet-west", "second")),
	)
	mustNot(t, member,
		get(fleetClusters, "", "east"), list(fleetClusters, "", ""), list(fleetClusters, "", "metadata.name=east"),
		patch(fleetClusters, "", "west", annotated), patch(fleetClusters, "", "west", `{"status": {"state": "Current"}}`, "status"), erase(fleetClusters, "", "west"),
		get(bundles, "fleet-east", "b"), list(bundles, "", ""),
		patch(bundles, "fleet-west", "b", annotated), create(bundles, strings.Replace(bundle("fleet-west"), "name: b", "name: x", 1)), erase(bundles, "fleet-west", "b"),
		get(reports, "fleet-west", "r"), get(leases, "fleet-west", "member"), list(leases, "fleet-west", ""),
		create(reports, report("fleet-east")), list(reports, "fleet-east", ""), create(leases, lease("fleet-east", "member")),
		patch(leases, "fleet-west", "second", annotated), erase(leases, "fleet-west", "member"),
		get(secrets, "fleet-west", "s"), list(secrets, "fleet-west", ""), list(secrets, "", ""), list(configMaps, "fleet-west", ""), get(configMaps, "fleet-west", "c"),
		create(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: fleet-west}}`),
		list(grids, "", ""), list(deployments, "default", ""), get(plain, "default", "kubernetes"),
	)
	// The quota controller may have counted when its cache did not have the second Lease yet. It counts
	// again when one is deleted.
	wait.Until(t, "the quota refuses a third Lease", func() error {
		third := lease("fleet-west", "third")
		if err := create(leases, third).do(t.Context(), member); err != nil {
			return wait.Check(apierrors.IsForbidden(err), "the answer is %w", err)
		}
		return errors.Join(errNone, erase(leases, "fleet-west", "third").do(t.Context(), h.objects))
	})
	client := apiserver.ClientForTest(t, config)
	h.hasExactly(t, client)
	renewed := h.withToken(t, client, "fleet-west", "member")
	must(t, apiserver.DynamicForTest(t, renewed), get(bundles, "fleet-west", "b"))
	for namespace, account := range map[string]string{"fleet-west": "default", "fleet-east": "member"} {
		if _, err := tokenOf(t, client, namespace, account); !apierrors.IsForbidden(err) {
			t.Errorf("a token of %s in %s: %v", account, namespace, err)
		}
	}
}

func tokenOf(t *testing.T, client kubernetes.Interface, namespace, account string) (*authenticationv1.TokenRequest, error) {
	return client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
}

func (h *fleetHub) withToken(t *testing.T, client kubernetes.Interface, namespace, account string) *rest.Config {
	t.Helper()
	token, err := tokenOf(t, client, namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	return h.Bearer(h.API.Addr, token.Status.Token)
}

// hasExactly compares what the authorizer says of the member of west, in each namespace, with
// what it says of an account without rights.
func (h *fleetHub) hasExactly(t *testing.T, member kubernetes.Interface) {
	t.Helper()
	others := apiserver.ClientForTest(t, h.withToken(t, h.Client, "default", "default"))
	everywhere := []string{"[get list watch] [superedge.io] [fleetclusters] [west]"}
	own := append([]string{
		"[create] [] [serviceaccounts/token] [member]",
		"[create] [coordination.k8s.io] [leases] []",
		"[list create patch delete] [superedge.io] [gridreports] []",
		"[get list watch] [superedge.io] [gridbundles] []",
		"[patch] [coordination.k8s.io] [leases] [member]",
	}, everywhere...)
	for namespace, want := range map[string][]string{"fleet-west": own, "fleet-east": everywhere, "default": everywhere, "kube-system": everywhere, home: everywhere} {
		usual := rules(t, others, namespace)
		got := slices.DeleteFunc(rules(t, member, namespace), func(r string) bool { return slices.Contains(usual, r) })
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("in namespace %s the member may\n%s\nwant\n%s", namespace, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func rules(t *testing.T, account kubernetes.Interface, namespace string) []string {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := account.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Incomplete {
		t.Errorf("the answer for %s is incomplete: %s", namespace, answer.Status.EvaluationError)
	}
	var all []string
	for _, r := range answer.Status.ResourceRules {
		all = append(all, fmt.Sprintf("%v %v %v %v", r.Verbs, r.APIGroups, r.Resources, r.ResourceNames))
	}
	for _, r := range answer.Status.NonResourceRules {
		all = append(all, fmt.Sprintf("%v %v", r.Verbs, r.NonResourceURLs))
	}
	return all
}

// joinsAgain: a second join ends the first token, forgets the cluster, and keeps what others wrote.
func (h *fleetHub) joinsAgain(t *testing.T, before dynamic.Interface) {
	_, said, data := h.join(t, "west")
	if !strings.Contains(said, "every earlier token ends") {
		t.Errorf("it does not say that tokens have ended:\n%s", said)
	}
	wait.Until(t, "the earlier token has ended", func() error {
		err := get(fleetClusters, "", "west").do(t.Context(), before)
		return wait.Check(apierrors.IsUnauthorized(err), "the answer is %w", cmp.Or(err, errNone))
	})
	after, _ := as(t, data)
	must(t, after, get(fleetClusters, "", "west"))
	wait.Until(t, "the quota knows that the Lease has gone, and it is made again", func() error {
		return create(leases, lease("fleet-west", "member")).do(t.Context(), after)
	})
	c, err := h.objects.Resource(fleetClusters).Get(t.Context(), "west", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.GetLabels()["region"] != "eu" {
		t.Errorf("the labels are %v", c.GetLabels())
	}
	if status := fmt.Sprint(c.Object["status"]); strings.Contains(status, "earlier") {
		t.Errorf("the cluster is still remembered: %s", status)
	}
	h.fails(t, "was joined in the other way", "join", "--cluster", "west", "--kubeconfig", h.Kubeconfig(), "--member-kubeconfig", h.stranger(t))
	for _, spec := range []string{`{"pull": null, "kubeConfig": {"secretRef": {"name": "member-kubeconfig"}}}`, `null`} {
		exchange := patch(fleetClusters, "", "west", `{"spec": `+spec+`}`)
		if err := exchange.do(t.Context(), h.objects); !apierrors.IsInvalid(err) {
			t.Errorf("a spec of %s is not refused: %v", spec, err)
		}
	}
	must(t, h.objects, create(corev1.SchemeGroupVersion.WithResource("namespaces"), `{apiVersion: v1, kind: Namespace, metadata: {name: fleet-tenant}}`))
	h.fails(t, "namespace fleet-tenant exists and is not of this cluster", "join", "--cluster", "tenant", "--kubeconfig", h.Kubeconfig())
}

// joinsByPush: the kubeconfig of a member is kept where the hub's grid-controller, and no other
// account, may read it.
func (h *fleetHub) joinsByPush(t *testing.T) {
	other := apiserver.ForTest(t, apiserver.Options{})
	base := []string{"join", "--cluster", "north", "--kubeconfig", h.Kubeconfig(), "--member-kubeconfig"}
	h.fails(t, "it is of the hub itself", append(base, h.Kubeconfig())...)
	h.fails(t, "it is not a kubeconfig", append(base, fileIn(t, "["))...)
	refused := other.Bearer(other.API.Addr, "no-token")
	h.fails(t, "asking the member: ", append(base, apiserver.KubeconfigForTest(t, refused))...)
	out, said, err := h.run(t, append(base, other.Kubeconfig())...)
	if err != nil || out != "" || !strings.Contains(said, "The member answers") {
		t.Fatalf("%v, %q: %s", err, out, said)
	}
	h.MustKubectl(t, "apply", "-f", fileIn(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: grid-controller, namespace: gridproxy}}`), "-f", "../../deploy/federation/hub.yaml")
	h.MustKubectl(t, "apply", "--dry-run=server", "-f", "../../deploy/federation/member.yaml")
	controller := apiserver.DynamicForTest(t, h.withToken(t, h.Client, home, "grid-controller"))
	wait.Until(t, "the API server knows the rights", func() error { return list(fleetClusters, "", "").do(t.Context(), controller) })
	must(t, controller, list(bundles, "", ""), list(reports, "", ""), list(leases, "", ""), patch(fleetClusters, "", "north", `{"metadata": {"labels": {"region": "eu"}}}`),
		get(secrets, "fleet-north", "member-kubeconfig"), create(leases, lease("fleet-north", "member")),
		patch(leases, "fleet-north", "member", `{"metadata": {"labels": {"superedge.io/cluster": "north"}}}`),
		create(reports, report("fleet-north")), erase(reports, "fleet-north", "r"))
	mustNot(t, controller, create(reports, report("fleet-west")), list(kustomizations, "", ""), list(kustomizations, "fleet-west", ""), list(kustomizations, "flux-system", ""),
		list(secrets, "fleet-north", ""), get(secrets, "fleet-west", "s"), get(secrets, home, "fleet-hub"),
		create(leases, lease("kube-system", "member")), patch(leases, "kube-system", "kube-controller-manager", "{}"))
}

// leaves: what join has made goes, after the FleetCluster alone.
func (h *fleetHub) leaves(t *testing.T) {
	must(t, h.objects, patch(fleetClusters, "", "west", `{"metadata": {"finalizers": ["superedge.io/federation"]}}`))
	h.fails(t, "is not gone within 1s, because of its finalizers [superedge.io/federation]", "leave", "--cluster", "west", "--kubeconfig", h.Kubeconfig(), "--timeout", "1s")
	must(t, h.objects, get(leases, "fleet-west", "member"))
	h.fails(t, "FleetCluster west is being deleted", "join", "--cluster", "west", "--kubeconfig", h.Kubeconfig())
	must(t, h.objects, patch(fleetClusters, "", "west", `{"metadata": {"finalizers": null}}`))
	for _, cluster := range []string{"west", "north"} {
		out, said, err := h.run(t, "leave", "--cluster", cluster, "--kubeconfig", h.Kubeconfig())
		if err != nil || !strings.Contains(out, "Namespace fleet-"+cluster+" removed\n") || !strings.Contains(said, "stay there") {
			t.Fatalf("%v:\n%s%s", err, out, said)
		}
		wait.Until(t, "the namespace is gone", func() error {
			_, err := h.Client.CoreV1().Namespaces().Get(t.Context(), "fleet-"+cluster, metav1.GetOptions{})
			return wait.Check(apierrors.IsNotFound(err), "the answer is %w", cmp.Or(err, errNone))
		})
	}
	if _, err := h.Client.RbacV1().ClusterRoles().Get(t.Context(), "grid-fleet-member-west", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRole is not gone: %v", err)
	}
	h.fails(t, "the hub has nothing of this cluster", "leave", "--cluster", "west", "--kubeconfig", h.Kubeconfig())
	h.MustKubectl(t, "delete", "crd", "fleetclusters.superedge.io", "--wait")
	wait.Until(t, "the kind is gone", func() error {
		_, said, err := h.run(t, "join", "--cluster", "west", "--kubeconfig", h.Kubeconfig())
		return wait.Check(err != nil && strings.Contains(said, "kubectl apply --server-side -f deploy/crds"), "%w: %s", cmp.Or(err, errNone), said)
	})
}
