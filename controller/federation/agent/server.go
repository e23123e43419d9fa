package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server gives Flux the archives of the copies. Every replica of grid-controller serves, whether it
// leads or not: it reads a copy for each request. The digest in the path is the key: a client that
// does not know it gets nothing.
type Server struct {
	Listener net.Listener
	Reader   client.Reader // reads from the API server
	Log      *slog.Logger
}

// NeedLeaderElection returns false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends, and then returns nil.
func (s *Server) Start(ctx context.Context) error {
	limiter := newLimiter(time.Now)
	server := &http.Server{
		ReadHeaderTimeout: fetchTimeout, ReadTimeout: fetchTimeout, WriteTimeout: fetchTimeout, IdleTimeout: fetchTimeout, MaxHeaderBytes: 8 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			leave, admitted := limiter.enter(r.RemoteAddr)
			if !admitted {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "too many archives are being fetched: try again", http.StatusTooManyRequests)
				return
			}
			defer leave()
			s.serve(w, r)
		}),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving archives to Flux at %s: %w", s.Listener.Addr(), err)
	}
	return nil
}

// archivePath returns the path of an archive: /NAMESPACE/COPY/DIGEST.tar.gz, without sha256:.
func archivePath(namespace, copied, digest string) string {
	return "/" + namespace + "/" + copied + "/" + strings.TrimPrefix(digest, "sha256:") + ".tar.gz"
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet && r.Method != http.MethodHead || len(parts) != 3 || !strings.HasSuffix(parts[1], copyName("")) {
		http.NotFound(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	var bundle v1alpha1.GridBundle
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: parts[0], Name: parts[1]}, &bundle)
	switch {
	case apierrors.IsNotFound(err), err == nil && archivePath(parts[0], parts[1], bundle.Spec.Digest) != r.URL.Path:
		http.NotFound(w, r)
	case err != nil:
		s.Log.Warn("an archive cannot be served to Flux, which tries again", "path", r.URL.Path, "err", err)
		http.Error(w, "the archive cannot be read: try again", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(bundle.Spec.Archive)))
		_, _ = w.Write(bundle.Spec.Archive) // Flux checks the digest
	}
}
