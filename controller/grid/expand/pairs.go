package expand

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Pairs are names with values, such as labels, in one string. A map costs ten times as much, and
// there are several for each child. The zero value is empty. Equal pairs compare equal.
type Pairs struct {
	text string // for each pair, sorted: the length of the name, the name, the length of the value, the value
}

// MakePairs returns the pairs of a map.
func MakePairs(m map[string]string) Pairs {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(m)) {
		for _, s := range []string{name, m[name]} {
			text = append(binary.AppendUvarint(text, uint64(len(s))), s...)
		}
	}
	return Pairs{string(text)}
}

// All returns the pairs, sorted by name.
func (p Pairs) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := p.text; rest != ""; {
			var name, value string
			name, rest = firstOf(rest)
			value, rest = firstOf(rest)
			if !yield(name, value) {
				return
			}
		}
	}
}

// firstOf returns the first of the strings in a text, and the text after it.
func firstOf(text string) (string, string) {
	length, size := binary.Uvarint([]byte(text[:min(len(text), binary.MaxVarintLen64)]))
	return text[size : size+int(length)], text[size+int(length):] //nolint:gosec // it was the length of a string
}

// Lookup returns the value of a name, and whether there is one.
func (p Pairs) Lookup(name string) (value string, found bool) {
	for n, v := range p.All() {
		if n == name {
			return v, true
		}
	}
	return "", false
}

// Get returns the value of a name; "" without one.
func (p Pairs) Get(name string) string {
	value, _ := p.Lookup(name)
	return value
}

// Map returns a map of the pairs.
func (p Pairs) Map() map[string]string { return maps.Collect(p.All()) }

// String returns the pairs for messages and tests, such as "a=1,b=2".
func (p Pairs) String() string {
	var all []string
	for name, value := range p.All() {
		all = append(all, name+"="+value)
	}
	return strings.Join(all, ",")
}
