package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	rebind        = 5 * time.Second // between two attempts to open a port, as in kube-proxy
	headerTimeout = 10 * time.Second
	lastAnswers   = 2 * time.Second // for requests in progress when the daemon ends
)

// server is an HTTP server. The daemon can do without, unless hardFail is set: a port that is in
// use is reported and retried, as in kube-proxy.
type server struct {
	name     string // "health", "metrics", "status"
	flag     string // where the address comes from
	addr     string // "" = not served
	remedy   string // what to do if it cannot be listened at addr
	listen   func(ctx context.Context, addr string) (net.Listener, error)
	serving  func() *http.Server // makes one that can be used once
	hardFail bool                // a failure is an error of run
}

// portServer returns a server of handler at a TCP port.
func portServer(name, flag, addr string, handler http.Handler, hardFail bool) server {
	return server{
		name: name, flag: flag, addr: addr, remedy: "free the port", hardFail: hardFail,
		listen: func(ctx context.Context, addr string) (net.Listener, error) {
			return (&net.ListenConfig{}).Listen(ctx, "tcp", listenAddr(addr))
		},
		serving: func() *http.Server { return &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout} },
	}
}

// run serves until ctx ends, and tries again after each failure. It calls failed each time that
// the reason changes. It returns an error only with hardFail, at the first failure.
func (s server) run(ctx context.Context, failed func(error)) error {
	reported := ""
	for s.addr != "" && ctx.Err() == nil {
		err := s.serve(ctx)
		if err != nil && err.Error() != reported {
			reported = err.Error()
			failed(err)
		}
		if err != nil && s.hardFail {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(rebind):
		}
	}
	return nil
}

func (s server) serve(ctx context.Context) error {
	listener, err := s.listen(ctx, s.addr)
	if err != nil {
		err = fmt.Errorf("starting the %s server: %w; %s or change --%s", s.name, err, s.remedy, s.flag)
		if s.hardFail {
			return fmt.Errorf("%w; this is fatal because of --bind-address-hard-fail", err)
		}
		return fmt.Errorf("%w; tried again every %s", err, rebind)
	}
	h := s.serving()
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		_ = h.Shutdown(grace) // a client that does not read cannot delay the end
	})
	if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving %s at %s: %w", s.name, s.addr, err)
	}
	<-closed // Serve returns before the last answers are out
	return nil
}

// listenAddr returns addr, or ":PORT" for the unspecified address: it listens on both families.
func listenAddr(addr string) string {
	if ap, err := netip.ParseAddrPort(addr); err == nil && ap.Addr().IsUnspecified() {
		return ":" + strconv.Itoa(int(ap.Port()))
	}
	return addr
}

// newMetricsHandler serves kube-proxy's paths of --metrics-bind-address, pprof if profiling.
func newMetricsHandler(metrics prometheus.Gatherer, mode string, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{DisableCompression: true /* its buffers are 1 MB */}))
	plain := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			fmt.Fprint(w, text)
		})
	}
	plain("/proxyMode", mode)
	plain("/healthz", "ok")
	if profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}
