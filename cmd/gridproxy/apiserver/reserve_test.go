package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gridproxy/cmd/gridproxy/options"
)

// TestReservedAPIServers: the options of the rules have the addresses of the daemon's API servers,
// from every source of addresses.
func TestReservedAPIServers(t *testing.T) {
	kubeconfig := func(server string) string {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + server + "\"}}]\n" +
			"users: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	for _, tc := range []struct {
		options options.Options
		want    string
	}{
		{options.Options{}, "[10.96.0.1:443]"},
		{options.Options{APIServers: []string{"192.0.2.1:6443", "api.example.com:6443", "[fd00::1]:6443", "192.0.2.1:6443"}}, "[192.0.2.1:6443 [fd00::1]:6443]"},
		{options.Options{Kubeconfig: kubeconfig("https://192.0.2.1:6443/path")}, "[192.0.2.1:6443]"},
		{options.Options{Kubeconfig: kubeconfig("https://[fd00::1]")}, "[[fd00::1]:443]"},
		{options.Options{Kubeconfig: kubeconfig("http://127.0.0.1")}, "[127.0.0.1:80]"},
		{options.Options{Kubeconfig: kubeconfig("https://api.example.com:6443")}, "[]"},
		{options.Options{Kubeconfig: "/nowhere"}, "[]"},
		{options.Options{Manifests: []string{"-"}}, "[]"},
	} {
		if got := fmt.Sprint(RulesConfig(tc.options).APIServers); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.options, got, tc.want)
		}
	}
}
