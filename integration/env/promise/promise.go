// Package promise fails tests in a way that the runner of suites recognizes: what the product
// promises is broken. Such a failure refuses a change at once, while other failures get a second
// try.
package promise

import (
	"fmt"
	"testing"
)

// Promise names what the product promises whatever happens, and however slow the machine is.
type Promise string

// The promises.
const (
	Closure    Promise = "closure"    // clients reach only endpoints of their unit
	Connection Promise = "connection" // connections go on, and new ones are answered
	Answer     Promise = "answer"     // DNS gives no wrong answer
)

// Broken fails the test with a message, below a line that begins with PROMISE. Call it only for
// what a test has observed, such as an answer from another unit, and never because time has
// passed.
func Broken(t testing.TB, p Promise, format string, args ...any) {
	t.Helper()
	fmt.Fprintf(t.Output(), "PROMISE %s is broken\n", p)
	t.Errorf(format, args...)
}
