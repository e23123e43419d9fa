package names

import (
	"hash/maphash"
	"iter"
	"maps"
)

// shardCount is how many small maps a sharded map consists of. 100,000 keys make 100 in each, so
// that a changed key costs a copy of 100 entries and of this many pointers.
const shardCount = 1024

// sharded is a map that is never changed. A draft of it shares all shards that it does not change.
// The seed keeps a client that chooses its keys from filling one shard.
type sharded[K comparable, V any] struct {
	seed   maphash.Seed
	shards *[shardCount]map[K]V
}

func newSharded[K comparable, V any]() sharded[K, V] {
	return sharded[K, V]{seed: maphash.MakeSeed(), shards: new([shardCount]map[K]V)}
}

func (s sharded[K, V]) index(key K) int {
	return int(maphash.Comparable(s.seed, key) % shardCount)
}

func (s sharded[K, V]) get(key K) (V, bool) {
	value, found := s.shards[s.index(key)][key]
	return value, found
}

func (s sharded[K, V]) values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, shard := range s.shards {
			for _, value := range shard {
				if !yield(value) {
					return
				}
			}
		}
	}
}

// draft is a sharded map in the making. It shares everything with the map that it came from until
// the first change.
type draft[K comparable, V any] struct {
	sharded[K, V]
	own *[shardCount]bool // shards that only the draft has; nil = not even the list of shards
}

// edit begins a draft. The sharded map stays as it is.
func (s sharded[K, V]) edit() *draft[K, V] { return &draft[K, V]{sharded: s} }

// put sets the value of a key, or with keep false takes the key out.
func (d *draft[K, V]) put(key K, value V, keep bool) {
	if d.own == nil {
		shards := *d.shards
		d.shards, d.own = &shards, new([shardCount]bool)
	}
	i := d.index(key)
	if !d.own[i] {
		d.shards[i], d.own[i] = maps.Clone(d.shards[i]), true
	}
	if !keep {
		delete(d.shards[i], key)
		return
	}
	if d.shards[i] == nil {
		d.shards[i] = map[K]V{}
	}
	d.shards[i][key] = value
}
