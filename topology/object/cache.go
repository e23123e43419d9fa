package object

// Limits of a cache. Texts of Nodes and Services come and go for years, and a tenant may write
// another one each second.
const (
	// maxCachedBytes is what one cache may take before it is emptied.
	maxCachedBytes = 4 << 20
	// maxCachedText is the longest text that is cached: longer ones are hardly ever equal.
	maxCachedText = 1 << 10
	// entryBytes is about what an entry takes beside its text: headers, a slot of the map, a
	// small map as value.
	entryBytes = 400
)

// cache holds one copy of the value for each text. It uses at most maxCachedBytes. The zero value
// is empty. It is not safe for concurrent use.
type cache[V any] struct {
	known map[string]V
	bytes int
}

// get returns the copy for text. first makes it, with the text to know it by.
func (c *cache[V]) get(text string, first func() (string, V)) V {
	if v, found := c.known[text]; found {
		return v
	}
	key, v := first()
	size := 2*len(key) + entryBytes // the text twice: as the key and as the value
	if len(key) > maxCachedText {
		return v
	}
	if c.known == nil || c.bytes+size > maxCachedBytes {
		c.known, c.bytes = map[string]V{}, 0 // a map that was emptied keeps its slots
	}
	c.known[key] = v
	c.bytes += size
	return v
}
