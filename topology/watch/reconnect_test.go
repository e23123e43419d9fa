package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestConnected: what cannot connect is tried again until it can, and every outcome is reported.
func TestConnected(t *testing.T) {
	unconnected := &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	tries, heard := 0, []error(nil)
	note := func(_ context.Context, err error) { heard = append(heard, err) }
	got, err := connected(t.Context(), time.Millisecond, note, func() (int, error) {
		tries++
		if tries < 5 {
			return 0, fmt.Errorf("listing: %w", unconnected)
		}
		return 7, nil
	})
	if got != 7 || err != nil || tries != 5 || len(heard) != 5 || heard[4] != nil || heard[3] == nil {
		t.Errorf("%d, %v after %d tries; heard %v", got, err, tries, heard)
	}
}

// TestConnectedReturns: other errors are client-go's, and the end of a process does not wait.
func TestConnectedReturns(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx context.Context
		err error
	}{
		"a status of the API server": {t.Context(), apierrors.NewTooManyRequests("later", 1)},
		"a connection that died":     {t.Context(), &net.OpError{Op: "read", Err: syscall.ECONNRESET}},
		"the end of the process":     {ended, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
	} {
		tries := 0
		_, err := connected(c.ctx, time.Hour, func(context.Context, error) {}, func() (int, error) {
			tries++
			return 0, c.err
		})
		if !errors.Is(err, c.err) || tries != 1 {
			t.Errorf("%s: %v after %d tries", name, err, tries)
		}
	}
}
