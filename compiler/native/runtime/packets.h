// SPDX-License-Identifier: Apache-2.0 OR MIT
// Packets as values of generated code; included after prelude.h.
//
// A packet stays in the host's memory, and only this structure moves. It has one owner: a channel,
// a firing, or the host. A packet that cannot stay there (a second copy, growth beyond the
// available memory, a packet inside the graph when a run ends) moves to a buffer of the graph,
// which is released when the packet ends.

#define HEAD_ROOM 256    // In front of a packet that enters.
#define TAIL_LIMIT 9216  // Maximum distance of a packet's end from its original start.
#define MOST_NEW_PACKETS 64 // Per firing.

// Owner of a packet's memory: none, a buffer of the graph, or from OWNER_HOST on the frame of this
// run that (endpoint << 32 | index) names.
#define OWNER_NONE UINT64_C(0)
#define OWNER_POOL UINT64_C(1)
#define OWNER_HOST UINT64_C(2)

static uint8_t no_bytes[1];

INLINE void packet_assign(struct packet *to, const struct packet *from) {
    to->data = from->data;
    to->length = from->length;
    to->head_room = from->head_room;
    to->tail_room = from->tail_room;
    to->head_space = from->head_space;
    to->tail_space = from->tail_space;
    to->owner = from->owner;
}

// Buffers. A buffer has exactly the head room and tail room of its packet, so that it begins
// `head_room` bytes before the packet, and the packet never outgrows it.

struct pool_buffer {
    struct pool_buffer *next; // In the free list.
};

#define POOL_BUFFER_BYTES (HEAD_ROOM + TAIL_LIMIT)

// Only a packet that entered with more than TAIL_LIMIT bytes needs a larger buffer.
OUT_OF_LINE uint8_t *pool_take(struct runtime *runtime, uint64_t bytes) {
    runtime->buffers_in_use++;
    struct pool_buffer *const buffer = runtime->free_buffers;
    if (LIKELY(bytes <= POOL_BUFFER_BYTES && buffer != NULL)) {
        runtime->free_buffers = buffer->next;
        return (uint8_t *)buffer;
    }
    return runtime->allocate(runtime, bytes <= POOL_BUFFER_BYTES ? POOL_BUFFER_BYTES : bytes);
}

OUT_OF_LINE void pool_give(struct runtime *runtime, uint8_t *data, uint64_t bytes) {
    runtime->buffers_in_use--;
    if (UNLIKELY(bytes > POOL_BUFFER_BYTES)) {
        runtime->release(runtime, data);
        return;
    }
    struct pool_buffer *const buffer = (struct pool_buffer *)data;
    buffer->next = runtime->free_buffers;
    runtime->free_buffers = buffer;
}

OUT_OF_LINE struct packet packet_in_pool(struct runtime *runtime, struct packet from) {
    const uint64_t extent = from.head_room + from.length + from.tail_room;
    uint8_t *const data = pool_take(runtime, extent) + from.head_room;
    memcpy(data, from.data, from.length);
    return (struct packet){data,           from.length,    from.head_room, from.tail_room,
                           from.head_room, from.tail_room, OWNER_POOL};
}

// Copies a packet to a buffer. It passes structures by value, and through a local copy: a structure
// whose address leaves its function could not be kept in registers there, and a call by value takes
// the address of its argument.
INLINE void packet_to_pool(struct runtime *runtime, struct packet *to,
                           const struct packet *from) {
    struct packet given;
    packet_assign(&given, from);
    const struct packet made = packet_in_pool(runtime, given);
    packet_assign(to, &made);
}

INLINE void packet_release(struct runtime *runtime, const struct packet *packet) {
    if (packet->owner != OWNER_POOL) return;
    pool_give(runtime, packet->data - packet->head_room,
              packet->head_room + packet->length + packet->tail_room);
}

// Ends a packet of a firing.
INLINE void packet_end(struct runtime *runtime, struct packet *packet) {
    packet_release(runtime, packet);
    packet->owner = OWNER_NONE;
}

// Moves a packet out of the host's frames, so that it outlives them.
INLINE void packet_keep(struct runtime *runtime, struct packet *packet) {
    if (packet->owner < OWNER_HOST) return;
    packet_to_pool(runtime, packet, packet);
}

// Transfer of items into and out of a firing.

// Sets the result of reading a port without an item.
INLINE void packet_clear(struct runtime *runtime, struct packet *packet) {
    packet_release(runtime, packet);
    *packet = (struct packet){no_bytes, 0, HEAD_ROOM, TAIL_LIMIT, 0, 0, OWNER_NONE};
}

INLINE void packet_take(struct runtime *runtime, struct packet *to, const struct packet *from) {
    packet_release(runtime, to);
    packet_assign(to, from);
}

// A view of a packet that stays in place.
INLINE void packet_view(struct packet *to, const struct packet *from) {
    packet_assign(to, from);
    to->owner = OWNER_NONE;
}

INLINE void packet_copy(struct runtime *runtime, struct packet *to, const struct packet *from) {
    packet_release(runtime, to);
    packet_to_pool(runtime, to, from);
}

// Stages a packet that the firing does not use again; `staged` holds the previous put, if any.
INLINE void packet_move(struct runtime *runtime, struct packet *staged, bool is_staged,
                        struct packet *from) {
    if (is_staged) packet_release(runtime, staged);
    packet_assign(staged, from);
    from->owner = OWNER_NONE;
}

