package assign

// Limits of a status. It stays below 100 kB with them.
const (
	maxNames     = 500   // of a list
	maxNameBytes = 30000 // of a list
	maxRemovals  = 200   // rows of a group, and so removals within an hour
)

// Limits of one message.
const (
	maxShownNodes    = 3
	maxShownFindings = 5
	maxShownUsers    = 3 // of a key
)

// MaxAnnotation is how many bytes of the annotation topologyKeys are read. A longer one is
// malformed.
const MaxAnnotation = 16<<10 + 1

// maxGuesses bounds the keys that are read from a malformed annotation.
const maxGuesses = 64
