package join

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gridproxy/controller/api/v1alpha1"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writer is the field manager of what is written here.
const writer = "grid-controller-join"

type hub struct {
	client client.Client
	config *rest.Config
}

// connect prepares requests to the cluster of a kubeconfig; "": the one that kubectl uses.
func connect(kubeconfig string) (hub, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return hub{}, fmt.Errorf("finding the API server of the hub: %w; give --kubeconfig", err)
	}
	c, err := newClient(config)
	return hub{c, config}, err
}

func newClient(config *rest.Config) (client.Client, error) {
	config.QPS = -1 // one person's command; the API server has its own limits
	config.WarningHandler = rest.NoWarnings{}
	config.Timeout = requestTimeout
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, coordinationv1.AddToScheme, authenticationv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("preparing a client: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// ca returns the PEM certificate of the authority that the hub's API server is verified with.
// It is empty if the kubeconfig names none: then an authority that every system trusts verifies
// it.
func (h hub) ca() ([]byte, error) {
	tls := h.config.TLSClientConfig
	switch {
	case tls.Insecure:
		return nil, errors.New("the kubeconfig of the hub has insecure-skip-tls-verify, so the member could not verify the hub: put certificate-authority-data in its place")
	case len(tls.CAData) > 0:
		return tls.CAData, nil
	case tls.CAFile == "":
		return nil, nil
	}
	text, err := os.ReadFile(tls.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificate of the hub: %w", err)
	}
	return text, nil
}

// get reads an object into o; it reports false if the object does not exist.
func (h hub) get(ctx context.Context, o client.Object) (bool, error) {
	return h.exists("reading", o, h.client.Get(ctx, client.ObjectKeyFromObject(o), o))
}

// remove deletes an object; it reports false if the object does not exist.
func (h hub) remove(ctx context.Context, o client.Object) (bool, error) {
	return h.exists("deleting", o, h.client.Delete(ctx, o))
}

// exists reports whether an object exists, by the error of a request. It returns other errors.
func (h hub) exists(doing string, o client.Object, err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, remedied(doing, h.nameOf(o), err)
	}
	return true, nil
}

// apply writes the fields of o, also those that others own. Fields that o does not have stay.
func (h hub) apply(ctx context.Context, o client.Object) error {
	kind, err := h.client.GroupVersionKindFor(o)
	if err != nil {
		return fmt.Errorf("applying %s: %w", o.GetName(), err)
	}
	fields, err := fieldsOf(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	if err := h.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(writer), client.ForceOwnership); err != nil {
		return remedied("applying", h.nameOf(o), err)
	}
	return nil
}

// token makes a token of an account, and returns it with the time when it ends. That may be
// earlier than lifetime asks for.
func (h hub) token(ctx context.Context, account *corev1.ServiceAccount, lifetime time.Duration) (string, time.Time, error) {
	seconds := int64(lifetime.Seconds())
	answer := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := h.client.SubResource("token").Create(ctx, account, answer); err != nil {
		return "", time.Time{}, remedied("making a token of", h.nameOf(account), err)
	}
	return answer.Status.Token, answer.Status.ExpirationTimestamp.Time, nil
}

// nameOf returns the kind and the name of an object, for messages.
func (h hub) nameOf(o client.Object) string {
	kind := "object"
	if k, err := h.client.GroupVersionKindFor(o); err == nil {
		kind = k.Kind
	}
	if o.GetNamespace() != "" {
		return kind + " " + o.GetNamespace() + "/" + o.GetName()
	}
	return kind + " " + o.GetName()
}

// uidOf returns the UID of a cluster's Namespace kube-system, which distinguishes the cluster
// from every other.
func uidOf(ctx context.Context, c client.Client) (string, error) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(system), system); err != nil {
		return "", err
	}
	return string(system.UID), nil
}

// remedied returns an error that says what was being done to which object, and what to do about
// err.
func remedied(doing, object string, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%s %s: the hub does not have our CustomResourceDefinitions: run kubectl apply --server-side -f deploy/crds there, and run this again", doing, object)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s %s: %w; run this with the kubeconfig of an administrator of the hub", doing, object, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s %s: the hub does not accept the credentials of the kubeconfig: give --kubeconfig with valid ones", doing, object)
	default:
		return fmt.Errorf("%s %s: %w", doing, object, err)
	}
}
