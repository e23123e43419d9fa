package join

import (
	"time"

	"gridproxy/controller/api/v1alpha1"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// commandTimeout bounds all requests of a command to an API server.
	commandTimeout = 2 * time.Minute
	// requestTimeout bounds one request to an API server.
	requestTimeout = 30 * time.Second

	// tokenLifetimeMin is the shortest lifetime of a token that Kubernetes allows.
	tokenLifetimeMin = 10 * time.Minute
	tokenLifetimeMax = 366 * 24 * time.Hour

	// clusterNameMax is the length of a cluster's name: that of its namespace is a label too.
	clusterNameMax = validation.DNS1123LabelMaxLength - len(v1alpha1.NamespacePrefix)
	// kubeconfigMax is the size of a member's kubeconfig in bytes.
	kubeconfigMax = 256 << 10

	// reportsMax is how many GridReports a member can make on the hub. Some are of Grids that are
	// being removed.
	reportsMax = v1alpha1.MaxGrids + 100
	// leasesMax is how many Leases a member can make on the hub.
	leasesMax = 2
)
