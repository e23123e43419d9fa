package analyze

import (
	"cmp"
	"slices"

	"gridproxy/topology/excerpt"
)

// MaxPerCode is how many findings of a code a Report has at most.
const MaxPerCode = 20

// Finding is one thing that is wrong. Its texts are printable lines of bounded length.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Object   Object   `json:"object"`
	Problem  string   `json:"problem"` // what is wrong
	Remedy   string   `json:"remedy"`  // what to do
}

// Object is where something is wrong.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // "" for a Node
	Name      string `json:"name"`
}

// String returns kind and name, such as "Service default/web" or "Node bj-1".
func (o Object) String() string { return o.Kind + " " + o.path() }

// path returns the Object without its kind: NAMESPACE/NAME, or NAME.
func (o Object) path() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// Report is the answer.
type Report struct {
	Services int `json:"services"` // how many were looked at
	Nodes    int `json:"nodes"`
	Grids    int `json:"grids"`

	Errors   int `json:"errors"` // how many findings there are, those in LeftOut too
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`

	Findings []Finding `json:"findings"` // sorted by severity, code and object
	LeftOut  []LeftOut `json:"leftOut,omitempty"`

	// UnitsLeftOut is how many units of a Service there are at most that were not looked at.
	UnitsLeftOut int `json:"unitsLeftOut,omitempty"`
	// ServicesLeftOut is for how many Services no unit was looked at.
	ServicesLeftOut int `json:"servicesLeftOut,omitempty"`
}

// LeftOut is how many more findings of a code there are.
type LeftOut struct {
	Code  string `json:"code"`
	Count int    `json:"count"`
}

// Fails reports whether there is a finding that is at least as serious as least.
func (r Report) Fails(least Severity) bool {
	return r.Errors > 0 || r.Warnings > 0 && least != Error || r.Notes > 0 && least == Note
}

// raw is a finding whose texts are only made if it is in the Report: a cluster may have one for
// each Service.
type raw struct {
	object Object
	texts  func() (problem, remedy string)
}

// collect makes the Report of what was found, by the ID of the code.
func collect(found map[string][]raw) Report {
	r := Report{Findings: []Finding{}}
	codes := Codes()
	slices.SortStableFunc(codes, func(a, b Code) int { return cmp.Compare(a.Severity.at(), b.Severity.at()) })
	for _, c := range codes {
		all := found[c.ID]
		switch c.Severity {
		case Error:
			r.Errors += len(all)
		case Warning:
			r.Warnings += len(all)
		default:
			r.Notes += len(all)
		}
		for _, one := range selected(all) {
			problem, remedy := one.texts()
			r.Findings = append(r.Findings, Finding{
				Code: c.ID, Severity: c.Severity,
				Object:  Object{one.object.Kind, excerpt.Of(one.object.Namespace), excerpt.Of(one.object.Name)},
				Problem: excerpt.Fit(problem, excerpt.MaxLineChars), Remedy: excerpt.Fit(remedy, excerpt.MaxLineChars),
			})
		}
		if more := len(all) - MaxPerCode; more > 0 {
			r.LeftOut = append(r.LeftOut, LeftOut{c.ID, more})
		}
	}
	return r
}

// selected sorts all by object, and returns those that are in the Report: all, or, if there are
// more than MaxPerCode, one of each namespace, then a second one of each, and so on.
func selected(all []raw) []raw {
	slices.SortStableFunc(all, func(a, b raw) int {
		return cmp.Or(cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name), cmp.Compare(a.object.Kind, b.object.Kind))
	})
	if len(all) <= MaxPerCode {
		return all
	}
	count := map[string]int{}
	ordinal := make([]int, len(all)) // among those of the namespace
	indices := make([]int, len(all))
	for i, one := range all {
		indices[i], ordinal[i] = i, count[one.object.Namespace]
		count[one.object.Namespace]++
	}
	slices.SortStableFunc(indices, func(a, b int) int { return cmp.Compare(ordinal[a], ordinal[b]) })
	indices = indices[:MaxPerCode]
	slices.Sort(indices)
	out := make([]raw, 0, MaxPerCode)
	for _, i := range indices {
		out = append(out, all[i])
	}
	return out
}
