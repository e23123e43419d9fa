package expand

import v1 "gridproxy/controller/api/v1"

// Status is the status of a DeploymentGrid or StatefulSetGrid, but for states.
func Status(World) v1.WorkloadGridStatus { return v1.WorkloadGridStatus{} }

// States is status.states: what each child says of itself, by its unit's value.
func States(World) map[string]v1.State { return nil }

// ServiceStatus is the status of a ServiceGrid.
func ServiceStatus(World) v1.ServiceGridStatus { return v1.ServiceGridStatus{} }
