package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"
)

// keeping runs a Saver until the test ends, or stop is called.
func keeping(t *testing.T, s *Store) (k *Saver, stop func()) {
	t.Helper()
	k = NewSaver(SaverConfig{Store: s}, topology.Snapshot{})
	end := start(t, k.Run)
	return k, func() { end(); k.Flush() }
}

// TestFewWrites: with a change each second for an hour, flash memory is written once a minute.
func TestFewWrites(t *testing.T) {
	s := storeWith(t)
	synctest.Test(t, func(t *testing.T) {
		k, stop := keeping(t, s)
		var bytes int64
		for i, writes := 0, 0; i < 3600; i++ {
			k.Enforced(savedNamed(fmt.Sprintf("service-%d", i)))
			time.Sleep(time.Second)
			synctest.Wait()
			if kept := k.Stats(); kept.Writes > writes {
				writes, bytes = kept.Writes, bytes+kept.Bytes
			}
		}
		kept := k.Stats()
		t.Logf("%d writes, %d bytes", kept.Writes, bytes)
		if kept.Writes < 59 || kept.Writes > 61 || kept.Err != nil {
			t.Errorf("%d writes, want 60: %v", kept.Writes, kept.Err)
		}
		stop()
		wantLoaded(t, s, "service-3599")
	})
}

// TestNothingIsWrittenAtRest: the same content is not written again, nor is what came from disk.
func TestNothingIsWrittenAtRest(t *testing.T) {
	s := storeWith(t)
	synctest.Test(t, func(t *testing.T) {
		k, _ := keeping(t, s)
		snapshot := savedNamed("one")
		k.Enforced(snapshot)
		time.Sleep(firstWrite - time.Millisecond)
		synctest.Wait()
		if got := k.Stats().Writes; got != 0 {
			t.Errorf("%d writes before %s", got, firstWrite)
		}
		for range 24 {
			time.Sleep(time.Hour)
			k.Enforced(snapshot)
		}
		read, _, _ := s.Load()
		k.Enforced(read.Snapshot)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := k.Stats().Writes; got != 1 {
			t.Errorf("%d writes of one state", got)
		}
	})
}

// TestSaverGoesOn: a write that fails is reported once and tried again each minute.
func TestSaverGoesOn(t *testing.T) {
	s := storeWith(t)
	blocked := filepath.Dir(s.dir)
	must(t, os.WriteFile(blocked, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		k, _ := keeping(t, s)
		k.Enforced(savedNamed("one"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if kept := k.Stats(); kept.Err == nil || !strings.Contains(kept.Err.Error(), "not a directory") || kept.Writes != 0 {
			t.Errorf("%+v", kept)
		}
		must(t, os.Remove(blocked))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if kept := k.Stats(); kept.Err != nil || kept.Writes != 1 || kept.Bytes == 0 {
			t.Errorf("%+v", kept)
		}
		wantLoaded(t, s, "one")
	})
}
