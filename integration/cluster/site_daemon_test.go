package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridproxy/integration/env/document"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"
)

// operator follows docs/site-alone.md: the daemon of gridproxy's site starts without an API server.
type operator struct {
	page  document.Document
	text  string // of the page
	shell document.Shell
}

func (w *siteCluster) newOperator() operator {
	w.t.Helper()
	o := operator{
		page:  document.Document{Path: "../../docs/site-alone.md"},
		shell: document.NewShell(w.t, w.Admin(), map[string]string{"kubectl": w.Tools().Path("kubectl")}),
	}
	text, err := os.ReadFile(o.page.Path)
	must(w.t, err)
	o.text = string(text)
	o.shell.Namespace = w.Outside()
	o.shell.Link(w.t, "deploy", source+"/deploy")
	return o
}

// command is one that the page shows, with the name of a machine.
func (w *siteCluster) command(shown, machine string) string {
	w.t.Helper()
	if !strings.Contains(w.operator.text, shown) {
		w.t.Fatalf("%s does not show the command %q", w.operator.page.Path, shown)
	}
	return strings.ReplaceAll(shown, "NAME", machine)
}

// types runs a command of the page, as an administrator of the cluster does.
func (w *siteCluster) types(shown, machine string) string {
	w.t.Helper()
	return w.operator.shell.Run(w.t, w.command(shown, machine))
}

func (w *siteCluster) install(s *remoteSite) {
	w.t.Helper()
	helm, err := chart.New(w.t.Context(), os.Stderr, w.t.TempDir())
	must(w.t, err)
	must(w.t, w.Install(w.t.Context(), helm, "controller.enabled=false", "crds.install=false", `daemon.nodeSelector={"location":"`+s.unit+`"}`))
	w.MustKubectl(w.t, "--namespace=gridproxy", "rollout", "status", "daemonset/gridproxy", "--timeout=120s")
}

// moveNodes moves the machines of gridproxy's site from the DaemonSet to static Pods, one after the
// other, by the commands of the page. No client notices.
func (w *siteCluster) moveNodes(s *remoteSite) {
	w.t.Helper()
	begin := time.Now()
	c := w.clients("web")
	w.operator.shell.Follow(w.t, w.operator.page, "With the certificate of the kubelet")
	for _, machine := range s.machines() {
		w.types("kubectl label node NAME gridproxy.io/site-alone=static-pod", machine)
		wait.Until(w.t, "the Pod of the DaemonSet on "+machine+" is gone", func() error {
			const pods = "kubectl --namespace gridproxy get pods --output wide --field-selector spec.nodeName=NAME"
			out := w.types(pods, machine)
			return wait.Check(out == "", "%s", out)
		})
		w.place(machine)
		w.inOrder(machine)
	}
	for service, got := range w.stop(c)[ours] {
		w.figures.set("moved to static Pods: clients of "+service, ours, "%s", got)
		w.allAnswered("while Nodes were moved to static Pods: clients of "+service, got, begin)
	}
}

// place edits the static Pod of deploy as its comments say, and gives it to the kubelet of a
// machine. flags are further ones of gridproxy.
func (w *siteCluster) place(machine string, flags ...string) {
	w.t.Helper()
	text, err := os.ReadFile(source + "/deploy/site-alone/static-pod.yaml")
	must(w.t, err)
	const cidr = "- --cluster-cidr="
	edited := string(text)
	for _, edit := range [][2]string{
		{cidr + "10.244.0.0/16 ", cidr + machines.ClusterCIDRs + " "},
		{"/etc/kubernetes/", machines.Kubernetes + "/"},
		{"- --state-dir=", strings.Join(append(flags, "- --state-dir="), "\n        ")},
	} {
		if !strings.Contains(edited, edit[0]) {
			w.t.Fatalf("the static Pod has no %q", edit[0])
		}
		edited = strings.ReplaceAll(edited, edit[0], edit[1])
	}
	must(w.t, os.WriteFile(w.Machine(machine).Disk("/var/lib/static-pod.yaml"), []byte(edited), 0o600))
	install := w.command("install -m 0600 static-pod.yaml /etc/kubernetes/manifests/gridproxy.yaml", machine)
	install = strings.ReplaceAll(install, "/etc/kubernetes", machines.Kubernetes)
	_, err = w.Machine(machine).Run(w.t.Context(), nil, "sh", "-c", "cd /var/lib && "+install)
	must(w.t, err)
}

// inOrder checks a Node as the page says, in its static Pod.
func (w *siteCluster) inOrder(machine string) {
	w.t.Helper()
	status := w.command("kubectl --namespace gridproxy exec gridproxy-NAME -- gridproxy status", machine)
	for _, check := range []string{status, strings.TrimSuffix(status, "status") + "diff"} {
		wait.Until(w.t, check, func() error {
			_, err := w.Kubectl(strings.Fields(check)[1:]...)
			return err
		})
	}
}

// process is the id of the one process on a machine whose arguments fit, by the machine's numbers.
func (w *siteCluster) process(machine string, fits func(args []string) bool) (int, error) {
	proc := fmt.Sprintf("/proc/%d/root/proc", w.Machine(machine).PID())
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, fmt.Errorf("reading the processes of %s: %w", machine, err)
	}
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join(proc, e.Name(), "cmdline"))
		if pid, no := strconv.Atoi(e.Name()); no == nil && err == nil && fits(strings.Split(string(line), "\x00")) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("%s has no such process", machine)
}

// daemon is gridproxy on a machine. flags are those that it must have.
func (w *siteCluster) daemon(machine string, flags ...string) (int, error) {
	return w.process(machine, func(args []string) bool {
		return len(args) > 2 && args[0] == "gridproxy" && args[1] == "run" && !slices.Contains(args, "--init-only") &&
			!slices.ContainsFunc(flags, func(f string) bool { return !slices.Contains(args, f) })
	})
}

// otherDaemon waits for a daemon that is not one that was killed.
func (w *siteCluster) otherDaemon(machine string, killed int) error {
	return wait.Usual.For(w.t.Context(), func(context.Context) error {
		pid, err := w.daemon(machine)
		return errors.Join(err, wait.Check(pid != killed, "%s still has process %d", machine, pid))
	})
}

// replace gives the daemon on each machine of a site another flag, and waits until it is ready.
func (w *siteCluster) replace(s *remoteSite, flag string) {
	w.t.Helper()
	for _, machine := range s.machines() {
		w.place(machine, "- "+flag)
	}
	for _, machine := range s.machines() {
		must(w.t, wait.Usual.For(w.t.Context(), func(ctx context.Context) error {
			if _, err := w.daemon(machine, flag); err != nil {
				return err
			}
			return w.Machine(machine).Namespace.Readyz(ctx)
		}))
	}
}

func (w *siteCluster) showDaemons(s *remoteSite) {
	w.t.Helper()
	for _, machine := range s.machines() {
		out, err := w.Machine(machine).Run(context.Background(), nil, "sh", "-c", "tail -n 40 /var/log/pods/gridproxy_*/gridproxy/*.log")
		w.t.Logf("the end of the logs of gridproxy on %s: %v\n%s", machine, err, out)
	}
}
