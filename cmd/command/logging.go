package command

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

// NewLog makes a daemon's log in format "text" or "json". Verbosity v shows slog levels down
// to -v, which is where logr puts its V(v): 4 is slog's debug level.
func NewLog(w io.Writer, format string, verbosity int) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// BridgeKlog sends what client-go logs into log. klog is global to the process: only daemons
// call this, once.
func BridgeKlog(log *slog.Logger, verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		return fmt.Errorf("setting the verbosity of klog: %w", err)
	}
	klog.SetSlogLogger(log)
	return nil
}
