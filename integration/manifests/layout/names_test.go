package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// named are the folders of which the names of identifiers and files are checked.
var named = []string{"cmd", "rules", "topology", "controller"}

// metaphors are words that do not say what a value holds.
var metaphors = []string{
	"keeper", "keepers", "turn", "turns", "union", "unions", "marks", "piece", "pieces", "front", "fronts", "rung", "rungs",
	"world", "worlds",
}

// synonyms are words of which a package uses one: names that differ only so are too much alike.
var synonyms = [][]string{
	{"diff", "difference", "comparison", "comparing", "compare"},
	{"name", "naming", "named"},
	{"delete", "remove", "erase"},
	{"new", "make", "build", "create"},
	{"desired", "wanted", "want", "wish", "wished"},
	{"observed", "observe", "observation"},
	{"match", "matching", "matches"},
	{"check", "validate", "validation"},
	{"find", "search", "lookup"},
	{"begin", "start"},
	{"end", "stop", "finish"},
	{"equal", "same"},
	{"addr", "address"},
	{"config", "configuration", "settings", "options"},
	{"err", "error", "failure"},
	{"max", "maximum"},
	{"min", "minimum"},
	{"msg", "message"},
	{"render", "rendering"},
	{"read", "reading"},
	{"write", "writing"},
	{"refuse", "refused", "refusal"},
	{"quarantine", "quarantined"},
}

// fillers say nothing by themselves: sizesOf is sizes.
var fillers = []string{"a", "an", "the", "of", "for"}

// identifier is a package-level name that is not a method.
type identifier struct {
	name  string
	many  string // the type of its elements, if it is or returns a slice, array, map or sequence: of []Rule, Rule
	makes string // of a function: the type of its first result
}

// goFolder is one package as far as names go.
type goFolder struct {
	identifiers []identifier // without those of tests
	files       []string     // the same, without the suffix
	declared    []string     // every package-level name, method and field, those of tests too
}

// TestNamesSayWhatTheyHold: no identifier is a metaphor.
func TestNamesSayWhatTheyHold(t *testing.T) {
	for path, folder := range goFolders(t) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(folder.declared))) {
			if isMetaphor(name) {
				t.Errorf("%s: the name %s does not say what it holds", path, name)
			}
		}
	}
}

// TestNamesAreDistinct: no package has two package-level identifiers, or two files, whose names
// differ only by case, word order or a synonym.
func TestNamesAreDistinct(t *testing.T) {
	for path, folder := range goFolders(t) {
		for _, pair := range alike(folder.identifiers) {
			t.Errorf("%s: %s and %s are too much alike", path, pair[0], pair[1])
		}
		var files []identifier
		for _, name := range folder.files {
			files = append(files, identifier{name: name})
		}
		for _, pair := range alike(files) {
			t.Errorf("%s: %s.go and %s.go are too much alike", path, pair[0], pair[1])
		}
	}
}

// TestNameRules checks the rules on names themselves.
func TestNameRules(t *testing.T) {
	for name, want := range map[string]bool{
		"Rung": true, "lowerRung": true, "world": true, "serverUnion": true, "HTTPTurn": true, "old_marks": true,
		"Frontend": false, "returned": false, "GroupMark": false, "overturn": false, "frontier": false,
	} {
		if got := isMetaphor(name); got != want {
			t.Errorf("isMetaphor(%s) is %t", name, got)
		}
	}
	for _, c := range []struct {
		a, b identifier
		want bool
	}{
		{identifier{name: "SavedRule"}, identifier{name: "savedRule"}, true},
		{identifier{name: "firewallChain"}, identifier{name: "chainFirewall"}, true},
		{identifier{name: "difference"}, identifier{name: "comparison"}, true},
		{identifier{name: "names"}, identifier{name: "naming"}, true},
		{identifier{name: "sizes"}, identifier{name: "sizesOf"}, true},
		{identifier{name: "makeSet"}, identifier{name: "newSet"}, true},
		{identifier{name: "Outcome"}, identifier{name: "Outcomes"}, true},
		{identifier{name: "Outcome"}, identifier{name: "Outcomes", many: "Outcome"}, false},
		{identifier{name: "Outcome"}, identifier{name: "outcomes", many: "Outcome"}, false},
		{identifier{name: "facts"}, identifier{name: "factsOf", makes: "facts"}, false},
		{identifier{name: "Outcomes", many: "Outcome"}, identifier{name: "OutcomeOf", makes: "Outcome"}, false},
		{identifier{name: "factsOf"}, identifier{name: "theFacts"}, true},
		{identifier{name: "serverOfEntry"}, identifier{name: "entryOfServer"}, false},
		{identifier{name: "Set"}, identifier{name: "NewSet"}, false},
		{identifier{name: "IPv4"}, identifier{name: "IPv6"}, false},
		{identifier{name: "getPort"}, identifier{name: "setPort"}, false},
		{identifier{name: "addressText"}, identifier{name: "addressTest"}, false},
	} {
		if got := len(alike([]identifier{c.a, c.b})) > 0; got != c.want {
			t.Errorf("%s and %s: alike is %t", c.a.name, c.b.name, got)
		}
	}
}

