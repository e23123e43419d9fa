package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
)

// complete is what a shell gets for what is typed.
func complete(t *testing.T, list ListNames, args []string, typed string) []string {
	t.Helper()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	names, directive := CompleteNames(list)(cmd, args, typed)
	if directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("directive %d offers files", directive)
	}
	return names
}

// TestCandidatesArePlain: no name that a shell evaluates or a terminal obeys is offered.
func TestCandidatesArePlain(t *testing.T) {
	list := func(_ context.Context, _ []string, _ string, add func(string) bool) error {
		for _, name := range []string{
			"web", "a/b.c_d-1", "", "-o", "x\x1b[31m", "x\ty", "x\ny", "x y", "$(id)", "`id`", "x;y", "x'y", `x"y`, "caf\u00e9", "x\u202ey", "x\xff", "web",
		} {
			add(name)
		}
		return errors.New("the rest cannot be read")
	}
	if got := complete(t, list, nil, ""); !slices.Equal(got, []string{"a/b.c_d-1", "web"}) {
		t.Errorf("offered: %q", got)
	}
	if got := complete(t, list, []string{"web"}, "w"); len(got) > 0 {
		t.Errorf("offered again: %q", got)
	}
}

// TestCandidatesAreBounded: at most completionsMax names, and no more of the list is read.
func TestCandidatesAreBounded(t *testing.T) {
	asked := 0
	got := complete(t, func(_ context.Context, _ []string, _ string, add func(string) bool) error {
		for add(fmt.Sprintf("x%d", asked)) {
			asked++
		}
		return nil
	}, nil, "x")
	if len(got) != completionsMax || asked != completionsMax-1 {
		t.Errorf("%d names of %d", len(got), asked)
	}
}

// TestCandidatesInTime: a list that hangs, whatever its context says, does not hold up the shell.
func TestCandidatesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		got := complete(t, func(_ context.Context, _ []string, _ string, add func(string) bool) error {
			add("early")
			<-release
			add("late")
			return nil
		}, nil, "")
		if !slices.Equal(got, []string{"early"}) {
			t.Errorf("offered: %q", got)
		}
	})
}
