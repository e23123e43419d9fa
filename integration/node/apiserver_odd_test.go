package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"
	"gridproxy/topology/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// oddObjects is how many objects are drawn.
const oddObjects = 1000

// deliberateDifference is a reason for which one of both refuses an object, and the other takes it.
type deliberateDifference struct {
	refusal string // a regular expression of "server|file KIND/TYPE FIELD: REASON"
	why     string
	example string // an object that shows the difference
}

// differences returns all of them, at most ten. Each is about what a file may hold although an API
// server refuses it, except the last one.
func differences() []deliberateDifference {
	const (
		service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{`
		slice   = `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"a","labels":{"kubernetes.io/service-name":"a"}},`
		node    = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":{`
	)
	return []deliberateDifference{
		{
			`^server \S+ \S+: .*(leading 0s|IPv4-mapped|must be in canonical form|must not have bits set|must be a valid CIDR|invalid PodCIDRs)`,
			"earlier API servers have stored such spellings, and kube-proxy reads them", node + `"podCIDR":"010.0.0.0/8"}}`,
		},
		{
			`^server \S+ \S+: .*(may not be in the|may not be unspecified|may not be the)`,
			"earlier API servers have stored such addresses; they are not used, and explain says why", service + `"clusterIP":"10.96.9.9","ports":[{"port":80}],"externalIPs":["127.0.0.1"]}}`,
		},
		{
			`^server Service/\S* .*(does not match the current range|not in the valid range)`,
			"the ranges of cluster IPs and NodePorts are flags of an API server", service + `"clusterIP":"192.0.2.1","ports":[{"port":80}]}}`,
		},
		{
			`^server Service/ExternalName spec\.`,
			"no proxy reads more of it than its type, and DNS only spec.externalName", service + `"type":"ExternalName","externalName":"a.example.com","clusterIP":"192.0.2.1"}}`,
		},
		{
			`^server EndpointSlice/FQDN endpoints\[\d+\]\.addresses`,
			"neither a proxy nor DNS uses an EndpointSlice of names", slice + `"addressType":"FQDN","endpoints":[{"addresses":["a"]}]}`,
		},
		{
			`^server (\S+ (spec\.trafficDistribution|ports\[\d+\]\.appProtocol|endpoints\[\d+\]\.(hints|zone|hostname))|Service/\S* (metadata\.(labels|generateName)|status\.loadBalancer\.ingress\[\d+\]\.hostname))`,
			"no proxy reads the field, or what is odd in it is left out by DNS or matches no Node", service + `"clusterIP":"None","trafficDistribution":"a"}}`,
		},
		{
			`^server Service/\S* \S+: .*(may only be set|may only be used|may not be set|must not be set|may not be specified when)`,
			"a field without a meaning beside the others is ignored", service + `"clusterIP":"None","externalTrafficPolicy":"Local"}}`,
		},
		{
			`^server Service/\S* spec\.(ipFamil(ies|yPolicy)|clusterIPs: .*must be empty when .clusterIP. is not)`,
			"clusterIP and the families follow from clusterIPs", service + `"clusterIP":"None","ipFamilies":["IPv4","IPv4"]}}`,
		},
		{
			`^server Node/ (spec\.podCIDRs: .*more than one CIDR for each|status\.addresses\[\d+\]: Duplicate)`,
			"the first of each family counts", node + `"podCIDRs":["10.0.0.0/8","11.0.0.0/8"]}}`,
		},
		{
			`^file \S+ .*metadata\.name: is missing`,
			"an API server makes a name of generateName; a file that is read again needs the same one", strings.Replace(node, `"name"`, `"generateName"`, 1) + `}}`,
		},
	}
}

