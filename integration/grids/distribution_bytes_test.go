package grids

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// sentWindow is how long it is counted what a member sends at rest. client-go ends each watch
	// after 5 to 10 minutes and begins it again, so that it does so within the window.
	sentWindow = 10 * time.Minute
	// sentADay is how many bytes a member may send in a day.
	sentADay = 2_000_000
	// segment is how many bytes TCP and IP add to a segment at most, with timestamps, over IPv6.
	segment = 72
)

// TestDistributionBytes counts what a member sends to its hub while nothing changes.
func TestDistributionBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: bytes are counted for 10 minutes; run without -short")
	}
	d := newDistribution(t, west)
	d.run("west has 20 Grids", (*distribution).spread)
	d.run("rest", (*distribution).sends)
}

// spread distributes as many Grids as a cluster of a large fleet has.
func (d *distribution) spread() {
	d.west.SetLabels(d.t, "west-0", map[string]string{"location": "unit-00"})
	var all []string
	for i := range largeGrids {
		all = append(all, deploymentGrid(fmt.Sprintf("grid-%02d", i), "replicas: 1"))
	}
	d.hub.Apply(d.t, strings.Join(all, "\n---\n"))
	d.hub.MustKubectl(d.t, "label", "deploymentgrids", "--all", v1alpha1.LabelFederated+"=yes")
	wait.Until(d.t, "the hub says that west is current and ready", func() error {
		for i := range largeGrids {
			g, err := d.hub.grid(d.t.Context(), fmt.Sprintf("grid-%02d", i))
			if err != nil {
				return err
			}
			if g.Status.ClusterRate != "1/1" {
				return fmt.Errorf("clusterRate of %s is %q", g.Name, g.Status.ClusterRate)
			}
		}
		return nil
	})
}

// sends counts from one renewal of the Lease on, without the reports that are under way before it.
func (d *distribution) sends() {
	d.renewal(d.renewal(""))
	bytes, pieces := d.uplink.Sent()
	carried, opened, begin := d.uplink.Carried(), d.uplink.Opened(), time.Now()
	select {
	// real time: bytes at rest are counted over a window
	case <-time.After(sentWindow):
	case <-d.west.controller.Done():
		d.t.Fatalf("the controller of west ended:\n%s", d.west.controller.Log())
	}
	window := time.Since(begin)
	moreBytes, morePieces := d.uplink.Sent()
	bytes, pieces, carried, opened = moreBytes-bytes, morePieces-pieces, d.uplink.Carried()-carried, d.uplink.Opened()-opened
	aDay := func(n int) int { return int(float64(n) * float64(24*time.Hour) / float64(window)) }
	token := d.renewedToken()
	total := aDay(bytes) + token
	d.t.Logf("at rest, in %s: %d bytes sent in TLS and %d received, in %d pieces, %d new connections", window.Round(time.Second), bytes, carried, pieces, opened)
	d.t.Logf("in a day: %d bytes sent, of which %d for the token; with the headers of TCP and IP at most %d; %d received",
		total, token, total+segment*aDay(pieces), aDay(carried))
	// real time: bytes of a window are bytes of a day
	if total > sentADay {
		d.t.Errorf("a member sends %d bytes in a day at rest, want at most %d", total, sentADay)
	}
	if _, err := d.hub.grid(d.t.Context(), "grid-00"); err != nil || bytes == 0 {
		d.t.Errorf("%d bytes were counted, and the hub answers: %v", bytes, err)
	}
}

// renewal waits until the Lease of west says another time than before, and returns it.
func (d *distribution) renewal(before string) (now string) {
	d.t.Helper()
	wait.Until(d.t, "west renews its Lease", func() error {
		lease, err := d.hub.Client.CoordinationV1().Leases(v1alpha1.NamespacePrefix+west).Get(d.t.Context(), v1alpha1.HeartbeatLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now = lease.Spec.RenewTime.String()
		return wait.Check(now != before, "it was renewed at %s", now)
	})
	return now
}

// renewedToken is how many bytes the daily renewal of the token takes, on a connection of its own.
func (d *distribution) renewedToken() int {
	d.t.Helper()
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: "gridproxy", Name: v1alpha1.HubSecret}
	must(d.t, d.west.client.Get(d.t.Context(), key, &secret))
	api, err := kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + d.uplink.Addr.String(), Dial: apiserver.Dialer(d.west.Namespace()),
		BearerToken: string(secret.Data["token"]), TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data["ca.crt"]},
	})
	must(d.t, err)
	seconds := int64((90 * 24 * time.Hour).Seconds())
	before, _ := d.uplink.Sent()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	_, err = api.CoreV1().ServiceAccounts(v1alpha1.NamespacePrefix+west).CreateToken(d.t.Context(), v1alpha1.MemberAccount, request, metav1.CreateOptions{})
	must(d.t, err)
	after, _ := d.uplink.Sent()
	return after - before
}
