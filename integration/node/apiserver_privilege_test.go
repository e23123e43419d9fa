package node

import (
	"errors"
	"os"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const account = "gridproxy"

// minimal is all that the shipped manifest allows the daemon: Services and Nodes, then
// EndpointSlices, then Events.
func minimal(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	const manifest = "../../deploy/gridproxy.yaml"
	text, err := os.ReadFile(manifest)
	must(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err == nil && role.Kind == "ClusterRole" {
			return role.Rules
		}
	}
	t.Fatalf("%s holds no ClusterRole", manifest)
	return nil
}

// TestLeastPrivilege runs the source as a ServiceAccount that may do nothing else.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.fill(5)
	config := w.serviceAccount(minimal(t))
	if _, err := apiserver.ClientForTest(w.t, config).CoreV1().Secrets("").List(w.ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("the account may read Secrets, or is not known: %v", err)
	}
	w.watchAs(config)
	w.settle()
	w.load.change(20)
	w.settle()
}

// TestNothingBeforeEverythingIsRead withholds one kind: closure decided from the others alone would be
// wrong, so there is no Snapshot at all until that kind can be read.
func TestNothingBeforeEverythingIsRead(t *testing.T) {
	t.Parallel()
	for i, kind := range []string{"services and nodes", "endpointslices"} {
		t.Run(kind, func(t *testing.T) {
			w := newWatchedCluster(t)
			w.load.fill(5)
			rules := minimal(t)
			withheld := rules[i]
			rules[i] = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}
			w.watchAs(w.serviceAccount(rules))
			wait.Until(w.t, "the source is refused", func() error {
				w.asked.mu.Lock()
				defer w.asked.mu.Unlock()
				for _, q := range w.asked.all {
					if q.status == 403 {
						return nil
					}
				}
				return errors.New("no request was refused")
			})
			if _, ok := w.source.Snapshot(); ok {
				t.Fatalf("a Snapshot is handed out without %s", kind)
			}
			w.grant([]rbacv1.PolicyRule{withheld}, "rest")
			w.settle()
		})
	}
}

// serviceAccount makes an account that may do so much, and shows its token through the Link.
func (w *watchedCluster) serviceAccount(rules []rbacv1.PolicyRule) *rest.Config {
	w.t.Helper()
	accounts := w.api.CoreV1().ServiceAccounts("default")
	_, err := accounts.Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	must(w.t, err)
	w.grant(rules, "first")
	token, err := accounts.CreateToken(w.ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(w.t, err)
	return w.Bearer(w.link.Addr, token.Status.Token)
}

func (w *watchedCluster) grant(rules []rbacv1.PolicyRule, name string) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Name: account + "-" + name}
	_, err := w.api.RbacV1().ClusterRoles().Create(w.ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(w.t, err)
	_, err = w.api.RbacV1().ClusterRoleBindings().Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
	}, metav1.CreateOptions{})
	must(w.t, err)
}
