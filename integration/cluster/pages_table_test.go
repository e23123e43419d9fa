package cluster

import "gridproxy/integration/env/document"

// deviation is what the tests do otherwise than a page says, for the commands that begin with a
// text. Whatever is not in the table is run as it is printed, in the order of the page.
type deviation struct {
	command string
	why     string

	skipped bool                // it is not run
	replace [2]string           // a text of the command, and what is typed in its place, which may have a name of tour.values
	machine string              // where it is run, if not in the session
	output  document.Comparison // with what the page shows
	repeat  bool                // until the output is right: the page does not say how long that takes
	never   string              // what the output must not have
}

// clusterIP prints the address of the Service of the page.
const clusterIP = "kubectl get service servicegrid-demo-svc --output jsonpath={.spec.clusterIP}"

// deviations are all of them. A row that no command needs makes the test fail.
func deviations() []deviation {
	return []deviation{
		// On a laptop.
		{command: "make demo", output: document.Varies, why: "which of two Pods answers is random"},
		{command: "make test", replace: [2]string{"make test", "make -n test"}, why: "it would run this test again; the core tier is what runs it"},
		{command: "gridproxy render", output: document.Varies, why: "the page has one line of each kind"},

		// What surrounds a cluster of the tests.
		{command: "kubectl grid status", skipped: true, why: "the page shows it before there is a cluster; TestPagesOnCluster runs it when the Grid is there"},
		{command: "kubeadm init", skipped: true, why: "the control plane and the machines of the tests run without kubeadm"},
		{command: "make image", skipped: true, why: "no registry is reachable: machines have the image by this name; the suite image-test builds it"},
		{command: "docker push", skipped: true, why: "as make image"},
		{command: "helm install", replace: [2]string{"192.168.0.10:6443,192.168.0.11:6443", "APISERVERS"}, why: "the API servers of the tests have other addresses"},
		{command: "helm install", replace: [2]string{"192.168.0.10:6443", "APISERVERS"}, why: "as above"},
		{command: "helm install", replace: [2]string{"clusterCIDR=10.244.0.0/16", "CLUSTERCIDR"}, why: "the Pods of the tests have addresses of both families"},
		{command: "kubectl apply -f https://github.com/flannel-io/", skipped: true, why: "the machines have a Pod network, and tests load nothing that is not pinned"},
		{command: "kubectl apply -f - <<END", replace: [2]string{"curlimages/curl", "curl:lab"}, why: "no registry is reachable: curl:lab has this machine's curl"},
		{command: "ask()", replace: [2]string{"http://servicegrid-demo-svc/", "http://'$(" + clusterIP + ")'/"}, why: "there is no cluster DNS, which kubeadm installs"},
		{command: "iptables-save", machine: "bj-1", output: document.Varies, why: "the page says: on bj-1; addresses are others"},

		// What takes a while, or is another number each time.
		{command: "kubectl --namespace gridproxy rollout status", output: document.Varies, why: "how often it says that it waits"},
		{command: "kubectl get deploymentgrids,deployments", output: document.Varies, repeat: true, why: "the Pods start"},
		{command: "kubectl get service servicegrid-demo-svc", repeat: true, why: "the Service is made"},
		{command: "kubectl get pods --selector appGrid=echo", repeat: true, never: " gz-", why: "the page says: repeat it until none is on gz-1 or gz-2"},
		{command: "kubectl get events", repeat: true, never: "No resources found", why: "the Event is sent"},
		{command: "deploy/on-each-node", output: document.Varies, why: "the page has one line"},
		{command: "ask bj-1", output: document.Varies, repeat: true, never: "gz-", why: "which of two Pods answers is random"},
		{command: "ask gz-1", output: document.Varies, repeat: true, never: "bj-", why: "as above; a new endpoint takes a moment to reach the rules"},
	}
}
