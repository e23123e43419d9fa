package grid

import (
	"fmt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is what differs between the three Grids: their Go types.
type kind struct {
	name      expand.Kind
	newGrid   func() client.Object
	newGrids  func() client.ObjectList
	newChild  func() child
	newChilds func() client.ObjectList
	read      func(client.Object) expand.Grid
	// status returns a Grid's whole status, of the Go type of its field; written returns that
	// field; common returns the part of either that expand reads again.
	status  func(expand.Observed) any
	written func(client.Object) any
	common  func(any) v1.WorkloadGridStatus
	// withRemovals returns a status with other removals; a ServiceGrid has none.
	withRemovals func(any, []v1.Removal) any
}

// units reports whether the kind's children are in units, so that its controller watches Nodes.
func (k kind) units() bool { return k.name != expand.ServiceGrid }

func kinds() []kind { return []kind{deploymentGrid(), statefulSetGrid(), serviceGrid()} }

func deploymentGrid() kind {
	return kind{
		name:      expand.DeploymentGrid,
		newGrid:   func() client.Object { return &v1.DeploymentGrid{} },
		newGrids:  func() client.ObjectList { return &v1.DeploymentGridList{} },
		newChild:  func() child { return &deployment{} },
		newChilds: func() client.ObjectList { return &deploymentList{} },
		read:      reader(expand.FromDeploymentGrid),
		common:    func(s any) v1.WorkloadGridStatus { return s.(v1.DeploymentGridStatus).WorkloadGridStatus },
		status: func(observed expand.Observed) any {
			common, states := expand.Report(observed)
			return v1.DeploymentGridStatus{WorkloadGridStatus: common, States: states}
		},
		written: func(o client.Object) any { return o.(*v1.DeploymentGrid).Status },
		withRemovals: func(s any, r []v1.Removal) any {
			status := s.(v1.DeploymentGridStatus)
			status.Removals = r
			return status
		},
	}
}

func statefulSetGrid() kind {
	return kind{
		name:      expand.StatefulSetGrid,
		newGrid:   func() client.Object { return &v1.StatefulSetGrid{} },
		newGrids:  func() client.ObjectList { return &v1.StatefulSetGridList{} },
		newChild:  func() child { return &statefulSet{} },
		newChilds: func() client.ObjectList { return &statefulSetList{} },
		read:      reader(expand.FromStatefulSetGrid),
		common:    func(s any) v1.WorkloadGridStatus { return s.(v1.StatefulSetGridStatus).WorkloadGridStatus },
		status: func(observed expand.Observed) any {
			common, states := expand.Report(observed)
			return v1.StatefulSetGridStatus{WorkloadGridStatus: common, States: states}
		},
		written: func(o client.Object) any { return o.(*v1.StatefulSetGrid).Status },
		withRemovals: func(s any, r []v1.Removal) any {
			status := s.(v1.StatefulSetGridStatus)
			status.Removals = r
			return status
		},
	}
}

func serviceGrid() kind {
	return kind{
		name:      expand.ServiceGrid,
		newGrid:   func() client.Object { return &v1.ServiceGrid{} },
		newGrids:  func() client.ObjectList { return &v1.ServiceGridList{} },
		newChild:  func() child { return &service{} },
		newChilds: func() client.ObjectList { return &serviceList{} },
		read:      reader(expand.FromServiceGrid),
		common: func(s any) v1.WorkloadGridStatus {
			return v1.WorkloadGridStatus{GridStatus: s.(v1.ServiceGridStatus).GridStatus}
		},
		status:  func(observed expand.Observed) any { return expand.ServiceStatus(observed) },
		written: func(o client.Object) any { return o.(*v1.ServiceGrid).Status },

		withRemovals: func(s any, _ []v1.Removal) any { return s },
	}
}

// reader returns from as a function of any object. That function panics unless the object is a
// G: the caller hands in what newGrid made.
func reader[G client.Object](from func(G) expand.Grid) func(client.Object) expand.Grid {
	return func(o client.Object) expand.Grid { return from(o.(G)) }
}

// Scheme returns the scheme of a manager for Add. It has Deployments, StatefulSets and Services
// only as reduced objects.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for kind, types := range map[expand.Kind][2]runtime.Object{
		expand.DeploymentGrid: {&deployment{}, &deploymentList{}}, expand.StatefulSetGrid: {&statefulSet{}, &statefulSetList{}},
		expand.ServiceGrid: {&service{}, &serviceList{}},
	} {
		k := kind.Child()
		s.AddKnownTypeWithName(k, types[0])
		s.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), types[1])
	}
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, appsv1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, policyv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("making the controller's scheme: %w", err)
		}
	}
	return s, nil
}