func isMetaphor(name string) bool {
	return slices.ContainsFunc(words(name), func(word string) bool { return slices.Contains(metaphors, word) })
}

// alike are the pairs of names that say the same, by name. Not alike are a type, what holds many of
// it and has its plural as a name, and the function of its name and Of that makes one.
func alike(all []identifier) [][2]string {
	var pairs [][2]string
	sorted := slices.SortedFunc(slices.Values(all), func(a, b identifier) int { return strings.Compare(a.name, b.name) })
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if a.name == b.name || meaning(a.name) != meaning(b.name) {
				continue
			}
			if strings.EqualFold(a.name, b.name) || !related(a, b) && !related(b, a) {
				pairs = append(pairs, [2]string{a.name, b.name})
			}
		}
	}
	return pairs
}

// related reports whether b holds many of a or makes one, or holds many of what a makes.
func related(a, b identifier) bool {
	switch {
	case b.many == a.name:
		return true
	case a.makes != "" && strings.HasSuffix(a.name, "Of"):
		return b.many == a.makes || b.name == a.makes
	default:
		return false
	}
}

// meaning is what a name says: its words in the singular, one for all synonyms, in the order of the
// alphabet, but for "of": entryOfServer is not serverOfEntry.
func meaning(name string) string {
	if before, after, found := strings.Cut(name, "Of"); found && after != "" && unicode.IsUpper(rune(after[0])) {
		return meaning(before) + " of " + meaning(after)
	}
	var said []string
	for _, word := range words(name) {
		if slices.Contains(fillers, word) {
			continue
		}
		word = singular(word)
		for _, class := range synonyms {
			if slices.Contains(class, word) {
				word = class[0]
			}
		}
		said = append(said, word)
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

func singular(word string) string {
	switch {
	case word == "news":
		return word
	case len(word) > 4 && strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses") || strings.HasSuffix(word, "xes") || strings.HasSuffix(word, "ches"):
		return strings.TrimSuffix(word, "es")
	case len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us"):
		return strings.TrimSuffix(word, "s")
	default:
		return word
	}
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

// goFolders are the packages below the named folders, by path.
func goFolders(t *testing.T) map[string]*goFolder {
	t.Helper()
	root := moduleRoot(t)
	found := map[string]*goFolder{}
	for _, top := range named {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir() || filepath.Ext(path) != ".go":
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil || ast.IsGenerated(file) {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if found[folder] == nil {
				found[folder] = &goFolder{}
			}
			found[folder].add(file, filepath.Base(path))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("there is no go.mod above the test")
		}
		folder = parent
	}
}

// add takes in what a file declares.
func (f *goFolder) add(file *ast.File, name string) {
	isTest := strings.HasSuffix(name, "_test.go")
	var top []identifier
	for _, d := range file.Decls {
		top = append(top, declared(d)...)
		f.declared = append(f.declared, members(d)...)
	}
	for _, i := range top {
		f.declared = append(f.declared, i.name)
	}
	if !isTest {
		f.files = append(f.files, strings.TrimSuffix(name, ".go"))
		f.identifiers = append(f.identifiers, top...)
	}
}

// declared are the package-level names of a declaration, but for methods, main, init and _.
func declared(d ast.Decl) []identifier {
	var all []identifier
	add := func(name *ast.Ident, of ast.Expr) {
		if name.Name != "_" {
			all = append(all, identifier{name: name.Name, many: element(of)})
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.Name != "init" && d.Name.Name != "main" {
			var result ast.Expr
			if d.Type.Results != nil {
				result = d.Type.Results.List[0].Type
			}
			all = append(all, identifier{name: d.Name.Name, many: element(result), makes: typeName(result)})
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name, spec.Type)
			case *ast.ValueSpec:
				for i, name := range spec.Names {
					of := spec.Type
					if of == nil && i < len(spec.Values) {
						if literal, ok := spec.Values[i].(*ast.CompositeLit); ok {
							of = literal.Type
						}
					}
					add(name, of)
				}
			}
		}
	}
	return all
}

// element is the name of the type that a type holds many of; "" if it holds none.
func element(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.ArrayType:
		return typeName(of.Elt)
	case *ast.MapType:
		return typeName(of.Value)
	case *ast.ChanType:
		return typeName(of.Value)
	case *ast.IndexExpr: // iter.Seq
		return typeName(of.Index)
	case *ast.IndexListExpr: // iter.Seq2
		return typeName(of.Indices[len(of.Indices)-1])
	default:
		return ""
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr: // generic
		return typeName(e.X)
	default:
		return element(e)
	}
}

// members are the methods and fields in a declaration.
func members(d ast.Decl) []string {
	var all []string
	if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
		all = append(all, f.Name.Name)
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
			for _, name := range field.Names {
				all = append(all, name.Name)
			}
		}
		return true
	})
	return all
}
