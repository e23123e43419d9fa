package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The longest names of a Grid's children, in bytes.
const (
	// MaxDeploymentName is that of every object whose name is a DNS subdomain.
	MaxDeploymentName = 253
	// MaxStatefulSetName leaves 11 bytes of a label value for what the StatefulSet controller
	// appends.
	MaxStatefulSetName = 52
	// MaxServiceName is that of a DNS label.
	MaxServiceName = 63

	hashLength = 8 // hexadecimal digits
)

// DeploymentName returns the name of a DeploymentGrid's child in the unit with the value. It is
// "<grid>-<value>" if that is a valid name. Otherwise both are cut and sanitised, and a hash is
// appended. The name depends on nothing else, so that the child can be found again. SuperEdge had
// names that no API server accepts (B-08).
func DeploymentName(grid, value string) string {
	plain := grid + "-" + value
	if len(validation.IsDNS1123Subdomain(plain)) == 0 {
		return plain
	}
	return hashedName(MaxDeploymentName, grid, value)
}

// StatefulSetName returns the name of a StatefulSetGrid's child, made as DeploymentName. It has
// no dots: Pods' host names come from it, and Kubernetes makes no Pod whose host name has one.
func StatefulSetName(grid, value string) string {
	plain := grid + "-" + value
	if len(plain) <= MaxStatefulSetName && len(validation.IsDNS1123Label(plain)) == 0 {
		return plain
	}
	return hashedName(MaxStatefulSetName, grid, value)
}

// ServiceName returns the name of a ServiceGrid's Service: "<grid>-svc" if that is valid, else
// one made as DeploymentName. Until Kubernetes 1.34 such a name must begin with a letter.
func ServiceName(grid string) string {
	plain := grid + "-svc"
	if len(validation.IsDNS1035Label(plain)) == 0 {
		return plain
	}
	if grid != "" && (grid[0] < 'a' || grid[0] > 'z') {
		return "g-" + hashedName(MaxServiceName-2, grid, "svc")
	}
	return hashedName(MaxServiceName, grid, "svc")
}

// LabelValue returns text if it is a valid label value. Otherwise text is cut and sanitised,
// and a hash is appended. A gridUniqKey with a prefix is not a valid label value (B-09), nor is
// a Grid's name of more than 63 characters (B-08).
func LabelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	readable := sanitise(text, func(r rune) bool { return isAlphanumeric(r) || strings.ContainsRune("-_.", r) })
	return joinNonEmpty(shortened(readable, validation.LabelValueMaxLength-1-hashLength), hash(text))
}

// hashedName returns "<grid>-<value>-<hash>" of at most limit bytes, both in lower case,
// sanitised and cut. The value gets half of the room, and what the grid leaves.
func hashedName(limit int, grid, value string) string {
	isLabel := func(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' }
	first, second := sanitise(strings.ToLower(grid), isLabel), sanitise(strings.ToLower(value), isLabel)
	room := limit - hashLength - 2
	second = shortened(second, max(room/2, room-len(first)))
	first = shortened(first, room-len(second))
	return joinNonEmpty(first, second, hash(grid+"/"+value))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// sanitise puts a dash for every character that is not allowed, and takes dashes, underscores
// and dots off both ends. It may return "".
func sanitise(text string, allowed func(rune) bool) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '-'
	}, text), "-_.")
}

// shortened cuts a sanitised text (ASCII) to at most limit bytes, and sanitises its end.
func shortened(text string, limit int) string {
	return strings.TrimRight(text[:min(limit, len(text))], "-_.")
}

func joinNonEmpty(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "-")
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
