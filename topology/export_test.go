package topology

// Remembered is of how many Services a Memo remembers something.
func Remembered(m *Memo) int { return len(m.services) + len(m.malformed) }
