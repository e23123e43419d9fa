package host

import "time"

const (
	// listTriesMax is how often a list is requested that changes while the kernel sends it.
	listTriesMax = 5
	// subscribeDelay is the wait before addresses are watched again. It doubles up to
	// subscribeDelayMax.
	subscribeDelay    = 100 * time.Millisecond
	subscribeDelayMax = 10 * time.Second

	// pipeDelay is how long the pipes of a program are read after the program was killed. Only a
	// process that left the program's process group can still hold them.
	pipeDelay = time.Second
	// moduleTimeout bounds loading a module. A good run takes less than a second.
	moduleTimeout = 30 * time.Second

	// settingMax is the size of a setting in bytes, as the kernel prints it.
	settingMax = 4096
	// conntrackMax is the size of the largest conntrack table that we set, as in kube-proxy.
	conntrackMax = 1 << 20

	// recordMax is the size of a record in bytes.
	recordMax = 16 << 10
	// recordedMax is how many settings a record has. Each is in it once, and there are about twenty.
	recordedMax = 64
	// recordsMax is how many network namespaces have a record.
	recordsMax = 64
)
