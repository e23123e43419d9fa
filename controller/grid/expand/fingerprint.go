package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint returns a hash of the desired object. It is the same for equal objects, whichever
// program wrote them, and does not depend on the Go types of a Kubernetes version (B-10). ""
// for a child with a Problem.
func Fingerprint(c Child) string {
	if c.Object == nil {
		return ""
	}
	text, err := json.Marshal(c.Object.Object) // sorts names
	if err != nil {
		return "" // cannot be: it was decoded from JSON
	}
	return digest(text)
}

// OwnedFingerprint returns a hash of a set of owned fields; "" for none. It is the same for the
// different orders in which the API server and Go write fieldsV1.
func OwnedFingerprint(fieldsV1 string) string {
	if fieldsV1 == "" {
		return ""
	}
	text := []byte(fieldsV1)
	var fields any
	if json.Unmarshal(text, &fields) == nil {
		if sorted, err := json.Marshal(fields); err == nil {
			text = sorted
		}
	}
	return digest(text)
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
