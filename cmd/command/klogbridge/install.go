package klogbridge

import (
	"flag"
	"fmt"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

// Install sends what client-go logs, up to a verbosity of klog, into log. klog is global to the
// process: only daemons call this, once.
func Install(log *slog.Logger, verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		return fmt.Errorf("setting the verbosity of klog: %w", err)
	}
	klog.SetSlogLogger(log)
	return nil
}
