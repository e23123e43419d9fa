package rules

import (
	"errors"
	"testing"
)

// TestOutcomesWith: a Backend that reports no family leaves no doubt about either.
func TestOutcomesWith(t *testing.T) {
	refused, absent := errors.New("refused"), errors.New("no such table")
	for _, test := range []struct {
		name     string
		reported Outcomes
		err      error
		want     Outcomes
	}{
		{"no error", Outcomes{}, nil, Outcomes{}},
		{"no error, one left out", Outcomes{IPv6: {LeftOut: absent}}, nil, Outcomes{IPv6: {LeftOut: absent}}},
		{"an error of one family", Outcomes{IPv6: {Err: refused}}, refused, Outcomes{IPv6: {Err: refused}}},
		{"an error of no family", Outcomes{}, refused, Outcomes{{Err: refused}, {Err: refused}}},
		{"an error of no family, one left out", Outcomes{IPv6: {LeftOut: absent}}, refused, Outcomes{{Err: refused}, {Err: refused}}},
	} {
		if got := test.reported.With(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestOutcomesJoin: a family is in force only if every Backend holds its part.
func TestOutcomesJoin(t *testing.T) {
	refused, absent := errors.New("refused"), errors.New("no such table")
	got := Outcomes{{Err: refused}, {LeftOut: absent}}.Join(Outcomes{{LeftOut: absent}, {}})
	if got[IPv4].LeftOut != nil || !errors.Is(got[IPv4].Err, refused) || got[IPv4].Synced() {
		t.Errorf("IPv4: %v, want the failure", got[IPv4])
	}
	if got[IPv6].Err != nil || !errors.Is(got[IPv6].LeftOut, absent) || got[IPv6].Synced() {
		t.Errorf("IPv6: %v, want it left out", got[IPv6])
	}
	if got := (Outcomes{}).Join(Outcomes{}); got != (Outcomes{}) || !got[IPv4].Synced() || !got[IPv6].Synced() {
		t.Errorf("two successes: %v", got)
	}
	if !errors.Is(got.Err(), refused) {
		t.Errorf("Err is %v", got.Err())
	}
}
