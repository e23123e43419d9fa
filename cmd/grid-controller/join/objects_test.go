package join

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// golden compares a text with a file of testdata. With UPDATE=1 it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// documents are objects as a file.
func documents(t *testing.T, all ...client.Object) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, o := range all {
		fields, err := fieldsOf(o)
		if err != nil {
			t.Fatal(err)
		}
		one, err := yaml.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "--- # %s\n", strings.TrimPrefix(fmt.Sprintf("%T", o), "*"))
		text.Write(one)
	}
	return text.Bytes()
}

// TestHubObjects: what is on the hub for a cluster of each kind.
func TestHubObjects(t *testing.T) {
	golden(t, "pull.yaml", documents(t, append([]client.Object{newNamespace("west"), newPullCluster("west"), newAccount("west")}, accountRights("west")...)...))
	golden(t, "push.yaml", documents(t, append([]client.Object{newNamespace("north"), newPushCluster("north")},
		kubeconfigObjects("north", "gridproxy", []byte("a kubeconfig\n"))...)...))
}

// TestManifest: what a member applies.
func TestManifest(t *testing.T) {
	text, err := manifest(credentials{
		cluster: "west", server: "https://hub.example.com:6443", ca: []byte("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"),
		token: "eyJ.a.b", hub: "0b2f7c0e-5b7a-4a57-8a3c-6a3f8a5b1c11", expires: time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("", 7200)),
	}, "gridproxy")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "member.yaml", text)
}

// TestNamespaceKeepsItsLabels: applying the manifest after deploy/namespace.yaml changes nothing.
func TestNamespaceKeepsItsLabels(t *testing.T) {
	text, err := manifest(credentials{}, defaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "---\n")
	deployed, err := os.ReadFile("../../../deploy/namespace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got, want corev1.Namespace
	if err := yaml.Unmarshal([]byte(first), &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(deployed, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deploy/namespace.yaml and the manifest differ (-deploy +manifest):\n%s", diff)
	}
}

// TestRightsAreOfOneCluster: whatever the name of a cluster, its account has rights in its own
// namespace, and cluster-wide on its own FleetCluster alone.
func TestRightsAreOfOneCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,54}[a-z0-9])?`).Draw(t, "name")
		if err := nameFault(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, o := range accountRights(name) {
			if role, is := o.(*rbacv1.ClusterRole); is {
				for _, rule := range role.Rules {
					if diff := cmp.Diff([]string{name}, rule.ResourceNames); diff != "" {
						t.Fatalf("%v is not confined to the cluster", rule)
					}
				}
				continue
			}
			if _, is := o.(*rbacv1.ClusterRoleBinding); !is && o.GetNamespace() != v1alpha1.NamespacePrefix+name {
				t.Fatalf("%T %s is in namespace %q", o, o.GetName(), o.GetNamespace())
			}
		}
	})
}

// TestClusterNames: what is no name has a reason.
func TestClusterNames(t *testing.T) {
	for name, want := range map[string]string{
		"west": "", strings.Repeat("a", 57): "",
		"":                      "--cluster is not given",
		strings.Repeat("a", 58): "58 characters: want at most 57",
		"West":                  `--cluster "West": want lower-case letters`,
		"a.b":                   `--cluster "a.b": want lower-case letters`,
		"-a":                    `--cluster "-a": want lower-case letters`,
		"a\x1b[31m":             `--cluster "a\x1b[31m": want lower-case letters`,
	} {
		err := nameFault(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// TestLoopback: which servers lead to the machine of whoever uses them.
func TestLoopback(t *testing.T) {
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://[::1]:6443": true, "https://localhost": true,
		"https://10.0.0.1:6443": false, "https://hub.example.com": false, "::": false,
	} {
		if got := isLoopback(server); got != want {
			t.Errorf("%s: %t", server, got)
		}
	}
}
