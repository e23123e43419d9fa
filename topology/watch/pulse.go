package watch

// pulse signals that something has happened at least once since the last receive.
type pulse chan struct{}

func newPulse() pulse { return make(pulse, 1) }

func (p pulse) send() {
	select {
	case p <- struct{}{}:
	default:
	}
}
