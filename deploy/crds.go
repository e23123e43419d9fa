package deploy

import (
	"embed"
	"io/fs"
)

//go:embed crds/*.yaml
var crds embed.FS

// CRDs is the folder deploy/crds: a file for each CustomResourceDefinition, named GROUP_PLURAL.yaml.
func CRDs() (fs.FS, error) { return fs.Sub(crds, "crds") }
