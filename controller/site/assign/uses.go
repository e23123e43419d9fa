package assign

import (
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology"
)

// Uses are the Grids and Services that name label keys of Nodes: Grids in spec.gridUniqKey,
// Services in the annotation topologyKeys. A nil *Uses means that they could not be read.
type Uses struct{ byKey map[string]*sample }

// sample is how many objects there are, and the names of the first ones, sorted.
type sample struct {
	count int
	shown []string
}

func (s *sample) add(name string) {
	s.count++
	if len(s.shown) == shownNamesMax && name > s.shown[shownNamesMax-1] {
		return
	}
	i, _ := slices.BinarySearch(s.shown, name)
	s.shown = slices.Insert(s.shown, i, name)
	s.shown = s.shown[:min(len(s.shown), shownNamesMax)]
}

// String returns the first names, and how many more there are.
func (s *sample) String() string {
	text := strings.Join(s.shown, ", ")
	if s.count > len(s.shown) {
		text += fmt.Sprintf(" and %d more", s.count-len(s.shown))
	}
	return text
}

// NewUses returns Uses that name no key.
func NewUses() *Uses { return &Uses{byKey: map[string]*sample{}} }

// Add adds a user of a key, for example "Service shop/web". Which users a message names does not
// depend on the order of the calls.
func (u *Uses) Add(key, user string) {
	of := u.byKey[key]
	if of == nil {
		of = &sample{}
		u.byKey[key] = of
	}
	of.add(user)
}

// MayName reports whether an object names the key, or is not known not to.
func (u *Uses) MayName(key string) bool { return u == nil || u.byKey[key] != nil }

// why returns in words which objects name the key, or that they could not be read.
func (u *Uses) why(key string) string {
	if u == nil {
		return "it could not be read which Grids and Services name the key " + key
	}
	of := u.byKey[key]
	verb := "names"
	if of.count > 1 {
		verb = "name"
	}
	return fmt.Sprintf("%s %s the key %s", of, verb, key)
}

// NamedKeys are the label keys that one object names.
type NamedKeys struct {
	Keys []string
	// Malformed: the annotation is no valid list. Keys are those that it may mean.
	Malformed bool
}

// KeysOfService reads the keys that close a Service from its annotations, as the node daemon does.
// A malformed annotation names every word in it, so that a typing mistake lets no label go.
func KeysOfService(annotations map[string]string) NamedKeys {
	text, found := annotations[topology.AnnotationKeys]
	if !found {
		return NamedKeys{}
	}
	// Which policy combines the keys does not matter here.
	keys, _, err := topology.ParseKeys(map[string]string{
		topology.AnnotationKeys: text, topology.AnnotationPolicy: string(topology.PolicyOrdered),
	})
	if err == nil {
		return NamedKeys{Keys: slices.DeleteFunc(keys, func(key string) bool { return key == topology.AnyEndpoint })}
	}
	words := strings.FieldsFunc(text[:min(len(text), MaxAnnotation)], func(r rune) bool { return !isKeyRune(r) })
	return NamedKeys{Keys: slices.Compact(slices.Sorted(slices.Values(words[:min(len(words), guessesMax)]))), Malformed: true}
}

func isKeyRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)
}
