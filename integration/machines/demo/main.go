package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gridproxy/integration/need"
	"gridproxy/integration/play"
)

func main() { os.Exit(play.Run("cluster-demo", demo, os.Stdout, os.Stderr)) }

// demo is the whole story, top to bottom.
func demo(ctx context.Context, out io.Writer) (err error) {
	if missing := need.MissingCluster(); missing != "" {
		return errors.New(missing)
	}
	dir, err := os.MkdirTemp("", "gridproxy-cluster-")
	if err != nil {
		return fmt.Errorf("making a folder for the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &stage{out: out, dir: dir, began: time.Now()}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, step := range []func(context.Context) error{
		s.build, s.start, s.install, s.apply, s.show, s.ask,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
