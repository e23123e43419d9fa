package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The delay switch: the longest time that a write is held, such as 800ms, and the seed of the
// times.
const (
	envDelay     = "GRIDPROXY_TEST_DELAY"
	envDelaySeed = "GRIDPROXY_TEST_DELAY_SEED"
)

// delay holds writes for random times, so that a test fails which relies on a write that is quick.
type delay struct {
	longest time.Duration

	mu     sync.Mutex
	random *rand.Rand
}

func isDelayed() bool { return os.Getenv(envDelay) != "" }

// newDelay reads the switch, and prints the seed. Without the switch it holds nothing.
func newDelay() (*delay, error) {
	if !isDelayed() {
		return &delay{}, nil
	}
	longest, err := time.ParseDuration(os.Getenv(envDelay))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", envDelay, err)
	}
	seed := rand.Uint64()
	if text := os.Getenv(envDelaySeed); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("reading %s: %w", envDelaySeed, err)
		}
	}
	fmt.Fprintf(os.Stderr, "each write is held for up to %s; again with %s=%d\n", longest, envDelaySeed, seed)
	return &delay{longest: longest, random: rand.New(rand.NewPCG(seed, 0))}, nil
}

// hold returns after a random part of the longest time, or with the error of ctx when that ends
// before.
func (d *delay) hold(ctx context.Context) error {
	if d.longest <= 0 {
		return nil
	}
	d.mu.Lock()
	part := time.Duration(d.random.Int64N(int64(d.longest)))
	d.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(part):
		return nil
	}
}

// Undelayed turns the switch off for a test that cannot pass with it, and stands in its first
// line. why says what the test relies on. TestDelayed of integration/suites counts these tests.
func Undelayed(t testing.TB, why string) {
	t.Helper()
	if isDelayed() {
		t.Logf("no write is held: %s", why)
		t.Setenv(envDelay, "")
	}
}
