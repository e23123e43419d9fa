package deploy

import (
	"embed"
	"io/fs"
)

//go:embed crds/*.yaml
var crds embed.FS

// CRDs returns the folder deploy/crds: each CustomResourceDefinition as GROUP_PLURAL.yaml.
func CRDs() (fs.FS, error) { return fs.Sub(crds, "crds") }