// TestManifestsAreTakenAsByAPIServers: a random odd object is taken from a file if and only if an
// API server stores it, with the exception of the deliberate differences.
func TestManifestsAreTakenAsByAPIServers(t *testing.T) {
	t.Parallel()
	s := newOddServer(t)
	seed := uint64(1) // a difference that only another seed draws is found on purpose, not by chance
	if text := os.Getenv("GRIDPROXY_ODD_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("seed %d (GRIDPROXY_ODD_SEED)", seed)
	for i, d := range differences() {
		if !slices.Contains(s.refusals(t, []byte(d.example)), i) {
			t.Errorf("the example of %q shows no difference of this kind", d.why)
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	var kinds []*oddKind
	for _, k := range oddKinds() {
		kinds = append(kinds, slices.Repeat([]*oddKind{k}, k.share)...)
	}
	for i := range oddObjects {
		s.refusals(t, kinds[i%len(kinds)].draw(r, i))
	}
	t.Logf("both took %d objects, and refused %d; %d were taken by one of them alone", s.taken, s.refused, s.differ)
	if s.taken < oddObjects/5 || s.refused < oddObjects/5 {
		t.Error("the objects are too odd, or not odd enough")
	}
}

// oddServer is a control plane that has the definitions of Grids.
type oddServer struct {
	ctx                    context.Context
	client                 rest.Interface
	rows                   []*regexp.Regexp // of differences
	taken, refused, differ int
}

func newOddServer(t *testing.T) *oddServer {
	t.Helper()
	client := apiserver.ClientForTest(t, apiserver.ForTest(t, apiserver.Options{}).Admin())
	s := &oddServer{ctx: (2 * wait.Usual).Context(t), client: client.CoreV1().RESTClient()}
	for _, d := range differences() {
		s.rows = append(s.rows, regexp.MustCompile(d.refusal))
	}
	files, err := filepath.Glob("../../deploy/crds/*statefulsetgrids*.yaml")
	if err != nil || len(files) != 1 {
		t.Fatalf("the definition of StatefulSetGrids is in %q: %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	must(t, err)
	text, err = yaml.YAMLToJSON(text)
	must(t, err)
	must(t, s.write(s.client.Post(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text).Error())
	wait.Until(t, "StatefulSetGrids are served", func() error { return s.client.Get().AbsPath(oddGrids).Do(s.ctx).Error() })
	return s
}

func (s *oddServer) write(r *rest.Request, path string, object []byte) rest.Result {
	return r.AbsPath(path).SetHeader("Content-Type", "application/json").Body(object).Do(s.ctx)
}

// refusals compares both on one object. It returns the rows of the deliberate differences by which
// only one of them refuses it.
func (s *oddServer) refusals(t *testing.T, object []byte) (rows []int) {
	t.Helper()
	_, _, fromFile := manifest.ReadWithNames([]string{"-"}, bytes.NewReader(object))
	fromServer := s.store(t, object)
	switch {
	case fromFile == nil && fromServer == nil:
		s.taken++
		return nil
	case fromFile != nil && fromServer != nil:
		s.refused++
		return nil
	}
	s.differ++
	for _, refusal := range reasons(object, fromFile, fromServer) {
		row := slices.IndexFunc(s.rows, func(row *regexp.Regexp) bool { return row.MatchString(refusal) })
		if row < 0 {
			t.Errorf("only one of both refuses this object:\n%s\n%s", object, refusal)
		}
		rows = append(rows, row)
	}
	return rows
}

// store creates an object, sets its status by the subresource, and deletes it. The error is that of
// an object that is not stored.
func (s *oddServer) store(t *testing.T, object []byte) error {
	t.Helper()
	given, stored := fieldsOf(t, object), map[string]any(nil)
	path := pathOf(given["kind"])
	created := s.write(s.client.Post(), path, object)
	if err := created.Error(); err != nil {
		return err
	}
	text, err := created.Raw()
	must(t, err)
	stored = fieldsOf(t, text)
	metadata, _ := stored["metadata"].(map[string]any)
	path += "/" + fmt.Sprint(metadata["name"])
	defer func() { must(t, s.client.Delete().AbsPath(path).Do(s.ctx).Error()) }()
	if given["status"] == nil {
		return nil
	}
	stored["status"] = given["status"]
	text, err = json.Marshal(stored)
	must(t, err)
	return s.write(s.client.Put(), path+"/status", text).Error()
}

func fieldsOf(t *testing.T, object []byte) (fields map[string]any) {
	t.Helper()
	must(t, json.Unmarshal(object, &fields))
	return fields
}

// reasons returns why one of both refuses an object, a line for each field, as rows match them.
func reasons(object []byte, fromFile, fromServer error) (lines []string) {
	var o struct {
		Kind        string
		AddressType string
		Spec        struct{ Type string }
	}
	_ = json.Unmarshal(object, &o) // a field of another type has no name to match
	kind := o.Kind + "/" + o.Spec.Type + o.AddressType + " "
	if fromFile != nil {
		for line := range strings.SplitSeq(fromFile.Error(), "\n") {
			lines = append(lines, "file "+kind+line)
		}
		return lines
	}
	var status apierrors.APIStatus
	if !errors.As(fromServer, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return []string{"server " + kind + fromServer.Error()}
	}
	for _, cause := range status.Status().Details.Causes {
		lines = append(lines, "server "+kind+cause.Field+": "+cause.Message)
	}
	return lines
}
