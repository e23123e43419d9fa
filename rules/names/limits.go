package names

const (
	// DefaultTTL is the TTL of records in seconds, as that of the kubernetes plugin of CoreDNS.
	DefaultTTL = 5

	// minRecordSize is the size of the smallest record in a message, an A record, in bytes.
	minRecordSize = 16
	// recordsMax is how many records one lookup returns: one more than fit into a message of 64 KiB,
	// the largest there is.
	recordsMax = 1 << 16 / minRecordSize
	// stepsMax is how many steps one lookup takes. An endpoint is one step, and so is each port of a
	// list that the endpoint before it does not share. Slices may have thousands of ports.
	stepsMax = 1 << 16
	// namesOfNamespaceMax is how many endpoints of one namespace give an address its names, so that
	// whoever may create EndpointSlices in one cannot push out the names that others give it.
	namesOfNamespaceMax = 64
)
