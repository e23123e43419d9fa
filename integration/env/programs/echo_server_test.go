package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestServer(t *testing.T) {
	env := map[string]string{"NODE_NAME": "bj-1", "POD_NAME": "echo-0"}
	s := newServer(func(key string) string { return env[key] })
	web := s.routes(8080)
	for _, c := range []struct {
		path string
		code int
		want []string
	}{
		{"/", http.StatusOK, []string{"node name:\tbj-1\n", "pod name:\techo-0\n", "client_address=192.0.2.1:1234\n", "request_port=8080\n"}},
		{"/hostname", http.StatusOK, []string{"echo-0"}},
		{"/clientip", http.StatusOK, []string{"192.0.2.1:1234"}},
		{"/echo?msg=hello+you", http.StatusOK, []string{"hello you"}},
		{"/healthz", http.StatusOK, nil},
		{"/ready?on=false", http.StatusOK, nil},
		{"/healthz", http.StatusServiceUnavailable, nil},
		{"/ready?on=true", http.StatusOK, nil},
		{"/healthz", http.StatusOK, nil},
	} {
		answer := httptest.NewRecorder()
		web.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil))
		if answer.Code != c.code {
			t.Errorf("%s: %d, want %d", c.path, answer.Code, c.code)
		}
		for _, text := range c.want {
			if !strings.Contains(answer.Body.String(), text) {
				t.Errorf("%s: no %q in %q", c.path, text, answer.Body)
			}
		}
	}
	for message, want := range map[string]string{
		"hostname": "echo-0", "clientip\n": "[fd00::1]:5", "node": "bj-1", "port": "9090", "echo a b": "a b",
	} {
		if got := s.answer(message, "[fd00::1]:5", 9090); got != want {
			t.Errorf("to %q it answers %q, want %q", message, got, want)
		}
	}
	if err := s.listen("8080/quic"); err == nil || !strings.Contains(err.Error(), "8080/quic") {
		t.Errorf("PORTS with an unknown protocol: %v", err)
	}
}

func TestPlain(t *testing.T) {
	for address, want := range map[string]string{
		"[::ffff:10.0.0.1]:80": "10.0.0.1:80", "10.0.0.1:80": "10.0.0.1:80", "[fe80::1%eth0]:80": "[fe80::1]:80", "pipe": "pipe",
	} {
		if got := plain(address); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}
