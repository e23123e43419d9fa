package clusterlist

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// listTimeout is how long the API server may take to list one kind.
const listTimeout = 30 * time.Second

// Each calls do for the objects of one kind, which are read in pages. what names them in the
// error, server the API server. Before an error it may have called do for some of them.
func Each[T runtime.Object](ctx context.Context, server, what string, o metav1.ListOptions, page pager.ListPageFunc, do func(T)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("no answer within %s", listTimeout))
	defer cancel()
	err := pager.New(page).EachListItem(ctx, o, func(item runtime.Object) error {
		do(item.(T))
		return nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("listing %s of API server %s: %w", what, server, err)
	}
	return nil
}
