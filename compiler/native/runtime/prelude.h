// SPDX-License-Identifier: Apache-2.0 OR MIT
// Beginning of every generated file: the structures shared with the host, and the basic functions
// of generated code. The host's side of the structures is in src/abi.rs; both must change together.
//
// Values of up to 128 bits are unsigned integers, always truncated to their width. Wider ones are
// structures of bytes, lowest first, so that a part at a byte boundary is a plain narrow load or
// store once the compiler has split the structure.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

// Without optimisation, as in tests, merging functions would only slow the compiler down.
#ifdef __OPTIMIZE__
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#define OUT_OF_LINE static __attribute__((noinline))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define UNPREDICTABLE(condition) __builtin_unpredictable(!!(condition))

typedef unsigned __int128 uint128;
typedef __int128 int128;

// Copies one word of a wide value. The compiler treats an assignment of a whole value as one block,
// which goes through memory, and so does a loop over its words; single words become registers, or
// disappear if a part is unused.
INLINE void copy_word(uint8_t *to, const uint8_t *from) {
    uint64_t word;
    memcpy(&word, from, 8);
    memcpy(to, &word, 8);
}

// A value of `bits` bits, and its view as an integer of a whole number of 64-bit words. Its
// `assign` is emitted after it and copies word by word.
#define WIDE(bits, bytes, rounded)                                                       \
    struct wide_##bits { uint8_t b[bytes]; };                                            \
    INLINE unsigned _BitInt(rounded) integer_##bits(struct wide_##bits value) {          \
        unsigned _BitInt(rounded) integer = 0;                                           \
        memcpy(&integer, value.b, bytes);                                                \
        return integer;                                                                  \
    }                                                                                    \
    INLINE struct wide_##bits wide_##bits(unsigned _BitInt(rounded) integer) {           \
        struct wide_##bits value;                                                        \
        integer &= ~(unsigned _BitInt(rounded))0 >> (rounded - bits);                    \
        memcpy(value.b, &integer, bytes);                                                \
        return value;                                                                    \
    }

WIDE(512, 64, 512) // A flit, see below.

// Copies half a flit: its payload, or its header and the application's metadata.
INLINE void copy_half(uint8_t *to, const uint8_t *from) {
    copy_word(to, from);
    copy_word(to + 8, from + 8);
    copy_word(to + 16, from + 16);
    copy_word(to + 24, from + 24);
}

INLINE void assign_512(struct wide_512 *to, const struct wide_512 *from) {
    copy_half(to->b, from->b);
    copy_half(to->b + 32, from->b + 32);
}

// Parts of wide values. `count` is a constant in every call.

INLINE uint64_t load_bytes(const uint8_t *from, size_t count) {
    uint64_t value = 0;
    memcpy(&value, from, count);
    return value;
}

INLINE uint128 load_bytes_128(const uint8_t *from, size_t count) {
    uint128 value = 0;
    memcpy(&value, from, count);
    return value;
}

INLINE void store_bytes(uint8_t *to, uint64_t value, size_t count) {
    memcpy(to, &value, count);
}

INLINE void store_bytes_128(uint8_t *to, uint128 value, size_t count) {
    memcpy(to, &value, count);
}

INLINE void reverse_bytes(uint8_t *to, const uint8_t *from, size_t count) {
    for (size_t at = 0; at < count; at++) to[at] = from[count - 1 - at];
}

INLINE uint64_t word_at(const uint8_t *from, size_t at, size_t count) {
    uint64_t word = 0;
    memcpy(&word, from + at, count - at < 8 ? count - at : 8);
    return word;
}

INLINE uint32_t count_ones(const uint8_t *from, size_t count) {
    uint32_t ones = 0;
    for (size_t at = 0; at < count; at += 8) {
        ones += (uint32_t)__builtin_popcountll(word_at(from, at, count));
    }
    return ones;
}

