package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint tells two wishes apart: it is the same for the same object, whatever wrote it, and does not depend on the
// Go types of a Kubernetes version (B-10). "" for a child with a Problem.
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

// OwnedFingerprint tells two sets of owned fields apart. fieldsV1 may come as the API server writes it or as Go does,
// which differ in order. "" for none.
func OwnedFingerprint(fieldsV1 []byte) string {
	if len(fieldsV1) == 0 {
		return ""
	}
	var fields any
	if json.Unmarshal(fieldsV1, &fields) == nil {
		if sorted, err := json.Marshal(fields); err == nil {
			fieldsV1 = sorted
		}
	}
	return digest(fieldsV1)
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
