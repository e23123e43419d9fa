package grids

import (
	"encoding/json"
	"fmt"
	"reflect"

	"gridproxy/controller/grid/expand"
	"gridproxy/integration/env/wait"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// same is nil if a child that stands has everything that is wished of it.
func same(want expand.Child, stands client.Object, found bool) error {
	if want.Problem != nil {
		return fmt.Errorf("%s: %s", want.Name, want.Problem.Message)
	}
	if !found {
		return fmt.Errorf("%s is missing", want.Name)
	}
	text, err := json.Marshal(stands)
	if err != nil {
		return err
	}
	var has map[string]any
	if err := json.Unmarshal(text, &has); err != nil {
		return err
	}
	wish := want.Object.DeepCopy().Object
	delete(wish, "apiVersion") // of an item of a list they are empty
	delete(wish, "kind")
	if text, err = json.Marshal(wish); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &wish); err != nil {
		return err
	}
	at := lacks(wish, has, want.Name)
	return wait.Check(at == "", "%s", at)
}

// lacks is where something that is wished is not so; "" if all of it is. The API server adds fields, but to no list.
func lacks(wish, has any, at string) string {
	switch wish := wish.(type) {
	case map[string]any:
		fields, _ := has.(map[string]any)
		for name, value := range wish {
			if problem := lacks(value, fields[name], at+"."+name); problem != "" {
				return problem
			}
		}
	case []any:
		items, _ := has.([]any)
		if len(items) != len(wish) {
			return fmt.Sprintf("%s has %d entries, want %d", at, len(items), len(wish))
		}
		for i, value := range wish {
			if problem := lacks(value, items[i], fmt.Sprintf("%s[%d]", at, i)); problem != "" {
				return problem
			}
		}
	case nil: // a null of a template is dropped
	default:
		if !reflect.DeepEqual(wish, has) {
			return fmt.Sprintf("%s is %v, want %v", at, has, wish)
		}
	}
	return ""
}
