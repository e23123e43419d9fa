package join

import (
	"time"

	"gridproxy/controller/api/v1alpha1"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// commandTimeout bounds all requests of a command to an API server.
	commandTimeout = 2 * time.Minute
	requestTimeout = 30 * time.Second

	// tokenLifetimeMin is the shortest lifetime of a token that Kubernetes allows.
	tokenLifetimeMin = 10 * time.Minute
	tokenLifetimeMax = 366 * 24 * time.Hour

	// clusterNameMax is the length of a cluster's name: that of its namespace is a label too.
	clusterNameMax = validation.DNS1123LabelMaxLength - len(v1alpha1.NamespacePrefix)
	kubeconfigMax  = 256 << 10 // bytes

	// What a member can make on the hub. Some GridReports are of Grids that are being removed.
	reportsMax = v1alpha1.MaxGrids + 100
	leasesMax  = 2
)