// Returns the number of zeros above the highest one, of `bits` bits.
INLINE uint32_t count_leading_zeros(const uint8_t *from, uint32_t bits) {
    const size_t count = (bits + 7) / 8;
    for (size_t at = (count - 1) / 8 * 8;; at -= 8) {
        const uint64_t word = word_at(from, at, count);
        if (word != 0) return bits - (uint32_t)(at * 8) - 64 + (uint32_t)__builtin_clzll(word);
        if (at == 0) return bits;
    }
}

// Returns the number of zeros below the lowest one, of `bits` bits.
INLINE uint32_t count_trailing_zeros(const uint8_t *from, uint32_t bits) {
    const size_t count = (bits + 7) / 8;
    for (size_t at = 0; at < count; at += 8) {
        const uint64_t word = word_at(from, at, count);
        if (word != 0) return (uint32_t)(at * 8) + (uint32_t)__builtin_ctzll(word);
    }
    return bits;
}

// Returns up to 64 bits from bit `bit` of `count` bytes (more than 16); zeros beyond them.
INLINE uint64_t extract_bits(const uint8_t *from, size_t count, uint64_t bit) {
    if (bit >= count * 8) return 0;
    const size_t at = bit / 8;
    uint128 window = 0;
    if (LIKELY(at + 16 <= count)) {
        memcpy(&window, from + at, 16);
    } else {
        memcpy(&window, from + count - 16, 16);
        window >>= (at + 16 - count) * 8;
    }
    return (uint64_t)(window >> (bit % 8));
}

// Replaces `width` bits, at most 64, from bit `bit` on; bits beyond `bits` are dropped.
INLINE void insert_bits(uint8_t *to, uint32_t bits, uint64_t bit, uint64_t part, uint32_t width) {
    if (bit >= bits) return;
    if (width > bits - bit) width = (uint32_t)(bits - bit);
    const size_t count = (bits + 7) / 8;
    size_t at = bit / 8;
    if (at + 16 > count) at = count - 16;
    const uint32_t shift = (uint32_t)(bit - at * 8);
    const uint128 hole = (uint128)(~UINT64_C(0) >> (64 - width)) << shift;
    uint128 window;
    memcpy(&window, to + at, 16);
    window = (window & ~hole) | (((uint128)part << shift) & hole);
    memcpy(to + at, &window, 16);
}

// Structures shared by the host and the code.

// A byte buffer for records that grows by a call to the host.
struct stream {
    uint8_t *data;
    uint64_t length, capacity;
};

struct runtime {
    // Makes room for `more` bytes; leaves the stream unchanged if there is none.
    void (*grow)(struct stream *stream, uint64_t more);
    // Probe events: instance, probe, firing, then the operands in whole bytes.
    struct stream probes;
    uint64_t probe_bytes_limit, lost_probes;
    // Bytes recorded since the host last took them, and the host's limit.
    uint64_t recorded_bytes, recorded_bytes_limit;
    uint64_t clock, clock_reads_left; // Result of `now`, and reads left before a refresh.
    // Whether breakpoints hold instances, and whether one was passed in this run.
    uint64_t breakpoints_enabled, has_stopped;
    const uint8_t *pause; // Set by another thread to make the run yield to the host.
    // Memory for packets that cannot stay in the host's memory: see packets.h.
    struct pool_buffer *free_buffers;
    uint64_t buffers_in_use;
    uint8_t *(*allocate)(struct runtime *runtime, uint64_t bytes);
    void (*release)(struct runtime *runtime, uint8_t *data);
    // Method calls between instances, if recorded: caller, called instance, method, firings of the
    // called instance, then arguments and result in whole bytes.
    struct stream calls;
};

struct channel {
    uint32_t head, fill; // Position of its ring.
    // Packets are counted for flits only, and bytes for flits and packets: records have one size.
    uint64_t items, packets, bytes, stalls, drops;
    uint64_t stalled_at; // Items that had entered at the last stall, plus 1.
    uint64_t peak;       // Maximum items waiting at the end of a turn.
    struct stream history, keep;
    uint8_t is_dropping; // Lossy: the current packet is dropped.
    uint8_t is_inside;   // Lossy: a kept packet is incomplete.
};

