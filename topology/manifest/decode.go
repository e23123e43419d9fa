package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// decode reads a JSON object as the API server does. Field names are case-sensitive, and
// unknown fields are ignored. A value of the wrong type (the first one) and duplicate fields
// are errors: they are added to f, and it returns false.
func decode(f *findings, text []byte, into any) bool {
	twice, err := kjson.UnmarshalStrict(text, into, kjson.DisallowDuplicateFields)
	for _, e := range twice {
		f.errs = append(f.errs, fmt.Errorf("%s: %w; keep one", f.place, e))
	}
	if err == nil {
		return len(twice) == 0
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		f.wrong(pathAt(text, e), "is %s; write %s", excerpt.Of(spoken(e.Value)), wanted(e.Type))
		return false
	}
	f.errs = append(f.errs, fmt.Errorf("%s: %s; correct it", f.place, strings.TrimPrefix(err.Error(), "json: ")))
	return false
}

func spoken(value string) string {
	switch {
	case value == "string":
		return "text"
	case value == "object":
		return "a mapping"
	case value == "array":
		return "a list"
	case value == "bool":
		return "true or false"
	case value == "number":
		return "a number"
	default:
		return strings.TrimPrefix(value, "number ") // out of range
	}
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of at most " + strconv.Itoa(t.Bits()) + " bits, without quotes"
	case reflect.String:
		return "text, in quotes if it looks like something else"
	case reflect.Bool:
		return "true or false without quotes"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	default:
		return "a " + t.String()
	}
}

// pathAt returns the path of the field that has a value of the wrong type. The error names the
// field, but not the element of a list. The offset determines that element.
func pathAt(text []byte, e *json.UnmarshalTypeError) *field.Path {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	path := walk(d, nil, e.Offset)
	if !strings.HasPrefix(regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path.String(), ""), e.Field) {
		return field.NewPath(e.Field) // the offset counts within a value that decodes itself
	}
	return path
}

// walk reads one value and returns the path of the value in it that the first offset bytes
// end in or behind; nil = the value ends before.
func walk(d *json.Decoder, path *field.Path, offset int64) *field.Path {
	token, err := d.Token()
	if err != nil {
		return nil
	}
	if d.InputOffset() >= offset && path != nil {
		return path
	}
	delim, _ := token.(json.Delim)
	for i := 0; (delim == '{' || delim == '[') && d.More(); i++ {
		inner := path.Index(i)
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return nil
			}
			inner = child(path, fmt.Sprint(key))
		}
		if found := walk(d, inner, offset); found != nil {
			return found
		}
	}
	if delim == '{' || delim == '[' {
		if _, err := d.Token(); err != nil {
			return nil
		}
	}
	return nil
}

func child(path *field.Path, key string) *field.Path {
	if path == nil {
		return field.NewPath(key)
	}
	if strings.ContainsAny(key, "./") {
		return path.Key(key)
	}
	return path.Child(key)
}
