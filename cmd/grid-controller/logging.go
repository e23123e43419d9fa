package main

import (
	"log/slog"

	"gridproxy/cmd/command/klogbridge"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// bridgeLogs sends what client-go and controller-runtime log into log. Both are global to the
// process: only run calls this, once.
func bridgeLogs(log *slog.Logger, verbosity int) error {
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	return klogbridge.Install(log, verbosity)
}
