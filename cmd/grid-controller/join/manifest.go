package join

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"gridproxy/controller/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

type credentials struct {
	cluster string
	server  string // URL of the hub's API server
	ca      []byte // PEM; empty: the certificates that the member's image trusts
	token   string
	hub     string    // the UID of the hub's Namespace kube-system
	expires time.Time // of the token
}

// manifest returns the YAML that a member applies: the namespace controllerNamespace of its
// grid-controller, and a Secret there with the credentials.
func manifest(c credentials, controllerNamespace string) ([]byte, error) {
	// Those of deploy/namespace.yaml: kubectl apply would take them off a namespace that has them.
	standards := map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged",
		"pod-security.kubernetes.io/audit":   "privileged",
		"pod-security.kubernetes.io/warn":    "privileged",
	}
	var text bytes.Buffer
	for i, o := range []client.Object{
		&corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace, Labels: standards},
		},
		&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.HubSecret, Namespace: controllerNamespace},
			StringData: map[string]string{
				"server": c.server, "ca.crt": string(c.ca), "token": c.token,
				"cluster": c.cluster, "hub": c.hub, "expires": c.expires.UTC().Format(time.RFC3339),
			},
		},
	} {
		fields, err := fieldsOf(o)
		if err != nil {
			return nil, err
		}
		document, err := yaml.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("writing the manifest of the member: %w", err)
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(document)
	}
	return text.Bytes(), nil
}

// isLoopback reports whether a URL leads to the machine of whoever uses it.
func isLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	address, _ := netip.ParseAddr(u.Hostname()) // the zero address is no loopback
	return u.Hostname() == "localhost" || address.IsLoopback()
}

// fieldsOf returns the fields of o as server-side apply and kubectl apply expect them: without
// status, an empty spec and creationTimestamp.
func fieldsOf(o client.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	delete(fields, "status")
	if spec, isMap := fields["spec"].(map[string]any); isMap && len(spec) == 0 {
		delete(fields, "spec")
	}
	if metadata, isMap := fields["metadata"].(map[string]any); isMap {
		delete(metadata, "creationTimestamp")
	}
	return fields, nil
}
