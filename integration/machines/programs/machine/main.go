// Command machine is pid 1 of a machine of package machines, and the process that cleans up behind it.
//
//	machine enter CONFIG       moves into its control groups and becomes the following
//	machine run CONFIG         boots
//	machine sweep NAME DIR...  removes control groups and folders once standard input ends
package main

import (
	"errors"
	"fmt"
	"os"

	"gridproxy/integration/machines/boot"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: machine enter|run CONFIG, machine sweep NAME DIR")
	}
	if args[0] == "sweep" {
		return boot.Sweep(os.Stdin, args[1], args[2:])
	}
	config, err := boot.Read(args[1])
	if err != nil {
		return err
	}
	if args[0] == "enter" {
		return boot.Enter(config, "/proc/self/exe", "run", args[1])
	}
	return boot.Run(config)
}
