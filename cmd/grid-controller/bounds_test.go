package main

import (
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestBounds: each flag with a duration, a path or an address has a bound, or a reason.
func TestBounds(t *testing.T) {
	const (
		read = "a file that people name to commands too, from their folder; one that is missing is an error with its name"
		name = "the name of an object, which the API server checks"
	)
	commandtest.Bounds(t, newRoot, map[string]commandtest.FlagBound{
		"leader-elect-lease-duration": {Beyond: "1h0m1s"},
		"leader-elect-renew-deadline": {Beyond: "15s"}, // the duration of the Lease
		"leader-elect-retry-period":   {Beyond: "9s"},
		"unit-removal-grace":          {Beyond: "-1s"}, // without an end, because never is taken too
		"token-lifetime":              {Beyond: "87600h"},
		"timeout":                     {Beyond: "1h0m1s"},

		"kubeconfig":        {Why: read},
		"member-kubeconfig": {Why: read},
		"filename":          {Why: read},

		"artifact-bind-address": {Beyond: ":9790"},
		"healthz-bind-address":  {Beyond: ":8081"},
		"metrics-bind-address":  {Beyond: ":8080"},
		"artifact-url":          {Beyond: "grid-artifacts"},
		"server":                {Beyond: "http://hub.example.com"},

		"accept-namespaces":               {Beyond: "A"},
		"namespaces":                      {Beyond: "A"},
		"join namespace":                  {Beyond: "A"},
		"expand namespace":                {Why: name},
		"default-node-unit":               {Why: name},
		"leader-elect-resource-name":      {Why: name},
		"leader-elect-resource-namespace": {Why: name},
		"unit-removal-budget":             {Beyond: "101%"},
	})
}