struct instance {
    uint64_t firings, out_of_range, empty_reads;
    uint64_t mask;        // Inputs that the next firing waits for.
    uint64_t quiet_ready; // Ready inputs with which it last did nothing.
    uint64_t is_quiet;
    uint64_t is_held; // By a breakpoint: HELD_NEWLY until the host is notified, then HELD.
    uint64_t random;
    uint64_t *traps; // By position of the code.
    struct runtime *runtime;
    uint64_t index;
    uint32_t resume; // Where a suspended handler continues.
    struct stream ready, now, random_values;
};

#define HELD_NEWLY 1

// Counters of every firing and call; part of the generated firing structures.
struct activation {
    struct instance *instance;
    uint64_t out_of_range, empty_reads, turns; // `turns`: iterations of watched loops.
    uint32_t new_packets;
    bool did_something, passed_breakpoint;
};

INLINE void count_exceptions(struct instance *instance, const struct activation *activation) {
    if (UNLIKELY(activation->out_of_range != 0)) {
        instance->out_of_range += activation->out_of_range;
    }
    if (UNLIKELY(activation->empty_reads != 0)) instance->empty_reads += activation->empty_reads;
}

// A packet, or an input frame, in writable memory with writable room around it.
struct packet {
    uint8_t *data;
    uint64_t length;
    uint32_t head_room, tail_room;   // Allowed growth, by the semantics of packets.
    uint32_t head_space, tail_space; // Room in the memory, at least that.
    uint64_t owner;                  // See packets.h.
};

// An output frame. It is in `data`, with the origin ~0, or in the memory of an input frame of the
// same run: `origin` is that frame's endpoint << 32 | its index. In both cases its start has moved
// by `start` since it entered.
struct buffer {
    uint8_t *data;
    uint64_t capacity, length, origin;
    int64_t start;
};

#define OWN_MEMORY UINT64_MAX

// Memory that the host provides at an endpoint for a run: frames, buffers, or records.
struct endpoint_io {
    void *data;
    uint64_t count; // Number of frames, buffers or records.
    uint64_t done;  // Number consumed or produced.
};

struct record_input {
    const uint8_t *data;
    uint64_t count, at;
    uint64_t asked; // Records for which memory was prefetched.
    bool is_exposed;
};

struct record_output {
    uint8_t *data;
    uint64_t count, at;
};

struct object_layout {
    uint64_t offset, stride; // In bytes, from the instance's state.
};

struct instance_layout {
    uint64_t offset; // Offset of its struct instance in the graph.
    uint64_t state_offset;
    const struct object_layout *objects;
    const struct object_layout *tables; // The stride is the size of the table.
};

struct channel_layout {
    uint64_t offset; // Offset of its struct channel in the graph.
    uint64_t items;  // Offset of the first item of its ring in the graph.
    uint64_t item_bytes, slots; // 0 slots: items never wait in it.
};

// Offsets in the graph, or ~0.
struct endpoint_layout {
    uint64_t counters; // For output frames: `too_long` and `malformed`.
    uint64_t begun;    // For flits: the offset in the current frame, or a struct flit_output.
};

#define ABI_VERSION 9

struct image {
    uint64_t abi, graph_bytes, graph_align, instance_count, channel_count, endpoint_count;
    const struct instance_layout *instances;
    const struct channel_layout *channels;
    const struct endpoint_layout *endpoints;
    // Initialises a graph in zeroed memory, and runs the init functions.
    void (*start)(void *graph, struct runtime *runtime, uint64_t seed);
    uint32_t (*run)(void *graph, struct endpoint_io *io);
    // Calls method `method`, or the signal handler for ~0; returns the position of a trap code plus
    // 1, or 0.
    uint32_t (*call)(void *graph, uint32_t instance, uint32_t method, const uint8_t *arguments,
                     uint8_t *result);
    // Looks up, updates, deletes or advances to the next entry; returns whether there was one, or
    // room. NULL if no instance has tables.
    uint32_t (*act_on_table)(void *graph, uint32_t instance, uint32_t table, uint32_t action,
                             uint8_t *key, uint8_t *value, uint64_t *cursor);
};

