package driver

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/topology"
)

// renderServers writes the part that --part names, or all parts, each after a comment line with its
// name.
func renderServers(w io.Writer, want rules.Ruleset, o options.Options) error {
	compiled := compile(want, o)
	state := compiled.State()
	for _, part := range options.Parts() {
		if o.Part != "" && o.Part != part {
			continue
		}
		if o.Part == "" {
			if _, err := fmt.Fprintf(w, "# %s\n", part); err != nil {
				return err
			}
		}
		if err := renderPart(w, part, compiled.Residual, state, o); err != nil {
			return err
		}
	}
	return nil
}

func renderPart(w io.Writer, part options.Part, residual rules.Ruleset, state ipvs.State, o options.Options) error {
	for _, p := range ipvs.Parts() {
		if options.Part(p.Name) == part {
			return p.Write(w, state, o.Family)
		}
	}
	return renderChains(w, residual, o)
}

// compile splits want into virtual servers and chains, for a kernel that has every scheduler.
func compile(want rules.Ruleset, o options.Options) ipvs.Compiled {
	return new(ipvs.Compiler).Compile(want, serversConfig(o, nil, nil).Config)
}

// warnSchedulers returns warnings about schedulers that no kernel has, one for each Service.
func warnSchedulers(want rules.Ruleset, o options.Options) (warnings []string) {
	for _, s := range want.Services {
		if s.Scheduler != "" && !slices.Contains(ipvs.Schedulers(), s.Scheduler) {
			warnings = append(warnings, fmt.Sprintf("Service %s: annotation %s asks for scheduler %q, which does not exist; %s is used instead; want %s",
				s.Name.NamespacedName, topology.AnnotationScheduler, s.Scheduler, o.IPVS.Scheduler, strings.Join(ipvs.Schedulers(), ", ")))
		}
	}
	return slices.Compact(warnings)
}
