package join

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfigWith is a kubeconfig with one cluster and one user.
func kubeconfigWith(cluster, user string) string {
	return `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {` + cluster + `}}], users: [{name: u, user: {` + user + `}}],
  contexts: [{name: x, context: {cluster: c, user: u}}, {name: dangling, context: {cluster: gone, user: u}}]}`
}

// TestPortable: a kubeconfig that can be used elsewhere, and by a program, is kept; each other one
// has a reason.
func TestPortable(t *testing.T) {
	const server = `server: "https://10.0.0.1:6443"`
	many := strings.Replace(kubeconfigWith(server, `token: a`), "contexts: [", "contexts: [{name: z, context: {cluster: c, user: u}}, ", 1)
	for _, test := range []struct{ name, text, want string }{
		{"a token", kubeconfigWith(server, `token: a`), ""},
		{"a certificate", kubeconfigWith(server, `client-certificate-data: YQ==, client-key-data: YQ==`), ""},
		{"a password", kubeconfigWith(server, `username: a, password: b`), ""},
		{"no text", "", "no context with both"},
		{"another text", "[1, 2]", "it is not a kubeconfig"},
		{"two contexts", many, "it has 2 contexts (x, z): want one"},
		{"no server", kubeconfigWith("", `token: a`), "no context with both a server and a user"},
		{"no credentials", kubeconfigWith(server, ``), "it has no credentials"},
		{"half a certificate", kubeconfigWith(server, `client-certificate-data: YQ==`), "it has no credentials"},
		{"a program", kubeconfigWith(server, `exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}`), "a program that logs in"},
		{"an old program", kubeconfigWith(server, `auth-provider: {name: gcp}`), "a program that logs in"},
		{"a file with a token", kubeconfigWith(server, `tokenFile: /tmp/token`), "files with credentials"},
		{"a file with a key", kubeconfigWith(server, `client-certificate-data: YQ==, client-key: /tmp/key`), "files with credentials"},
		{"a file with a CA", kubeconfigWith(server+`, certificate-authority: /tmp/ca`, `token: a`), "file of a CA certificate"},
		{"no verification", kubeconfigWith(server+`, insecure-skip-tls-verify: true`, `token: a`), "insecure-skip-tls-verify"},
		{"too long", strings.Repeat(" ", kubeconfigMax+1), "want at most 262144"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kept, err := portable([]byte(test.text))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(kept)
			if err != nil || config.Host != "https://10.0.0.1:6443" {
				t.Errorf("what is kept cannot be used: %v\n%s", err, kept)
			}
			if again, err := portable(kept); err != nil || string(again) != string(kept) {
				t.Errorf("a second time it is not the same: %v\n%s", err, again)
			}
		})
	}
}
