package watch

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outage is a period in which the API server does not answer for some kinds of objects. It is
// logged when it begins, when another reason is added, and when it ends.
type outage struct {
	log  *slog.Logger
	loss atomic.Pointer[Loss]     // nil = the API server answers
	over atomic.Pointer[PastLoss] // the last one that has ended; nil = none has

	mu      sync.Mutex
	reasons map[string]metav1.StatusReason // by kind that cannot be read
}

// Loss is since when, and why, a Source cannot be read. The zero value means that it can be.
type Loss struct {
	Since  time.Time
	Reason string
}

// PastLoss is a time without API server that is over.
type PastLoss struct{ Since, End time.Time }

// now returns the present Loss; zero = the API server answers.
func (o *outage) now() Loss {
	if l := o.loss.Load(); l != nil {
		return *l
	}
	return Loss{}
}

// last returns the last PastLoss that has ended; zero = none has.
func (o *outage) last() PastLoss {
	if over := o.over.Load(); over != nil {
		return *over
	}
	return PastLoss{}
}

// drop forgets that a kind fails. The outage ends if no other kind fails. The caller holds mu.
func (o *outage) drop(kind string) {
	_, failing := o.reasons[kind]
	if delete(o.reasons, kind); !failing || len(o.reasons) > 0 {
		return
	}
	over := merged(PastLoss{Since: o.now().Since, End: time.Now()}, o.last())
	o.over.Store(&over)
	o.loss.Store(nil)
	o.log.Info("the API server answers again")
}

func newOutage(log *slog.Logger) *outage {
	return &outage{log: log, reasons: map[string]metav1.StatusReason{}}
}

// heard records the outcome of one request for a kind, unless ctx has ended; nil = no error.
func (o *outage) heard(ctx context.Context, kind string, err error) {
	if isAnswer(err) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil { // asked under the lock: forget comes after the end of ctx
		return
	}
	if err == nil {
		o.drop(kind)
		return
	}
	if len(o.reasons) == 0 {
		o.loss.Store(&Loss{Since: time.Now(), Reason: err.Error()})
	}
	reason := apierrors.ReasonForError(err)
	if !slices.Contains(slices.Collect(maps.Values(o.reasons)), reason) {
		o.log.Warn("the API server does not answer; the known state of the cluster stays in force until it does", "kind", kind, "err", err)
	}
	o.reasons[kind] = reason
}

// forget drops a kind that is not requested any more.
func (o *outage) forget(kind string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(kind)
}

// isAnswer reports whether an error is part of the protocol. After a version that is too old,
// everything is listed. A server that cannot stream the first list (KEP-3157) sends a plain
// one.
func isAnswer(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err)
}
