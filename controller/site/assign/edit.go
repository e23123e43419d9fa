package assign

import (
	"encoding/json"
	"reflect"
)

// edit is a JSON merge patch that is being written.
type edit map[string]any

// set puts a value at a path; nil removes what is there.
func (e edit) set(value any, path ...string) {
	at := map[string]any(e)
	for _, field := range path[:len(path)-1] {
		inner, found := at[field].(map[string]any)
		if !found {
			inner = map[string]any{}
			at[field] = inner
		}
		at = inner
	}
	at[path[len(path)-1]] = value
}

func (e edit) annotation(key string, value any) { e.set(value, "metadata", "annotations", key) }

func (e edit) label(key string, value any) { e.set(value, "metadata", "labels", key) }

// orNil returns the patch, nil if it is empty.
func (e edit) orNil() map[string]any {
	if len(e) == 0 {
		return nil
	}
	return e
}

// mergePatch returns the merge patch that makes before into after, both as JSON objects, field
// by field at the top; nil if they are equal. Fields that after does not have are removed.
func mergePatch(before, after any) map[string]any {
	b, a := asFields(before), asFields(after)
	e := edit{}
	for field, value := range a {
		if !reflect.DeepEqual(b[field], value) {
			e[field] = value
		}
	}
	for field := range b {
		if _, stays := a[field]; !stays {
			e[field] = nil
		}
	}
	return e.orNil()
}

func asFields(o any) map[string]any {
	var fields map[string]any
	if text, err := json.Marshal(o); err == nil {
		_ = json.Unmarshal(text, &fields) // what Marshal has written
	}
	return fields
}
