package layout

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// named has the folders whose identifiers are checked.
var named = []string{"cmd", "rules", "topology", "controller"}

// metaphors are words that do not say what a value holds.
var metaphors = []string{
	"keeper", "keepers", "turn", "turns", "union", "unions", "marks", "piece", "pieces", "front", "fronts", "rung", "rungs",
	"world", "worlds", "patience",
}

// TestNamesSayWhatTheyHold: no identifier is a metaphor.
func TestNamesSayWhatTheyHold(t *testing.T) {
	for path, names := range declaredNames(t) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			if isMetaphor(name) {
				t.Errorf("%s: the name %s does not say what it holds", path, name)
			}
		}
	}
}

// TestNameRules checks isMetaphor itself.
func TestNameRules(t *testing.T) {
	for name, want := range map[string]bool{
		"Rung": true, "lowerRung": true, "world": true, "serverUnion": true, "HTTPTurn": true, "old_marks": true, "lastPatience": true,
		"Frontend": false, "returned": false, "GroupMark": false, "overturn": false, "frontier": false,
	} {
		if got := isMetaphor(name); got != want {
			t.Errorf("isMetaphor(%s) is %t", name, got)
		}
	}
}

func isMetaphor(name string) bool {
	return slices.ContainsFunc(words(name), func(word string) bool { return slices.Contains(metaphors, word) })
}

// words splits a name in camel case or with underscores into its words, in lower case. Digits
// belong to the word before them.
func words(name string) []string {
	var all []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
		}
		word = nil
	}
	text := []rune(name)
	for i, r := range text {
		switch {
		case r == '_':
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(text[i-1]) || i+1 < len(text) && unicode.IsLower(text[i+1])):
			flush()
		}
		word = append(word, r)
	}
	flush()
	return all
}

// declaredNames returns the package-level names, methods and fields of the packages below the named
// folders, by path.
func declaredNames(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, name := range goFiles(t, named...) {
		file := parsed(t, name)
		if ast.IsGenerated(file) {
			continue
		}
		for _, d := range file.Decls {
			found[path.Dir(name)] = append(found[path.Dir(name)], declared(d)...)
		}
	}
	return found
}

// declared returns the package-level names of a declaration, and the methods and fields in it.
func declared(d ast.Decl) []string {
	var all []string
	add := func(names ...*ast.Ident) {
		for _, name := range names {
			all = append(all, name.Name)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		add(d.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name)
			case *ast.ValueSpec:
				add(spec.Names...)
			}
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		var list *ast.FieldList
		switch n := n.(type) {
		case *ast.StructType:
			list = n.Fields
		case *ast.InterfaceType:
			list = n.Methods
		default:
			return true
		}
		for _, field := range list.List {
			add(field.Names...)
		}
		return true
	})
	return all
}
