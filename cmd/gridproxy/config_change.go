package main

import (
	"fmt"
	"log/slog"
	"os"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology/regularfile"
	"gridproxy/topology/watch"

	"github.com/spf13/pflag"
)

// configWatch returns how to watch the file of --config. It returns nil if there is none, or if
// it is a pipe, which cannot be read again.
func configWatch(in *inputs, log *slog.Logger) *watch.FileConfig {
	if in.ConfigFile == "" {
		return nil
	}
	if info, err := os.Stat(in.ConfigFile); err == nil && regularfile.Check(info) != nil {
		log.Info("--config is no regular file, so that a change of it is not noticed", "file", in.ConfigFile)
		return nil
	}
	return &watch.FileConfig{
		Path: in.ConfigFile, Text: in.config,
		Read:   func() ([]byte, error) { return regularfile.Read(in.ConfigFile, options.MaxConfigBytes) },
		Accept: func(text []byte) error { return in.acceptConfig(text) },
		Report: func(err error) {
			if err == nil {
				log.Info("--config can be read again, and has not changed", "file", in.ConfigFile)
				return
			}
			log.Warn("--config cannot be watched well; what was read at the start stays in force", "file", in.ConfigFile, "err", err)
		},
	}
}

// acceptConfig returns an error if this daemon would not start with this text of --config. One
// mistake in a ConfigMap must not end the daemons of all Nodes that read it.
func (in *inputs) acceptConfig(text []byte) error {
	o := in.given
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	in.flags.Visit(func(given *pflag.Flag) {
		if f := flags.Lookup(given.Name); f != nil {
			f.Changed = true // so that it wins over its field
		}
	})
	_, err := options.SetConfig(in.ConfigFile, text, flags)
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		return fmt.Errorf("its new content would be refused at the start, so this process goes on with the old one; correct the file: %w", err)
	}
	return nil
}
