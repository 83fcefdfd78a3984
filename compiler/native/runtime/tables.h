// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tables and references into their values, for generated code; included after the prelude.
//
// A table is memory of the graph that starts as zeros, with a constant shape: everything here is
// inlined and folded by it. Entries never move, so a reference is an address. Each entry has a
// generation, which is odd while the entry exists: a reference with another generation is stale.
//
// Exact match uses open addressing in chunks. A chunk begins with a head word: for each of its
// ways, at most seven, one byte of the key's hash (0: free), and in the highest byte the number of
// entries that found the chunk full and are stored further on (sticky at 255). So a lookup compares
// keys almost only if they are equal, stops at the first chunk that no entry has skipped, and needs
// no tombstones. Small entries share two lines of 64 bytes with their chunk's head; for large ones
// a lookup touches the head's line and the entry's.
//
// Longest-prefix match uses exact match of (length, data truncated to it). An array of roots,
// indexed by the first bits of the data, contains the longest entry that is no longer than those
// bits, and the set of greater lengths below the root. A lookup probes each of these, longest
// first. An entry n bits shorter than the root's costs 2^n writes to insert or delete.

struct table_shape {
    uint32_t kind;
    uint32_t key_bytes, value_bytes, data_bits; // Width of the data of a longest-prefix key.
    uint32_t ways, entry_bytes, chunk_bytes;
    uint32_t root_bits;    // Leading data bits that index the roots.
    uint64_t roots, first; // Offsets of the roots, and of the chunks or an array's values.
    uint64_t chunks, capacity;
};

enum { TABLE_HASH, TABLE_LRU, TABLE_ARRAY, TABLE_PREFIX };

// Start of a table's memory. In longest-prefix tables it is followed by a bitmap of the lengths in
// use, the number of entries with each length, and the roots.
struct table {
    uint64_t count, seed;
    uint32_t newest, oldest; // LRU: offsets of values from the first chunk; 0: no entry.
};

// A value follows its entry's key, its links if the table is LRU, and its generation.
#define GENERATION_BYTES 4
#define LINK_BYTES 8

struct reference {
    uint8_t *value; // NULL: a null reference.
    uint64_t offset;
    uint32_t bytes;      // Size of the value.
    uint32_t generation; // At the time of the lookup; 0: cannot change.
};

INLINE uint32_t load_word(const uint8_t *from) { return (uint32_t)load_bytes(from, 4); }
INLINE void store_word(uint8_t *to, uint32_t word) { memcpy(to, &word, 4); }

// Returns the address of `bytes` bytes at a reference; NULL if out of range.
INLINE uint8_t *reference_place(const struct reference reference, const uint32_t bytes) {
    if (UNLIKELY(reference.value == NULL || bytes > reference.bytes)) return NULL;
    if (UNLIKELY(reference.offset > reference.bytes - bytes)) return NULL;
    if (reference.generation != 0 &&
        UNLIKELY(load_word(reference.value - GENERATION_BYTES) != reference.generation)) {
        return NULL;
    }
    return reference.value + reference.offset;
}

// Hashing: multiplications with folded halves, 16 bytes of the key at a time.

