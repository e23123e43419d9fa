package grids

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/controller/grid"
)

// What the manual prints. Its kubectl was of Kubernetes 1.18.
const (
	manualDeployments = `
NAME                            READY   UP-TO-DATE   AVAILABLE   AGE
deploymentgrid-demo-beijing     2/2     2            2           14s
deploymentgrid-demo-guangzhou   2/2     2            2           14s
`
	manualStatefulSets = `
NAME                             READY   AGE
statefulsetgrid-demo-beijing     3/3     49s
statefulsetgrid-demo-guangzhou   3/3     49s
`
	manualServices = `
NAME                   TYPE        CLUSTER-IP      EXTERNAL-IP   PORT(S)             AGE
kubernetes             ClusterIP   172.16.33.1     <none>        443/TCP             47h
servicegrid-demo-svc   ClusterIP   172.16.33.231   <none>        80/TCP              3s
`
	manualDescribe = `
Name:              servicegrid-demo-svc
Namespace:         default
Labels:            superedge.io/grid-selector=servicegrid-demo
                   superedge.io/grid-uniq-key=location
Annotations:       topologyKeys: ["location"]
Selector:          appGrid=echo
Type:              ClusterIP
IP Families:       <none>
IP:                172.16.33.231
IPs:               <none>
Port:              <unset>  80/TCP
TargetPort:        8080/TCP
Endpoints:         10.0.0.139:8080,10.0.0.70:8080,10.0.1.72:8080 + 1 more...
Session Affinity:  None
Events:            <none>
`
	manualDescribeHeadless = `
Name:              servicegrid-demo-svc
Namespace:         default
Labels:            superedge.io/grid-selector=servicegrid-demo
                   superedge.io/grid-uniq-key=location
Annotations:       topologyKeys: ["location"]
Selector:          appGrid=echo
Type:              ClusterIP
IP Families:       <none>
IP:                None
IPs:               <none>
Port:              <unset>  8080/TCP
TargetPort:        8080/TCP
Endpoints:         10.0.0.139:8080,10.0.0.70:8080,10.0.1.72:8080 + 1 more...
Session Affinity:  None
Events:            <none>
`
)

// tables are kubectl's tables without the spaces, and without what is another each time: the age, which is the last
// column, and the cluster IPs of Services.
func tables(text string) string {
	var lines []string
	hidden := -1
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		cells := strings.Fields(line)
		if len(cells) == 0 {
			continue
		}
		if cells[0] == "NAME" {
			hidden = -1
			if len(cells) > 1 && cells[1] == "TYPE" {
				hidden = 2
			}
		} else if hidden > 0 {
			cells[hidden] = "-"
		}
		lines = append(lines, strings.Join(cells[:len(cells)-1], "  "))
	}
	return strings.Join(lines, "\n")
}

// sameDescription compares what kubectl says of a Service with what it said to the manual's author. Addresses are
// another cluster's, but None is None; the lines about IP families are another Kubernetes'. Events are compared as far
// as they are ours: the EndpointSlice controller tells of its own troubles when a Service is replaced.
func sameDescription(got, want string) error {
	has, wants := fields(got), fields(want)
	for name, value := range wants {
		switch name {
		case "IP Families", "IPs", "Endpoints":
			continue
		case "IP":
			if (value == "None") != (has[name] == "None") {
				return fmt.Errorf("%s is %q, the manual's is %q", name, has[name], value)
			}
			continue
		case "Events":
			if !strings.Contains(has[name], grid.Manager) {
				continue
			}
		}
		if has[name] != value {
			return fmt.Errorf("%s is %q, the manual prints %q", name, has[name], value)
		}
	}
	return nil
}

// fields are the lines of a description by their names; lines without one belong to the one before.
func fields(text string) map[string]string {
	all := map[string]string{}
	last := ""
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		value := line
		if !strings.HasPrefix(line, " ") {
			last, value, _ = strings.Cut(line, ":")
		}
		all[last] = strings.Join(append(strings.Fields(all[last]), strings.Fields(value)...), " ")
	}
	return all
}

// TestTranscripts: a difference in any line that counts is seen.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	today := strings.NewReplacer(
		"IP Families:       <none>", "IP Family Policy: SingleStack\nIP Families: IPv4", "172.16.33.231", "10.96.0.7", "+ 1", "+ 7",
		"Events:            <none>", "Events:\n  Warning  FailedToUpdateEndpointSlices  2s  endpoint-slice-controller  gone",
	).Replace(manualDescribe)
	if err := sameDescription(today, manualDescribe); err != nil {
		t.Errorf("another cluster's Service is not the manual's: %v", err)
	}
	for _, change := range [][2]string{
		{"superedge.io/grid-uniq-key=location", "superedge.io/grid-uniq-key=location\n  app=echo"},
		{`["location"]`, "[\"location\"]\n  superedge.io/grid: servicegrid-demo"},
		{"appGrid=echo", "app=echo"}, {"80/TCP\n", "81/TCP\n"}, {"8080/TCP", "80/TCP"}, {"None\n", "ClientIP\n"}, {"172.16.33.231", "None"},
		{"Events:            <none>", "Events:\n  Warning  NameCollision  2s  grid-controller  no"},
	} {
		if other := strings.Replace(manualDescribe, change[0], change[1], 1); sameDescription(other, manualDescribe) == nil {
			t.Errorf("%q in the place of %q is not seen", change[1], change[0])
		}
	}
	if got, want := tables(manualServices), "NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)\nkubernetes  ClusterIP  -  <none>  443/TCP\n"+
		"servicegrid-demo-svc  ClusterIP  -  <none>  80/TCP"; got != want {
		t.Errorf("a table is read as\n%s\nwant\n%s", got, want)
	}
}
