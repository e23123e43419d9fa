package metrics

import "time"

// Saved is what this process has saved for a start without API server.
type Saved struct {
	Writes  int
	Bytes   int64     // of the last write
	Last    time.Time // the last write; zero = none
	Failing bool      // the last attempt failed
}

func newStateMetrics(f factory, kernel Kernel) {
	if kernel.HeldEndpoints != nil {
		f.valueOf("held_endpoints", "Endpoints that are used although they are not ready: they turned so in a wave when the API server came back.",
			func() float64 { return float64(kernel.HeldEndpoints()) })
	}
	if kernel.FromDisk != nil {
		f.gaugeOf("state_from_disk", "1 while the state saved on disk is in force, because the API server has not been read since the start.", kernel.FromDisk)
	}
	if kernel.Saved == nil {
		return
	}
	f.counterOf("state_writes_total", "How often the state for a start without API server was saved.", func() uint64 { return uint64(max(kernel.Saved().Writes, 0)) })
	f.gaugeOf("state_not_saved", "1 if the last attempt to save the state failed.", func() bool { return kernel.Saved().Failing })
	f.valueOf("state_bytes", "Size of the state that was saved last.", func() float64 { return float64(kernel.Saved().Bytes) })
	f.valueOf("state_last_saved_timestamp_seconds", "When the state was saved last, in seconds since 1970; 0 = not since the start.", func() float64 {
		if last := kernel.Saved().Last; !last.IsZero() {
			return float64(last.Unix())
		}
		return 0
	})
}
