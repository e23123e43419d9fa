package command

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// ListNames calls add with the names that may follow typed, until add returns false. args are the
// arguments before it. It may ignore ctx: the shell does not wait for it.
type ListNames func(ctx context.Context, args []string, typed string, add func(name string) (more bool)) error

// CompleteNames returns a completion function that offers the names of list that candidates.add
// keeps: those added within completionTimeout and before an error, which it ignores.
func CompleteNames(list ListNames) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		found := candidates{typed: typed, given: args, names: map[string]bool{}}
		listed := make(chan struct{})
		go func() {
			defer close(listed)
			_ = list(ctx, args, typed, found.add) // a shell has no place for an error
		}()
		select {
		case <-listed:
		case <-ctx.Done():
		}
		return found.sorted(), cobra.ShellCompDirectiveNoFileComp
	}
}

// candidates are the names that are offered. A list that is late may still add to it.
type candidates struct {
	typed string
	given []string // are on the command line, and not offered again
	mu    sync.Mutex
	names map[string]bool
}

// add keeps a name if it continues what is typed, isPlain and is not given already. It reports
// whether there is room for more.
func (c *candidates) add(name string) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) < completionsMax && strings.HasPrefix(name, c.typed) && isPlain(name) && !slices.Contains(c.given, name) {
		c.names[name] = true
	}
	return len(c.names) < completionsMax
}

func (c *candidates) sorted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.names))
}

// isPlain reports whether a text can be the name of an object. Only such names are offered: what a
// server answers is anything, and a shell evaluates the command line that it has completed.
func isPlain(name string) bool {
	if name == "" || len(name) > completionMax || name[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("._/-", r)
	})
}

// ServiceForms returns what may be typed for a Service: NAMESPACE/NAME if given, the value of
// --namespace, is "", else NAME; after svc/ or service/, that prefix with NAME. It returns nil
// for a Service in another namespace than given, or, with such a prefix, than current.
func ServiceForms(namespace, name, given, current, typed string) []string {
	for _, prefix := range []string{"svc/", "service/"} {
		if strings.HasPrefix(typed, prefix) {
			if namespace != current {
				return nil
			}
			return []string{prefix + name}
		}
	}
	switch {
	case given == "":
		return []string{namespace + "/" + name}
	case given == namespace:
		return []string{name}
	default:
		return nil
	}
}
