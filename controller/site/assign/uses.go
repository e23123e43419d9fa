package assign

import (
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology"
)

// Uses are the Grids and Services that name label keys of Nodes: Grids in spec.gridUniqKey,
// Services in the annotation topologyKeys. A nil *Uses means that they could not be read.
type Uses struct{ byKey map[string]*users }

// users are the users of one key. shown are the first ones, sorted.
type users struct {
	count int
	shown []string
}

// NewUses returns Uses that name no key.
func NewUses() *Uses { return &Uses{byKey: map[string]*users{}} }

// Add adds a user of a key, for example "Service shop/web". Which users a message names does not
// depend on the order of the calls.
func (u *Uses) Add(key, user string) {
	of := u.byKey[key]
	if of == nil {
		of = &users{}
		u.byKey[key] = of
	}
	of.count++
	if len(of.shown) == shownUsersMax && user > of.shown[shownUsersMax-1] {
		return
	}
	i, _ := slices.BinarySearch(of.shown, user)
	of.shown = slices.Insert(of.shown, i, user)
	of.shown = of.shown[:min(len(of.shown), shownUsersMax)]
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
	return fmt.Sprintf("%s %s the key %s", andMore(of.shown, of.count), verb, key)
}

// andMore returns in words the first names of a number of objects, and how many more there are.
func andMore(first []string, of int) string {
	text := strings.Join(first, ", ")
	if of > len(first) {
		text += fmt.Sprintf(" and %d more", of-len(first))
	}
	return text
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
