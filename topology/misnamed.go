package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"gridproxy/topology/excerpt"
	"gridproxy/topology/similar"

	corev1 "k8s.io/api/core/v1"
)

// ServiceAnnotations returns the names of the annotations of a Service that are read.
func ServiceAnnotations() []string {
	return []string{AnnotationKeys, AnnotationPolicy, AnnotationScheduler}
}

// Limits of Misnamed. Objects with more annotations, and longer names, are skipped, so that a
// tenant cannot make the check expensive.
const (
	annotationsMax      = 100
	nameLengthMax       = 100
	lengthDifferenceMax = 10 // of a name with the characters between its words
	prefixDistanceMax   = 3
)

// Misnamed returns an annotation that looks like a mistyped one of those that are read, and the
// one that was probably meant; both are empty if nothing looks so, if the meant one is there
// too, or for more than 100 annotations. Names with a prefix that no annotation of ours has,
// such as openyurt.io/topologyKeys, come last: another program may read them.
func Misnamed(annotations map[string]string, read []string) (name, meant string) {
	if len(annotations) > annotationsMax {
		return "", ""
	}
	for _, n := range slices.Sorted(maps.Keys(annotations)) {
		if len(n) > nameLengthMax || slices.Contains(read, n) {
			continue
		}
		for _, r := range read {
			if _, found := annotations[r]; found || !alike(n, r) {
				continue
			}
			if !foreign(n, read) {
				return n, r
			}
			if name == "" {
				name, meant = n, r
			}
		}
	}
	return name, meant
}

// foreign reports whether a name has a prefix that none of those that are read has.
func foreign(name string, read []string) bool {
	prefix, _ := splitName(name)
	return prefix != "" && !slices.ContainsFunc(read, func(r string) bool {
		p, _ := splitName(r)
		return p != "" && alikePrefixes(prefix, p)
	})
}

// alike reports whether name may be a mistyped read. It ignores case and what is between words,
// and allows two edits of a long name. Prefixes must be similar, unless one of them is empty:
// without its prefix, a short name says too little.
func alike(name, read string) bool {
	prefix, word := splitName(name)
	readPrefix, readWord := splitName(read)
	if lengthsDiffer(word, readWord, lengthDifferenceMax) { // quickly
		return false
	}
	word, readWord = letters(word), letters(readWord)
	limit := min(len(readWord)/4, 2)
	if prefix == "" && readPrefix != "" && len(readWord) < 12 {
		limit = 0
	}
	if lengthsDiffer(word, readWord, limit) || similar.Distance(word, readWord) > limit {
		return false
	}
	return prefix == "" || readPrefix == "" || alikePrefixes(prefix, readPrefix)
}

func alikePrefixes(prefix, read string) bool {
	return strings.HasSuffix(prefix, "."+read) || !lengthsDiffer(prefix, read, prefixDistanceMax) && similar.Distance(prefix, read) <= prefixDistanceMax
}

func lengthsDiffer(a, b string, limit int) bool { return max(len(a)-len(b), len(b)-len(a)) > limit }

// splitName returns the prefix of an annotation's name, in small letters, and the part behind
// the slash.
func splitName(name string) (prefix, word string) {
	slash := strings.LastIndexByte(name, '/')
	return strings.ToLower(name[:max(slash, 0)]), name[slash+1:]
}

// letters returns a name in small letters, without the characters that may be between its words.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// misspelled returns at most one warning: of an annotation that is probably mistyped.
func misspelled(svc *corev1.Service) []string {
	if name, meant := Misnamed(svc.Annotations, ServiceAnnotations()); name != "" {
		return []string{MisnamedWarning(name, meant)}
	}
	return nil
}

// MisnamedWarning returns a warning of what Misnamed has found.
func MisnamedWarning(name, meant string) string {
	if meant == AnnotationKeys {
		return fmt.Sprintf("annotation %s is not read, so it does not close the Service; the one that is read is %s", excerpt.Of(name), meant)
	}
	return fmt.Sprintf("annotation %s is not read; the one that is read is %s", excerpt.Of(name), meant)
}
