package rules

// Removal is what a Cleanup removes, counted by it. A nil Removal counts nothing.
type Removal struct {
	DryRun bool // only count: nothing is removed
	Items  []RemovedItem

	FoundFirewall bool // KUBE-FIREWALL exists, which no Cleanup removes
}

// RemovedItem counts things of one kind at one place.
type RemovedItem struct {
	Where string // such as "iptables-nft IPv4 nat"
	What  string // such as "chains"
	Count int
}

// Add counts n more things; 0 adds nothing.
func (r *Removal) Add(where, what string, n int) {
	if r == nil || n == 0 {
		return
	}
	for i := range r.Items {
		if r.Items[i].Where == where && r.Items[i].What == what {
			r.Items[i].Count += n
			return
		}
	}
	r.Items = append(r.Items, RemovedItem{where, what, n})
}

// FindFirewall records that KUBE-FIREWALL exists.
func (r *Removal) FindFirewall() {
	if r != nil {
		r.FoundFirewall = true
	}
}

// IsDry reports whether nothing is to be removed.
func (r *Removal) IsDry() bool { return r != nil && r.DryRun }
