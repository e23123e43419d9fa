package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gridproxy/topology/documents"

	kjson "sigs.k8s.io/json"
)

// Raw is one object of a manifest, of whatever kind.
type Raw struct {
	Place            string // "FILE: document N (Kind namespace/name)"
	APIVersion, Kind string
	JSON             []byte

	place place
}

// Decode reads the object as kubectl apply does. A field that is unknown to into, a duplicate field
// and a value of the wrong type are errors. The error has one line for each, with its place.
func (r Raw) Decode(into any) error {
	f := &findings{place: r.place}
	if !decode(f, r.JSON, into) {
		return join(f.errs)
	}
	unknown, err := kjson.UnmarshalStrict(r.JSON, into, kjson.DisallowUnknownFields)
	errs := []error{err}
	for _, e := range unknown {
		errs = append(errs, fmt.Errorf("%s: %w; correct or remove it", r.Place, e))
	}
	return join(errs)
}

// ReadRaw reads manifests once, from the paths that Read takes, and hands every object out as it is
// written, in the order of the files. Lists of all kinds are taken apart. Each warning is one line;
// the error joins everything that is wrong, one printable line each, 100 of them at most.
func ReadRaw(paths []string, stdin io.Reader) (all []Raw, warnings []string, err error) {
	r := NewReader(paths, stdin)
	names, warnings, err := r.list()
	errs := []error{err}
	for _, name := range names {
		text, err := r.text(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if name == Stdin {
			name = stdinName
		}
		found, err := rawObjects(name, text)
		errs = append(errs, err)
		all = append(all, found...)
	}
	return all, warned(warnings), join(errs)
}

func (r *Reader) text(name string) ([]byte, error) {
	if name == Stdin {
		return r.readStdin()
	}
	file, err := r.open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer file.Close()
	return readAll(name, file)
}

// rawObjects returns the objects in the text of one file. With an error, it returns those that
// can be read. It is pure.
func rawObjects(file string, text []byte) ([]Raw, error) {
	texts, errs := documents.Read(file, text)
	var all []Raw
	for i, d := range texts {
		if d == nil {
			continue
		}
		found, err := flatten(place{file: file, document: i + 1}, d, header{})
		errs = append(errs, err)
		all = append(all, found...)
	}
	return all, join(errs)
}

// flatten returns the object or, if it is a list, its items. An item takes from the header of
// its list what its own lacks, and the object takes that from unsaid.
func flatten(at place, text []byte, unsaid header) ([]Raw, error) {
	if text[0] != '{' {
		return nil, fmt.Errorf("%s: is not an object; write its apiVersion, kind and metadata", at)
	}
	f := &findings{place: at}
	read := struct {
		header
		Metadata identity           `json:"metadata"`
		Items    *[]json.RawMessage `json:"items"`
	}{header: unsaid}
	if !decode(f, text, &read) || !read.complete(f) {
		return nil, errors.Join(f.errs...)
	}
	item, isList := strings.CutSuffix(read.Kind, "List")
	if !isList || read.Items == nil {
		at.kind, at.namespace, at.name = read.Kind, read.Metadata.Namespace, read.Metadata.Name
		return []Raw{{Place: at.String(), APIVersion: read.APIVersion, Kind: read.Kind, JSON: text, place: at}}, nil
	}
	if item == "" {
		read.header = header{} // the plain List says nothing of its items
	}
	var all []Raw
	var errs []error
	for i, text := range *read.Items {
		found, err := flatten(at.item(i), text, header{APIVersion: read.APIVersion, Kind: item})
		errs = append(errs, err)
		all = append(all, found...)
	}
	return all, errors.Join(errs...)
}
