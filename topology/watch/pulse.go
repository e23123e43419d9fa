package watch

// pulse tells that something happened at least once since it was last received from.
type pulse chan struct{}

func newPulse() pulse { return make(pulse, 1) }

func (p pulse) send() {
	select {
	case p <- struct{}{}:
	default:
	}
}
