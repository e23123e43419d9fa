package topology

// Remembered is of how many Services a Memo remembers something.
func Remembered(m *Memo) int { return len(m.services) + len(m.malformed) }

// RememberedNames is Remembered of a DNSMemo, with the cluster IPs.
func RememberedNames(m *DNSMemo) int { return len(m.services) + len(m.malformed) + len(m.addrs) }
