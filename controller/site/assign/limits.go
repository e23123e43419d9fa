package assign

// Limits of a status. It stays below 100 kB with them.
const (
	namesMax     = 500   // of a list
	nameBytesMax = 30000 // of a list
	removalsMax  = 200   // rows of a group, and so removals within an hour
)

// Limits of one message.
const (
	shownFindingsMax = 5
	shownNamesMax    = 3 // of Nodes that keep a label, or of users of a key
)

// MaxAnnotation is how many bytes of the annotation topologyKeys are read. A longer one is
// malformed.
const MaxAnnotation = 16<<10 + 1

// guessesMax bounds the keys that are read from a malformed annotation.
const guessesMax = 64