enum {
    STATUS_IDLE,
    STATUS_OUTPUT_FULL,
    STATUS_RECORD_FULL,
    STATUS_STALLED,
    STATUS_WAITING,
    STATUS_BUDGET,
};

// Oracles, probes and records.

OUT_OF_LINE void append_slowly(struct runtime *runtime, struct stream *stream, const void *data,
                               uint64_t count) {
    if (stream->capacity - stream->length < count) runtime->grow(stream, count);
    if (stream->capacity - stream->length < count) return;
    memcpy(stream->data + stream->length, data, count);
    stream->length += count;
}

INLINE void record(struct runtime *runtime, struct stream *stream, const void *data,
                   uint64_t count) {
    append_slowly(runtime, stream, data, count);
    runtime->recorded_bytes += count;
}

// Reading the clock costs as much as a whole firing, so one reading serves several, but only within
// one round of the worker or one call by the host.
#define CLOCK_READS 32

OUT_OF_LINE void read_clock(struct runtime *runtime) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    runtime->clock = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    runtime->clock_reads_left = CLOCK_READS;
}

INLINE uint64_t clock_now(struct runtime *runtime) {
    if (runtime->clock_reads_left == 0) read_clock(runtime);
    runtime->clock_reads_left--;
    return runtime->clock;
}

// A relaxed load suffices: the request itself is passed by other means, which order memory.
INLINE bool gives_way(const struct runtime *runtime) {
    return UNLIKELY(__atomic_load_n(runtime->pause, __ATOMIC_RELAXED) != 0);
}

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
INLINE uint64_t next_random(struct instance *instance) {
    uint64_t z = (instance->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// A probe event that finds no room is dropped and counted; probes never wait.
OUT_OF_LINE void tell(struct instance *instance, uint32_t probe, const uint8_t *operands,
                      uint64_t count) {
    struct runtime *const runtime = instance->runtime;
    const uint64_t head[3] = {instance->index, probe, instance->firings};
    if (runtime->probes.length + sizeof head + count > runtime->probe_bytes_limit) {
        runtime->lost_probes++;
        return;
    }
    append_slowly(runtime, &runtime->probes, head, sizeof head);
    append_slowly(runtime, &runtime->probes, operands, count);
}

// Channels.

INLINE void count_record(struct channel *channel) { channel->items++; }

// A step works on a copy of the channel, made at its start and written back at its end.

INLINE struct channel channel_opened(const struct channel *channel) {
    return (struct channel){.head = channel->head, .fill = channel->fill,
                            .is_dropping = channel->is_dropping, .is_inside = channel->is_inside};
}

INLINE void channel_close(struct channel *channel, const struct channel *copy) {
    channel->head = copy->head;
    channel->fill = copy->fill;
    if (copy->fill > channel->peak) channel->peak = copy->fill;
    channel->items += copy->items;
    channel->packets += copy->packets;
    channel->bytes += copy->bytes;
    channel->drops += copy->drops;
    channel->is_dropping = copy->is_dropping;
    channel->is_inside = copy->is_inside;
}

// Returns whether the writer may fire: its item finds room, including one beyond the depth.
INLINE bool channel_admits(const struct channel *channel, uint32_t depth) {
    return LIKELY(channel->fill <= depth);
}

// Counts a firing that a full channel holds back, once however often it is tried; `items` have
// entered but are not counted in `channel` yet.
OUT_OF_LINE void channel_stalled(struct channel *channel, uint64_t items) {
    const uint64_t at = channel->items + items + 1;
    channel->stalls += channel->stalled_at != at;
    channel->stalled_at = at;
}

// Returns whether a lossy channel keeps an item; `is_full` is used at packet starts only.
INLINE bool lossy_keeps(struct channel *channel, bool is_flit, bool is_first, bool is_last,
                        bool is_full) {
    if (!is_flit || is_first) channel->is_dropping = is_full;
    channel->is_inside = is_flit && !is_last && !channel->is_dropping;
    channel->drops += channel->is_dropping;
    return !channel->is_dropping;
}