INLINE uint64_t table_mix(uint64_t a, uint64_t b) {
    const uint128 product = (uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

INLINE uint64_t table_hash(const uint8_t *key, const uint32_t bytes, uint64_t hash) {
    const uint64_t first = UINT64_C(0xa0761d6478bd642f), second = UINT64_C(0xe7037ed1a0b428db);
    uint32_t at = 0;
    for (; bytes - at > 16; at += 16) {
        hash = table_mix(load_bytes(key + at, 8) ^ first, load_bytes(key + at + 8, 8) ^ hash);
    }
    const uint32_t left = bytes - at;
    const uint64_t low = load_bytes(key + at, left < 8 ? left : 8);
    const uint64_t high = left > 8 ? load_bytes(key + at + 8, left - 8) : 0;
    return table_mix(table_mix(low ^ first, high ^ hash) ^ second, first);
}

INLINE uint64_t table_home(const struct table_shape *shape, uint64_t hash) {
    return (hash >> 32) * shape->chunks >> 32;
}

INLINE uint64_t table_tag(uint64_t hash) {
    const uint64_t tag = hash & 0xff;
    return tag == 0 ? 1 : tag;
}

// Exact match.

#define CHUNK_HEAD_BYTES 8
#define PASSED_SHIFT 56
#define PASSED_MOST 255

// Returns the highest bit of each byte of `ways` that equals `tag`.
INLINE uint64_t table_matches(const uint64_t head, const uint64_t tag, const uint32_t ways) {
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    const uint64_t differs = head ^ tag * UINT64_C(0x0101010101010101);
    const uint64_t is_equal = ~(((differs & low) + low) | differs | low);
    return is_equal & ((UINT64_C(1) << ways * 8) - 1);
}

INLINE struct table *table_head(uint8_t *memory) { return (struct table *)memory; }

INLINE uint8_t *table_chunk(const struct table_shape *shape, uint8_t *memory, uint64_t at) {
    return memory + shape->first + at * shape->chunk_bytes;
}

INLINE uint64_t table_next_chunk(const struct table_shape *shape, uint64_t at) {
    return at + 1 == shape->chunks ? 0 : at + 1;
}

INLINE uint32_t table_value_at(const struct table_shape *shape) {
    const uint32_t links = shape->kind == TABLE_LRU ? LINK_BYTES : 0;
    return shape->key_bytes + links + GENERATION_BYTES;
}

// Returns the value under exactly `key`, or NULL.
INLINE uint8_t *table_find(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    const uint64_t hash = table_hash(key, shape->key_bytes, table_head(memory)->seed);
    uint64_t at = table_home(shape, hash);
    for (uint64_t left = shape->chunks; left > 0; left--) {
        uint8_t *const chunk = table_chunk(shape, memory, at);
        const uint64_t head = load_bytes(chunk, 8);
        uint64_t matches = table_matches(head, table_tag(hash), shape->ways);
        while (matches != 0) {
            const uint32_t way = (uint32_t)__builtin_ctzll(matches) / 8;
            uint8_t *const entry = chunk + CHUNK_HEAD_BYTES + way * shape->entry_bytes;
            if (LIKELY(memcmp(entry, key, shape->key_bytes) == 0)) {
                return entry + table_value_at(shape);
            }
            matches &= matches - 1;
        }
        if (LIKELY(head >> PASSED_SHIFT == 0)) break;
        at = table_next_chunk(shape, at);
    }
    return NULL;
}

// Links of an LRU table: offsets of values from the first chunk.

INLINE uint8_t *table_older(uint8_t *values, uint32_t at) { return values + at - 12; }
INLINE uint8_t *table_newer(uint8_t *values, uint32_t at) { return values + at - 8; }

INLINE void table_unlink(struct table *table, uint8_t *values, uint32_t at) {
    const uint32_t older = load_word(table_older(values, at));
    const uint32_t newer = load_word(table_newer(values, at));
    if (older != 0) store_word(table_newer(values, older), newer);
    else table->oldest = newer;
    if (newer != 0) store_word(table_older(values, newer), older);
    else table->newest = older;
}

INLINE void table_link(struct table *table, uint8_t *values, uint32_t at) {
    store_word(table_older(values, at), table->newest);
    store_word(table_newer(values, at), 0);
    if (table->newest != 0) store_word(table_newer(values, table->newest), at);
    else table->oldest = at;
    table->newest = at;
}

// Makes an entry the most recently used.
INLINE void table_use(const struct table_shape *shape, uint8_t *memory, uint8_t *value) {
    if (shape->kind != TABLE_LRU) return;
    struct table *const table = table_head(memory);
    uint8_t *const values = memory + shape->first;
    const uint32_t at = (uint32_t)(value - values);
    if (table->newest == at) return;
    table_unlink(table, values, at);
    table_link(table, values, at);
}

INLINE void table_next_generation(uint8_t *value) {
    store_word(value - GENERATION_BYTES, load_word(value - GENERATION_BYTES) + 1);
}

// Removes an existing entry.
INLINE void table_remove(const struct table_shape *shape, uint8_t *memory, uint8_t *value) {
    struct table *const table = table_head(memory);
    uint8_t *const values = memory + shape->first;
    const uint8_t *const key = value - table_value_at(shape);
    const uint64_t found = (uint64_t)(key - values) / shape->chunk_bytes;
    uint8_t *const chunk = table_chunk(shape, memory, found);
    const uint64_t way = (uint64_t)(key - chunk - CHUNK_HEAD_BYTES) / shape->entry_bytes;
    chunk[way] = 0;
    table->count--;
    table_next_generation(value);
    if (shape->kind == TABLE_LRU) table_unlink(table, values, (uint32_t)(value - values));
    uint64_t at = table_home(shape, table_hash(key, shape->key_bytes, table->seed));
    for (; at != found; at = table_next_chunk(shape, at)) {
        uint8_t *const passed = table_chunk(shape, memory, at) + PASSED_SHIFT / 8;
        if (*passed != PASSED_MOST) --*passed;
    }
}

// Inserts a new entry for `key`, which must be absent; there must be room.
INLINE uint8_t *table_insert(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    struct table *const table = table_head(memory);
    uint8_t *const values = memory + shape->first;
    const uint64_t hash = table_hash(key, shape->key_bytes, table->seed);
    uint64_t at = table_home(shape, hash);
    uint64_t free;
    uint8_t *chunk;
    for (;; at = table_next_chunk(shape, at)) {
        chunk = table_chunk(shape, memory, at);
        free = table_matches(load_bytes(chunk, 8), 0, shape->ways);
        if (LIKELY(free != 0)) break;
        if (chunk[PASSED_SHIFT / 8] != PASSED_MOST) chunk[PASSED_SHIFT / 8]++;
    }
    const uint32_t way = (uint32_t)__builtin_ctzll(free) / 8;
    chunk[way] = (uint8_t)table_tag(hash);
    uint8_t *const entry = chunk + CHUNK_HEAD_BYTES + way * shape->entry_bytes;
    uint8_t *const value = entry + table_value_at(shape);
    memcpy(entry, key, shape->key_bytes);
    table->count++;
    table_next_generation(value);
    if (shape->kind == TABLE_LRU) table_link(table, values, (uint32_t)(value - values));
    return value;
}

// Returns the value that an update of exactly `key` writes, or NULL if there is no room.
INLINE uint8_t *table_place(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    uint8_t *const found = table_find(shape, memory, key);
    if (found != NULL) {
        table_use(shape, memory, found);
        return found;
    }
    struct table *const table = table_head(memory);
    if (table->count >= shape->capacity) {
        if (shape->kind != TABLE_LRU) return NULL;
        table_remove(shape, memory, memory + shape->first + table->oldest);
    }
    return table_insert(shape, memory, key);
}

// Longest prefix.

#define PREFIX_LENGTH_BYTES 4
#define WIDEST_PREFIX_KEY_BYTES 4096

INLINE uint64_t *prefix_bitmap(uint8_t *memory) {
    return (uint64_t *)(memory + sizeof(struct table));
}

INLINE uint32_t *prefix_counts(const struct table_shape *shape, uint8_t *memory) {
    return (uint32_t *)(prefix_bitmap(memory) + shape->data_bits / 64 + 1);
}

// Copies `key` with another length, and clears the data beyond that: byte by byte, each from its
// highest bit down, as a number with the first byte highest.
INLINE void prefix_key(const struct table_shape *shape, uint8_t *to, const uint8_t *key,
                       const uint32_t length) {
    const uint32_t data_bytes = shape->key_bytes - PREFIX_LENGTH_BYTES;
    store_word(to, length);
    for (uint32_t at = 0; at < data_bytes; at += 8) {
        const uint32_t count = data_bytes - at < 8 ? data_bytes - at : 8;
        const uint32_t kept = length > at * 8 ? length - at * 8 : 0;
        const uint64_t ones = ~UINT64_C(0);
        const uint64_t mask = kept == 0 ? 0 : kept >= 64 ? ones : ones << (64 - kept);
        const uint64_t data = load_bytes(key + PREFIX_LENGTH_BYTES + at, count);
        store_bytes(to + PREFIX_LENGTH_BYTES + at, data & __builtin_bswap64(mask), count);
    }
}

// Returns the entry for `key` with one of the lengths `most` to `least`, longest first.
INLINE uint8_t *prefix_search(const struct table_shape *shape, uint8_t *memory, const uint8_t *key,
                              const uint32_t most, const uint32_t least) {
    uint64_t bits = prefix_bitmap(memory)[most / 64] & (~UINT64_C(0) >> (63 - most % 64));
    for (uint32_t word = most / 64;;) {
        while (bits != 0) {
            const uint32_t bit = 63 - (uint32_t)__builtin_clzll(bits);
            if (word * 64 + bit < least) return NULL;
            uint8_t shorter[WIDEST_PREFIX_KEY_BYTES];
            prefix_key(shape, shorter, key, word * 64 + bit);
            uint8_t *const found = table_find(shape, memory, shorter);
            if (found != NULL) return found;
            bits &= ~(UINT64_C(1) << bit);
        }
        if (word == 0) return NULL;
        bits = prefix_bitmap(memory)[--word];
    }
}

// Properties shared by all keys with the same first bits.
struct prefix_root {
    uint64_t longer;  // Bit i: an entry has, or once had, i + 1 bits more than the root.
    uint32_t shorter; // Longest entry of at most the root's bits: offset of its value.
    uint32_t unused;
};

// The highest bit stands for all lengths from there on.
#define LONGEST_KNOWN 63

INLINE struct prefix_root *prefix_roots(const struct table_shape *shape, uint8_t *memory) {
    return (struct prefix_root *)(memory + shape->roots);
}

INLINE uint64_t prefix_root_of(const struct table_shape *shape, const uint8_t *key) {
    const uint32_t data_bytes = shape->key_bytes - PREFIX_LENGTH_BYTES;
    const uint64_t data = load_bytes(key + PREFIX_LENGTH_BYTES, data_bytes < 8 ? data_bytes : 8);
    return __builtin_bswap64(data) >> (64 - shape->root_bits);
}

INLINE uint8_t *prefix_find(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    const uint32_t asked = load_word(key), root_bits = shape->root_bits;
    const uint32_t most = asked < shape->data_bits ? asked : shape->data_bits;
    if (UNLIKELY(most < root_bits)) return prefix_search(shape, memory, key, most, 0);
    const struct prefix_root *const root =
        &prefix_roots(shape, memory)[prefix_root_of(shape, key)];
    const uint32_t more = most - root_bits;
    uint64_t longer = root->longer;
    if (more <= LONGEST_KNOWN) longer &= (UINT64_C(1) << more) - 1;
    if (shape->data_bits > root_bits + LONGEST_KNOWN && longer >> LONGEST_KNOWN != 0) {
        const uint32_t least = root_bits + LONGEST_KNOWN + 1;
        uint8_t *const found = prefix_search(shape, memory, key, most, least);
        if (found != NULL) return found;
        longer &= ~UINT64_C(0) >> 1;
    }
    while (longer != 0) {
        const uint32_t bit = 63 - (uint32_t)__builtin_clzll(longer);
        const uint32_t length = root_bits + bit + 1;
        longer &= ~(UINT64_C(1) << bit);
        if ((prefix_bitmap(memory)[length / 64] >> length % 64 & 1) == 0) continue;
        uint8_t shorter[WIDEST_PREFIX_KEY_BYTES];
        prefix_key(shape, shorter, key, length);
        uint8_t *const found = table_find(shape, memory, shorter);
        if (found != NULL) return found;
    }
    return root->shorter == 0 ? NULL : memory + shape->first + root->shorter;
}

// Adds a new entry to the roots.
INLINE void prefix_tell(const struct table_shape *shape, uint8_t *memory, const uint8_t *cut,
                        const uint8_t *value) {
    const uint32_t length = load_word(cut), root_bits = shape->root_bits;
    uint8_t *const values = memory + shape->first;
    struct prefix_root *root = &prefix_roots(shape, memory)[prefix_root_of(shape, cut)];
    if (length > root_bits) {
        const uint32_t bit = length - root_bits - 1;
        root->longer |= UINT64_C(1) << (bit < LONGEST_KNOWN ? bit : LONGEST_KNOWN);
        return;
    }
    for (uint64_t left = UINT64_C(1) << (root_bits - length); left > 0; left--, root++) {
        const uint8_t *const key = values + root->shorter - table_value_at(shape);
        if (root->shorter == 0 || load_word(key) < length) {
            root->shorter = (uint32_t)(value - values);
        }
    }
}

// Removes an entry from the roots; its length is no longer counted.
INLINE void prefix_forget(const struct table_shape *shape, uint8_t *memory, const uint8_t *cut,
                          const uint8_t *value) {
    const uint32_t length = load_word(cut);
    uint8_t *const values = memory + shape->first;
    if (length > shape->root_bits) return;
    const uint8_t *const next =
        length == 0 ? NULL : prefix_search(shape, memory, cut, length - 1, 0);
    const uint32_t gone = (uint32_t)(value - values);
    const uint32_t shorter = next == NULL ? 0 : (uint32_t)(next - values);
    struct prefix_root *root = &prefix_roots(shape, memory)[prefix_root_of(shape, cut)];
    for (uint64_t left = UINT64_C(1) << (shape->root_bits - length); left > 0; left--, root++) {
        if (root->shorter == gone) root->shorter = shorter;
    }
}

INLINE void prefix_count(const struct table_shape *shape, uint8_t *memory, const uint32_t length,
                         const uint32_t more) {
    uint32_t *const count = &prefix_counts(shape, memory)[length];
    const uint64_t bit = UINT64_C(1) << length % 64;
    *count += more;
    if (*count != 0) prefix_bitmap(memory)[length / 64] |= bit;
    else prefix_bitmap(memory)[length / 64] &= ~bit;
}

INLINE bool prefix_update(const struct table_shape *shape, uint8_t *memory, const uint8_t *key,
                          const uint8_t *value) {
    const uint32_t length = load_word(key);
    if (length > shape->data_bits) return false;
    uint8_t cut[WIDEST_PREFIX_KEY_BYTES];
    prefix_key(shape, cut, key, length);
    const uint64_t count = table_head(memory)->count;
    uint8_t *const place = table_place(shape, memory, cut);
    if (place == NULL) return false;
    if (table_head(memory)->count != count) {
        prefix_count(shape, memory, length, 1);
        prefix_tell(shape, memory, cut, place);
    }
    memcpy(place, value, shape->value_bytes);
    return true;
}

INLINE bool prefix_delete(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    const uint32_t length = load_word(key);
    if (length > shape->data_bits) return false;
    uint8_t cut[WIDEST_PREFIX_KEY_BYTES];
    prefix_key(shape, cut, key, length);
    uint8_t *const found = table_find(shape, memory, cut);
    if (found == NULL) return false;
    table_remove(shape, memory, found);
    prefix_count(shape, memory, length, ~UINT32_C(0));
    prefix_forget(shape, memory, cut, found);
    return true;
}

// All kinds.

INLINE uint8_t *array_find(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    const uint64_t index = load_bytes(key, shape->key_bytes < 8 ? shape->key_bytes : 8);
    for (uint32_t at = 8; at < shape->key_bytes; at++) {
        if (key[at] != 0) return NULL;
    }
    if (index >= shape->capacity) return NULL;
    return memory + shape->first + index * shape->value_bytes;
}

// Returns the value that a lookup of `key` finds, or NULL; changes nothing.
INLINE uint8_t *table_peek(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    switch (shape->kind) {
    case TABLE_ARRAY: return array_find(shape, memory, key);
    case TABLE_PREFIX: return prefix_find(shape, memory, key);
    default: return table_find(shape, memory, key);
    }
}

// `tracks`: whether the entry may be removed while the reference is in use.
INLINE struct reference table_lookup(const struct table_shape *shape, uint8_t *memory,
                                     const uint8_t *key, const bool tracks) {
    uint8_t *const value = table_peek(shape, memory, key);
    struct reference reference = {value, 0, shape->value_bytes, 0};
    if (value == NULL) return reference;
    table_use(shape, memory, value);
    if (tracks && shape->kind != TABLE_ARRAY) {
        reference.generation = load_word(value - GENERATION_BYTES);
    }
    return reference;
}

INLINE bool table_update(const struct table_shape *shape, uint8_t *memory, const uint8_t *key,
                         const uint8_t *value) {
    if (shape->kind == TABLE_PREFIX) return prefix_update(shape, memory, key, value);
    uint8_t *const place = shape->kind == TABLE_ARRAY ? array_find(shape, memory, key)
                                                      : table_place(shape, memory, key);
    if (place == NULL) return false;
    memcpy(place, value, shape->value_bytes);
    return true;
}

INLINE bool table_delete(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    if (shape->kind == TABLE_ARRAY) return false;
    if (shape->kind == TABLE_PREFIX) return prefix_delete(shape, memory, key);
    uint8_t *const found = table_find(shape, memory, key);
    if (found == NULL) return false;
    table_remove(shape, memory, found);
    return true;
}

// Prefetches the memory that a lookup of `key` touches first: a value of an array, a root, all of a
// small chunk. The entry in a large chunk is known only after its head has been loaded.

INLINE void table_prefetch_chunk(const struct table_shape *shape, uint8_t *memory,
                                 const uint8_t *key) {
    const uint64_t hash = table_hash(key, shape->key_bytes, table_head(memory)->seed);
    const uint8_t *const chunk = table_chunk(shape, memory, table_home(shape, hash));
    __builtin_prefetch(chunk, 1);
    if (shape->chunk_bytes == 128) __builtin_prefetch(chunk + 64, 1);
}

INLINE void table_prefetch(const struct table_shape *shape, uint8_t *memory, const uint8_t *key) {
    if (shape->kind == TABLE_ARRAY) {
        const uint8_t *const value = array_find(shape, memory, key);
        if (value != NULL) __builtin_prefetch(value, 1);
    } else if (shape->kind == TABLE_PREFIX) {
        __builtin_prefetch(&prefix_roots(shape, memory)[prefix_root_of(shape, key)], 0);
    } else {
        table_prefetch_chunk(shape, memory, key);
    }
}

// Host operations on a table. Its lookups are not uses.

enum { TABLE_DO_LOOKUP, TABLE_DO_UPDATE, TABLE_DO_DELETE, TABLE_DO_NEXT };

// Advances to the entry after the one at `*cursor` (0: to the first): least recently used first in
// an LRU table, in memory order otherwise. Returns false after the last.
INLINE bool table_next_entry(const struct table_shape *shape, uint8_t *memory, uint64_t *cursor,
                             uint8_t *key, uint8_t *value) {
    uint8_t *const values = memory + shape->first;
    if (shape->kind == TABLE_ARRAY) {
        if (*cursor >= shape->capacity) return false;
        memset(key, 0, shape->key_bytes);
        memcpy(key, cursor, shape->key_bytes < 8 ? shape->key_bytes : 8);
        memcpy(value, values + *cursor * shape->value_bytes, shape->value_bytes);
        ++*cursor;
        return true;
    }
    uint8_t *found = NULL;
    if (shape->kind == TABLE_LRU) {
        const uint32_t at = *cursor == 0 ? table_head(memory)->oldest
                                         : load_word(table_newer(values, (uint32_t)*cursor));
        if (at == 0) return false;
        *cursor = at;
        found = values + at;
    } else {
        for (; found == NULL; ++*cursor) {
            const uint64_t chunk = *cursor / shape->ways, way = *cursor % shape->ways;
            if (chunk >= shape->chunks) return false;
            if (table_chunk(shape, memory, chunk)[way] != 0) {
                found = table_chunk(shape, memory, chunk) + CHUNK_HEAD_BYTES +
                        way * shape->entry_bytes + table_value_at(shape);
            }
        }
    }
    memcpy(key, found - table_value_at(shape), shape->key_bytes);
    memcpy(value, found, shape->value_bytes);
    return true;
}

INLINE bool table_act(const struct table_shape *shape, uint8_t *memory, const uint32_t action,
                      uint8_t *key, uint8_t *value, uint64_t *cursor) {
    switch (action) {
    case TABLE_DO_LOOKUP: {
        const uint8_t *const found = table_peek(shape, memory, key);
        if (found != NULL) memcpy(value, found, shape->value_bytes);
        return found != NULL;
    }
    case TABLE_DO_UPDATE: return table_update(shape, memory, key, value);
    case TABLE_DO_DELETE: return table_delete(shape, memory, key);
    default: return table_next_entry(shape, memory, cursor, key, value);
    }
}
