package analyze

import "slices"

// Code is a kind of finding.
type Code struct {
	ID       string
	Severity Severity
	Title    string
}

// Severity is how serious a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // a Service or Grid does not do what its manifest says
	Warning Severity = "warning" // clients are refused, or something is ignored
	Note    Severity = "note"    // something has no effect
)

// Severities returns all severities, the most serious first.
func Severities() []Severity { return []Severity{Error, Warning, Note} }

// The IDs of the codes. A retired one stays in this list as a comment.
const (
	malformed     = "GP0101"
	withoutEffect = "GP0102"
	ignoredField  = "GP0103"
	misnamed      = "GP0104"

	noKeyCarried    = "GP0201"
	keyNotCarried   = "GP0202"
	emptyValue      = "GP0203"
	nodeWithoutKeys = "GP0204"

	unitRefused       = "GP0301"
	refusedEverywhere = "GP0302"
	withoutNodeName   = "GP0303"
	onUnknownNode     = "GP0304"
	onNodeWithoutUnit = "GP0305"

	addressTaken  = "GP0401"
	serverAddress = "GP0402"

	gridWithoutKey   = "GP0501"
	gridWithoutUnits = "GP0502"
	missingTemplate  = "GP0503"
	invalidTemplate  = "GP0504"
	notDistributed   = "GP0505"
	missingService   = "GP0506"
)

// Codes returns all codes, sorted by ID.
func Codes() []Code {
	return []Code{
		{malformed, Error, "Malformed annotation"},
		{withoutEffect, Note, "Annotation without effect"},
		{ignoredField, Warning, "Ignored field"},
		{misnamed, Warning, "Annotation whose name is not read"},
		{noKeyCarried, Error, "No Node carries any key of a Service"},
		{keyNotCarried, Warning, "No Node carries a key of a Service"},
		{emptyValue, Warning, "Empty label value"},
		{nodeWithoutKeys, Warning, "Node in no unit"},
		{unitRefused, Warning, "Units without a usable endpoint"},
		{refusedEverywhere, Warning, "No usable endpoint in any unit"},
		{withoutNodeName, Warning, "Endpoints without nodeName"},
		{onUnknownNode, Warning, "Endpoints on an unknown Node"},
		{onNodeWithoutUnit, Warning, "Endpoints on a Node in no unit"},
		{addressTaken, Error, "Address of another Service"},
		{serverAddress, Error, "Address of an API server or of a Node's DNS"},
		{gridWithoutKey, Error, "Grid without a valid key"},
		{gridWithoutUnits, Error, "No Node carries the key of a Grid"},
		{missingTemplate, Error, "Missing template of a Grid"},
		{invalidTemplate, Error, "Invalid template of a Grid"},
		{notDistributed, Warning, "Grid that is not distributed"},
		{missingService, Warning, "Missing Service of a StatefulSetGrid"},
	}
}

// at returns the place of a severity in Severities: 0 is the most serious one.
func (s Severity) at() int { return slices.Index(Severities(), s) }
