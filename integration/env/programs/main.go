package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	switch name {
	case "pause":
		pause()
		return nil
	case "echo", "echo-client":
		return echo(args)
	case "start":
		return startKubeProxy()
	}
	return machine(args)
}

func machine(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "enter":
		config, err := readConfig(args[1])
		if err != nil {
			return err
		}
		return enter(config, "/proc/self/exe", "run", args[1])
	case len(args) == 2 && args[0] == "run":
		config, err := readConfig(args[1])
		if err != nil {
			return err
		}
		return boot(config)
	case len(args) == 3 && args[0] == "groups":
		groups, err := newCgroups(args[1], args[2])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(groups)
	case len(args) == 2 && args[0] == "remove":
		return removeCgroups(args[1])
	case len(args) >= 2 && args[0] == "sweep":
		return sweep(os.Stdin, args[1], args[2:])
	}
	return errors.New("usage: enter|run CONFIG, groups NAME PART, remove NAME, sweep NAME DIR...; or call it pause, echo or start")
}

// pause keeps a Pod's namespaces alive: it waits, and ends on a signal.
func pause() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
