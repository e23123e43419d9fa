package options

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	kubeproxy "k8s.io/kube-proxy/config/v1alpha1"
)

// leaf is a field that the configuration sets: its dotted path, and its value as the text of a
// flag.
type leaf struct{ path, text string }

// leaves returns the fields that are set. As in kube-proxy's defaulting, a zero value is not
// set unless a pointer leads to it. The type is walked instead of listed, so that a field of a
// later release is reported too.
func leaves(config *kubeproxy.KubeProxyConfiguration) []leaf {
	var found []leaf
	walk(reflect.ValueOf(config).Elem(), "", false, func(l leaf) { found = append(found, l) })
	return found
}

// walk calls emit for each field below v, at path, that is set; a zero v is set if keepZero is
// true. It needs v to be addressable, as every value below a pointer is.
func walk(v reflect.Value, path string, keepZero bool, emit func(leaf)) {
	if d, ok := v.Interface().(logs.TimeOrMetaDuration); ok {
		v = reflect.ValueOf(&d.Duration).Elem() // whose field of this name is no JSON of its own
	}
	if d, ok := v.Interface().(metav1.Duration); ok {
		if d.Duration != 0 || keepZero {
			emit(leaf{path, d.Duration.String()})
		}
		return
	}
	if q, ok := v.Addr().Interface().(interface{ IsZero() bool }); ok && q.IsZero() && !keepZero {
		return // a quantity: its zero still has a format
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, true, emit)
		}
	case reflect.Struct:
		walkStruct(v, path, emit)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			emit(leaf{path + "." + key.String(), fmt.Sprint(v.MapIndex(key).Interface())})
		}
	case reflect.Slice:
		if v.Len() > 0 {
			emit(leaf{path, join(v)})
		}
	default:
		if keepZero || !v.IsZero() {
			emit(leaf{path, fmt.Sprint(v.Interface())})
		}
	}
}

func walkStruct(v reflect.Value, path string, emit func(leaf)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || field.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		tag := strings.Split(field.Tag.Get("json"), ",")
		below := path
		if tag[0] != "" && tag[0] != "-" {
			below = strings.TrimPrefix(path+"."+tag[0], ".")
		} else if !slices.Contains(tag, "inline") && !field.Anonymous {
			continue
		}
		walk(v.Field(i), below, false, emit)
	}
}

// join returns a list as a flag takes it. One empty element gives ",": "" is an empty list.
func join(list reflect.Value) string {
	words := make([]string, list.Len())
	for i := range words {
		words[i] = fmt.Sprint(list.Index(i).Interface())
	}
	if len(words) == 1 && words[0] == "" {
		return ","
	}
	return strings.Join(words, ",")
}