// Stages a packet that the firing continues to use.
INLINE void packet_put(struct runtime *runtime, struct packet *staged, bool is_staged,
                       const struct packet *from) {
    if (is_staged) packet_release(runtime, staged);
    packet_to_pool(runtime, staged, from);
}

// Operations.

// Returns a packet of zeros in a buffer; an empty one, counted, if it exceeds a limit.
OUT_OF_LINE struct packet packet_of_zeros(struct runtime *runtime, uint64_t length) {
    uint8_t *const data = pool_take(runtime, POOL_BUFFER_BYTES) + HEAD_ROOM;
    const uint32_t tail_room = (uint32_t)(TAIL_LIMIT - length);
    memset(data, 0, length);
    return (struct packet){data, length, HEAD_ROOM, tail_room, HEAD_ROOM, tail_room, OWNER_POOL};
}

INLINE void packet_make(struct runtime *runtime, struct activation *activation,
                        struct packet *to, uint64_t length) {
    if (UNLIKELY(length > TAIL_LIMIT || activation->new_packets == MOST_NEW_PACKETS)) {
        activation->out_of_range++;
        packet_clear(runtime, to);
        return;
    }
    activation->new_packets++;
    packet_release(runtime, to);
    const struct packet made = packet_of_zeros(runtime, length);
    packet_assign(to, &made);
}

// Returns whether `bytes` bytes from `offset` are in the packet.
INLINE bool packet_covers(const struct packet *packet, uint64_t offset, uint64_t bytes) {
    return offset <= packet->length && bytes <= packet->length - offset;
}

INLINE bool packet_adjust_head(struct runtime *runtime, struct packet *packet, int64_t by) {
    if (by >= 0) {
        const uint64_t count = (uint64_t)by;
        if (count > packet->length) return false;
        packet->data += count;
        packet->length -= count;
        packet->head_room += (uint32_t)count;
        packet->head_space += (uint32_t)count;
        return true;
    }
    const uint64_t count = -(uint64_t)by;
    if (count > packet->head_room) return false;
    if (UNLIKELY(count > packet->head_space)) packet_to_pool(runtime, packet, packet);
    packet->data -= count;
    packet->length += count;
    packet->head_room -= (uint32_t)count;
    packet->head_space -= (uint32_t)count;
    memset(packet->data, 0, count);
    return true;
}

INLINE bool packet_adjust_tail(struct runtime *runtime, struct packet *packet, int64_t by) {
    if (by <= 0) {
        const uint64_t count = -(uint64_t)by;
        if (count > packet->length) return false;
        packet->length -= count;
        packet->tail_room += (uint32_t)count;
        packet->tail_space += (uint32_t)count;
        return true;
    }
    const uint64_t count = (uint64_t)by;
    if (count > packet->tail_room) return false;
    if (UNLIKELY(count > packet->tail_space)) packet_to_pool(runtime, packet, packet);
    memset(packet->data + packet->length, 0, count);
    packet->length += count;
    packet->tail_room -= (uint32_t)count;
    packet->tail_space -= (uint32_t)count;
    return true;
}

// Channels.

INLINE void count_packet(struct channel *channel, const struct packet *packet) {
    channel->items++;
    channel->bytes += packet->length;
}

// The history of a packet is its length, in 8 bytes, and its bytes.
INLINE void record_packet(struct runtime *runtime, struct stream *history,
                          const struct packet *packet) {
    record(runtime, history, &packet->length, 8);
    record(runtime, history, packet->data, packet->length);
}

// Endpoints.

struct packet_input {
    const struct packet *frames;
    uint64_t count, at;
    bool is_exposed; // Recorded as having entered.
};

INLINE void packet_input_attach(struct packet_input *input, const struct endpoint_io *io) {
    input->frames = io->data;
    input->count = io->count;
    input->at = 0;
}

INLINE void packet_input_advance(struct packet_input *input) {
    const uint64_t ahead = input->at + FRAMES_AHEAD;
    if (ahead < input->count) __builtin_prefetch(input->frames[ahead].data, 0);
    input->is_exposed = false;
    input->at++;
}

struct packet_output {
    struct buffer *buffers;
    uint64_t count, at;
    uint64_t too_long, malformed;
};

INLINE void packet_output_attach(struct packet_output *output, const struct endpoint_io *io) {
    output->buffers = io->data;
    output->count = io->count;
    output->at = 0;
}

// Writes a packet out: one in the host's memory stays there, any other is copied to the buffer. A
// packet longer than the buffer is dropped and counted, wherever it lies.
INLINE void packet_output_write(struct runtime *runtime, struct packet_output *output,
                                const struct packet *packet) {
    struct buffer *const buffer = &output->buffers[output->at];
    if (UNLIKELY(packet->length > buffer->capacity)) {
        output->too_long++;
        packet_release(runtime, packet);
        return;
    }
    buffer->length = packet->length;
    buffer->start = (int64_t)packet->head_room - HEAD_ROOM;
    output->at++;
    if (LIKELY(packet->owner >= OWNER_HOST)) {
        buffer->origin = packet->owner - OWNER_HOST;
        return;
    }
    memcpy(buffer->data, packet->data, packet->length);
    buffer->origin = OWN_MEMORY;
    packet_release(runtime, packet);
}
