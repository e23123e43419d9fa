package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gridproxy/integration/env/need"
)

// Show is the whole story, top to bottom.
func (s *machinesStage) Show(ctx context.Context, out io.Writer) (err error) {
	if missing := need.MissingCluster(); missing != "" {
		return errors.New(missing)
	}
	s.out, s.began = out, time.Now()
	if s.dir, err = os.MkdirTemp("", "gridproxy-cluster-"); err != nil {
		return fmt.Errorf("making a folder for the cluster: %w", err)
	}
	for _, step := range []func(context.Context) error{
		s.build, s.start, s.install, s.apply, s.show, s.ask,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
