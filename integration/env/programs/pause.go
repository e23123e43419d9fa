package main

import (
	"os"
	"os/signal"
	"syscall"
)

// pause keeps a Pod's namespaces alive: it waits, and ends when it is asked to.
func pause() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
