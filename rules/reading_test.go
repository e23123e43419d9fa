package rules

import (
	"context"
	"errors"
	"testing"
)

// TestReading: a reading ends with its Sync or with WithReading, which can be told apart.
func TestReading(t *testing.T) {
	sync, endSync := context.WithCancel(t.Context())
	until, endUntil := context.WithCancel(sync)

	unlimited, end := Reading(sync)
	defer end()
	reading, endReading := Reading(WithReading(sync, until))
	defer endReading()
	if unlimited.Err() != nil || reading.Err() != nil {
		t.Fatal("a reading has ended before its Sync")
	}
	endUntil()
	<-reading.Done()
	if !Interrupted(reading) || unlimited.Err() != nil {
		t.Errorf("interrupted: %v; another reading: %v", context.Cause(reading), unlimited.Err())
	}
	late, endLate := Reading(WithReading(sync, until))
	defer endLate()
	if !Interrupted(late) {
		t.Error("a reading begins after WithReading has ended")
	}
	endSync()
	<-unlimited.Done()
	if Interrupted(unlimited) || !errors.Is(unlimited.Err(), context.Canceled) {
		t.Errorf("the end of a Sync is an interruption: %v", context.Cause(unlimited))
	}
}
