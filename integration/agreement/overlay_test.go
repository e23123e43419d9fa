package agreement

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// adapted is a package of kube-proxy in which gridproxy's code takes the place of functions. It
// exists in a temporary folder only, as an overlay for the go command.
type adapted struct {
	folder    string   // below k8s.io/kubernetes
	adapters  []string // the files of testdata/unittests that are added to the package
	functions []string // that the adapters define: the package's own get the prefix kubeProxy
	fields    []string // "TYPE NAME FIELDTYPE": a field that a struct type gets
	tests     []string // the test files that run
}

// adaptedPackages are the packages whose unit tests run on gridproxy's code.
func adaptedPackages() []adapted {
	return []adapted{
		{
			folder: "pkg/proxy/iptables", adapters: []string{"iptables.go"}, tests: []string{"proxier_test.go"},
			functions: []string{
				"Proxier.OnServiceUpdate", "Proxier.OnEndpointSliceAdd", "Proxier.OnEndpointSliceUpdate", "Proxier.OnEndpointSliceDelete",
				"Proxier.syncProxyRules",
			},
			fields: []string{"Proxier gridproxy gridproxyObjects"},
		},
		{
			folder: "pkg/proxy", adapters: []string{"proxy.go", "proxy_maps.go"}, tests: []string{"topology_test.go"},
			functions: []string{
				"CategorizeEndpoints", "ServiceChangeTracker.Update", "ServicePortMap.Update", "ServicePortMap.HealthCheckNodePorts",
				"EndpointsChangeTracker.EndpointSliceUpdate", "EndpointsMap.Update", "EndpointsMap.LocalReadyEndpoints",
			},
			fields: []string{"ServiceChangeTracker gridproxy gridproxyServices", "EndpointsChangeTracker gridproxy gridproxySlices"},
		},
		{
			folder: "pkg/proxy/conntrack", adapters: []string{"conntrack.go"}, tests: []string{"cleanup_test.go"},
			functions: []string{"CleanStaleEntries"},
		},
		{
			folder: "pkg/proxy/healthcheck", adapters: []string{"healthcheck.go"}, tests: []string{"healthcheck_test.go"},
			functions: []string{
				"newServiceHealthServer", "server.SyncServices", "server.SyncEndpoints", "healthzHandler.ServeHTTP", "livezHandler.ServeHTTP",
			},
			fields: []string{"server gridproxy gridproxyServer"},
		},
	}
}

// writeOverlay writes the overlay of all packages into dir, and returns its path for go test
// -overlay. kubernetes is the folder of the module k8s.io/kubernetes.
func writeOverlay(packages []adapted, kubernetes, dir string) (string, error) {
	replace := map[string]string{}
	for _, a := range packages {
		if err := a.replace(replace, kubernetes, dir); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encoding the overlay: %w", err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	return path, nil
}

// replace notes which files of the package the overlay adds and replaces.
func (a adapted) replace(replace map[string]string, kubernetes, dir string) error {
	folder := filepath.Join(kubernetes, a.folder)
	for _, name := range a.adapters {
		adapter, err := filepath.Abs(filepath.Join("testdata", "unittests", name))
		if err != nil {
			return fmt.Errorf("finding the adapter %s: %w", name, err)
		}
		replace[filepath.Join(folder, "gridproxy_"+name)] = adapter
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return fmt.Errorf("listing %s: %w", folder, err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, edits, err := a.edit(file)
		if err != nil {
			return err
		}
		if edits == 0 {
			continue
		}
		found += edits
		changed := filepath.Join(dir, strings.ReplaceAll(a.folder, "/", "_")+"_"+filepath.Base(file))
		if err := os.WriteFile(changed, source, 0o644); err != nil {
			return fmt.Errorf("writing the overlay: %w", err)
		}
		replace[file] = changed
	}
	if wanted := len(a.functions) + len(a.fields); found != wanted {
		return fmt.Errorf("%s: found %d of %d functions and types that the adapters are about; kube-proxy has changed: adapt adaptedPackages", folder, found, wanted)
	}
	return nil
}

// insertion is text that goes into a source at an offset, in place of some bytes.
type insertion struct {
	at, instead int
	text        string
}

// edit returns a source with its functions renamed and its fields added, and how many it has.
func (a adapted) edit(file string) ([]byte, int, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, 0, fmt.Errorf("reading kube-proxy's source: %w", err)
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, fmt.Errorf("parsing kube-proxy's source: %w", err)
	}
	var edits []insertion
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if slices.Contains(a.functions, functionName(n)) {
				edits = append(edits, insertion{set.Position(n.Name.Pos()).Offset, len(n.Name.Name), "kubeProxy" + upperFirst(n.Name.Name)})
			}
		case *ast.TypeSpec:
			for _, field := range a.fields {
				name, declaration, _ := strings.Cut(field, " ")
				if of, is := n.Type.(*ast.StructType); is && n.Name.Name == name {
					edits = append(edits, insertion{set.Position(of.Fields.Opening).Offset + 1, 0, declaration + ";"})
				}
			}
		}
		return true
	})
	for _, e := range slices.Backward(edits) {
		source = slices.Concat(source[:e.at], []byte(e.text), source[e.at+e.instead:])
	}
	return source, len(edits), nil
}

// functionName is the name of a function, or "Type.Method".
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if pointer, is := of.(*ast.StarExpr); is {
		of = pointer.X
	}
	return fmt.Sprint(of, ".", f.Name.Name)
}

func upperFirst(name string) string {
	return string(unicode.ToUpper(rune(name[0]))) + name[1:]
}

// testsIn are the test functions of a package's test files, by file.
func (a adapted) testsIn(kubernetes string) (map[string][]string, error) {
	all := map[string][]string{}
	for _, file := range a.tests {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(kubernetes, a.folder, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing kube-proxy's tests: %w", err)
		}
		name := filepath.ToSlash(filepath.Join(a.folder, file))
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				all[name] = append(all[name], f.Name.Name)
			}
		}
	}
	return all, nil
}
