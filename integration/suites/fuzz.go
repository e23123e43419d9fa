package suites

// fuzz returns the fuzz targets.
func fuzz() []Suite {
	row := func(name, proves, pkg, target string) Suite {
		return Suite{
			Name: name, Tier: Fuzz, Usual: minutes(1, 30), Load: 150,
			Proves: proves, Packages: []string{pkg}, Fuzz: target,
		}
	}
	return []Suite{
		row("fuzz-keys", "No annotation makes the parser of topology keys panic, or opens a Service.", "./topology", "FuzzParseKeys"),
		row("fuzz-manifests", "No file makes the reader of manifests panic.", "./topology/manifest", "FuzzManifests"),
		row("fuzz-state", "No file makes the reader of saved state panic.", "./topology/state", "FuzzDecode"),
		row("fuzz-feed", "Nothing that arrives makes the reader of DNS names panic.", "./topology/dnsfeed", "FuzzReader"),
		row("fuzz-rules", "No output of iptables-save makes its parser panic.", "./rules/netfilter", "FuzzScan"),
		row("fuzz-names", "No DNS message makes the plugin for the cluster domain panic, or gets an answer that cannot be sent.", "./cmd/grid-dns/clusterzone", "FuzzMessage"),
		row("fuzz-servers", "No list of virtual servers makes its parser panic.", "./rules/ipvs", "FuzzParse"),
		row("fuzz-archive", "No archive makes the reader of archives panic, or is unpacked above its bounds.", "./controller/federation/archive", "FuzzUnpack"),
	}
}
