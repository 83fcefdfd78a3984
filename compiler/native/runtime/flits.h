// SPDX-License-Identifier: Apache-2.0 OR MIT
// Flits, and conversions between frames of the host and flits; included after prelude.h.
//
// An output frame is written into the memory of an input frame, as far as that has been read, so
// that bytes that no element changes stay in place.

// A flit: bytes 0 to 31 are the payload; bytes 32 and 33 hold sop, eop and pad.

#define PAYLOAD_BYTES 32

INLINE uint32_t flit_header(const struct wide_512 *flit) {
    return (uint32_t)load_bytes(flit->b + PAYLOAD_BYTES, 2);
}

INLINE bool flit_sop(const struct wide_512 *flit) { return flit_header(flit) & 1; }
INLINE bool flit_eop(const struct wide_512 *flit) { return flit_header(flit) >> 1 & 1; }
INLINE uint32_t flit_pad(const struct wide_512 *flit) { return flit_header(flit) >> 2 & 0xff; }

// Reads frames flit by flit.
struct flit_input {
    const struct packet *frames;
    uint64_t count, at;
    const uint8_t *data;
    uint64_t length, offset; // In the current frame; length 0: none is left.
    bool is_exposed;         // Recorded as having entered.
    // The part of an input frame that was read is room for an output frame: one for each frame.
    bool is_claimed;         // Memory of the current frame is claimed.
    bool is_last_claimed;    // Same for the frame `last`, which was read completely; true: none.
    uint64_t last, origin;   // Origin of frame 0.
};

// Storage for a frame that begins in one run and ends in another.
#define MAX_FRAME_BYTES 16384

// Writes frames flit by flit, into a buffer or into memory of an input frame.
struct flit_output {
    struct buffer *buffers;
    uint64_t count, at;
    uint8_t *data;
    uint64_t capacity, used; // Size and use of the memory being written.
    bool is_inside, is_too_long;
    uint64_t too_long, malformed;
    // The input and frame that own this memory; NULL: the buffer's own.
    const struct flit_input *source;
    uint64_t frame;
    uint8_t begun[MAX_FRAME_BYTES];
};

// Distance in frames of the prefetch: memory from a device is not in the cache.
#define FRAMES_AHEAD 6

INLINE void flit_input_next_frame(struct flit_input *input) {
    const uint64_t ahead = input->at + FRAMES_AHEAD;
    if (ahead < input->count) __builtin_prefetch(input->frames[ahead].data, 1);
    while (input->at < input->count && input->frames[input->at].length == 0) input->at++;
    const bool is_there = input->at < input->count;
    input->data = is_there ? input->frames[input->at].data : NULL;
    input->length = is_there ? input->frames[input->at].length : 0;
}

// The host repeats a frame of which only some flits were taken, in this run or a later one, so
// `offset` is kept.
INLINE void flit_input_attach(struct flit_input *input, const struct endpoint_io *io,
                              uint64_t endpoint) {
    input->frames = io->data;
    input->count = io->count;
    input->at = 0;
    input->origin = endpoint << 32;
    input->is_claimed = false;
    input->is_last_claimed = true;
    flit_input_next_frame(input);
    if (input->length != 0 && input->offset >= input->length) input->offset = 0;
}

INLINE bool flit_input_ready(const struct flit_input *input) { return input->length != 0; }

// Returns whether a frame has been read partially, and the rest is present.
INLINE bool flit_input_is_inside(const struct flit_input *input) {
    return input->length != 0 && input->offset != 0;
}

OUT_OF_LINE void copy_slowly(uint8_t *to, const uint8_t *from, uint64_t count) {
    memcpy(to, from, count);
}

INLINE void flit_input_build(const struct flit_input *input, struct wide_512 *flit) {
    const uint64_t left = input->length - input->offset;
    uint32_t header = input->offset == 0;
    if (LIKELY(left >= PAYLOAD_BYTES)) {
        copy_half(flit->b, input->data + input->offset);
        header |= (uint32_t)(left == PAYLOAD_BYTES) << 1;
    } else {
        uint8_t last[PAYLOAD_BYTES] = {0};
        copy_slowly(last, input->data + input->offset, left);
        copy_half(flit->b, last);
        header |= 2 | (uint32_t)(PAYLOAD_BYTES - left) << 2;
    }
    store_bytes(flit->b + PAYLOAD_BYTES, header, 8);
    store_bytes(flit->b + PAYLOAD_BYTES + 8, 0, 8);
    store_bytes(flit->b + PAYLOAD_BYTES + 16, 0, 8);
    store_bytes(flit->b + PAYLOAD_BYTES + 24, 0, 8);
}

INLINE void flit_input_advance(struct flit_input *input, uint64_t flits) {
    input->is_exposed = false;
    input->offset += flits * PAYLOAD_BYTES;
    if (input->offset >= input->length) {
        input->offset = 0;
        input->last = input->at;
        input->is_last_claimed = input->is_claimed;
        input->is_claimed = false;
        input->at++;
        flit_input_next_frame(input);
    }
}

INLINE void flit_output_next_buffer(struct flit_output *output) {
    const bool is_there = output->at < output->count;
    output->source = NULL;
    output->data = is_there ? output->buffers[output->at].data : NULL;
    output->capacity = is_there ? output->buffers[output->at].capacity : 0;
}

INLINE void flit_output_attach(struct flit_output *output, struct endpoint_io *io) {
    output->buffers = io->data;
    output->count = io->count;
    output->at = 0;
    flit_output_next_buffer(output);
    if (output->used == 0 || output->count == 0) return;
    if (output->used <= output->capacity) {
        memcpy(output->data, output->begun, output->used);
    } else {
        output->is_too_long = true;
    }
}

// Saves the written part of an unfinished frame.
INLINE void flit_output_detach(struct flit_output *output) {
    if (output->used == 0 || output->count == 0 || output->is_too_long) return;
    if (output->used <= MAX_FRAME_BYTES) {
        memcpy(output->begun, output->data, output->used);
    } else {
        output->is_too_long = true;
    }
}

INLINE bool flit_output_has_room(const struct flit_output *output) {
    return output->at < output->count;
}

// Claims memory for a new frame: that of the current input frame, or otherwise that of the previous
// one, unless another frame has it. It only matters that its bytes are no longer needed; most often
// they are the same bytes at the same place, so that nothing has to be moved.
INLINE void flit_output_claim(struct flit_output *output, struct flit_input *source) {
    const bool is_current = flit_input_is_inside(source);
    bool *const is_claimed = is_current ? &source->is_claimed : &source->is_last_claimed;
    if (UNLIKELY(*is_claimed)) return;
    const uint64_t at = is_current ? source->at : source->last;
    const struct packet *const frame = &source->frames[at];
    // The buffer decides whether a frame is too long, wherever the frame lies.
    if (UNLIKELY(frame->length > output->capacity)) return;
    const uint64_t capacity = frame->length + frame->tail_space;
    *is_claimed = true;
    output->source = source;
    output->frame = at;
    output->data = frame->data;
    if (capacity < output->capacity) output->capacity = capacity;
}

INLINE void flit_output_begin(struct flit_output *output, struct flit_input *source) {
    if (source != NULL) flit_output_claim(output, source);
    const uint64_t ahead = output->at + FRAMES_AHEAD;
    if (output->source != NULL || ahead >= output->count) return;
    __builtin_prefetch(output->buffers[ahead].data, 1);
}

// Returns the write limit: bytes that have not been read yet must be kept.
INLINE uint64_t flit_output_limit(const struct flit_output *output) {
    const struct flit_input *const source = output->source;
    return source != NULL && source->at == output->frame ? source->offset : output->capacity;
}

// Continues in the buffer.
OUT_OF_LINE void flit_output_migrate(struct flit_output *output) {
    const uint8_t *const from = output->data;
    flit_output_next_buffer(output);
    memcpy(output->data, from, output->used);
}

OUT_OF_LINE void flit_output_write_slowly(struct flit_output *output, struct wide_512 flit,
                                          uint32_t count) {
    const uint64_t end = output->used + count;
    if (end > flit_output_limit(output) && output->source != NULL) flit_output_migrate(output);
    if (end <= flit_output_limit(output)) {
        memcpy(output->data + output->used, flit.b, count);
    } else {
        output->is_too_long = true;
    }
}

INLINE void flit_output_end(struct flit_output *output) {
    if (UNLIKELY(output->is_too_long)) {
        output->too_long++;
    } else {
        struct buffer *const buffer = &output->buffers[output->at];
        buffer->length = output->used;
        buffer->start = 0;
        buffer->origin =
            output->source != NULL ? output->source->origin | output->frame : OWN_MEMORY;
        output->at++;
        flit_output_next_buffer(output);
    }
    output->used = 0;
    output->is_too_long = false;
}

// Drops and counts a frame whose framing is broken, or that is longer than its buffer. `source` is
// the input that the flit may have come from, NULL if unknown.
INLINE void flit_output_write(struct flit_output *output, struct flit_input *source,
                              const struct wide_512 *flit) {
    const bool is_first = flit_sop(flit), is_last = flit_eop(flit);
    const uint32_t pad = flit_pad(flit);
    const bool is_broken = is_first == output->is_inside || pad >= PAYLOAD_BYTES ||
                           (pad != 0 && !is_last);
    if (UNLIKELY(is_broken)) {
        output->malformed++;
        output->is_inside = output->is_too_long = false;
        output->used = 0;
        flit_output_next_buffer(output);
        return;
    }
    if (is_first) flit_output_begin(output, source);
    const uint32_t count = PAYLOAD_BYTES - pad;
    if (LIKELY(output->used + PAYLOAD_BYTES <= flit_output_limit(output))) {
        copy_half(output->data + output->used, flit->b);
    } else {
        flit_output_write_slowly(output, *flit, count);
    }
    output->used += count;
    output->is_inside = !is_last;
    if (is_last) flit_output_end(output);
}

// Channel counters.

INLINE void count_flit(struct channel *channel, const struct wide_512 *flit) {
    channel->items++;
    channel->packets += flit_sop(flit);
    channel->bytes += PAYLOAD_BYTES - (flit_pad(flit) & (PAYLOAD_BYTES - 1));
}

// Passages: consecutive flits of one packet that take the same path, from the input's position on,
// move at once through elements that only forward them.

enum { PASSES_NOTHING, PASSES_BODY, PASSES_REST }; // REST includes the last flit of the packet.

struct passage {
    const struct flit_input *input;
    uint64_t flits, bytes;
    bool has_last;
};

INLINE struct passage passage_of(const struct flit_input *input, uint32_t passes) {
    const uint64_t bytes = input->length - input->offset;
    const uint64_t flits = (bytes + PAYLOAD_BYTES - 1) / PAYLOAD_BYTES;
    if (passes == PASSES_REST) return (struct passage){input, flits, bytes, true};
    return (struct passage){input, flits - 1, (flits - 1) * PAYLOAD_BYTES, false};
}

// A frame that is written in place passes without being touched, one in a buffer by a copy.
INLINE uint32_t flit_output_passes(const struct flit_output *output,
                                   const struct flit_input *input) {
    if (!flit_output_has_room(output) || !output->is_inside) return PASSES_NOTHING;
    const bool is_in_place =
        output->source == input && output->frame == input->at && output->used == input->offset;
    return output->source == NULL || is_in_place ? PASSES_REST : PASSES_NOTHING;
}

INLINE void flit_output_pass(struct flit_output *output, const struct passage *passage) {
    if (output->source == NULL) {
        if (output->used + passage->bytes <= output->capacity) {
            copy_slowly(output->data + output->used, passage->input->data + passage->input->offset,
                        passage->bytes);
        } else {
            output->is_too_long = true;
        }
    }
    output->used += passage->bytes;
    output->is_inside = !passage->has_last;
    if (passage->has_last) flit_output_end(output);
}

// None of the flits is the first of its packet.
INLINE void count_passage(struct channel *channel, const struct passage *passage) {
    channel->items += passage->flits;
    channel->bytes += passage->bytes;
}

// Records the flits of a passage except the first `known`.
OUT_OF_LINE void record_passage(struct runtime *runtime, struct stream *history,
                                const struct passage *passage, uint64_t known) {
    struct flit_input input = *passage->input;
    input.offset += known * PAYLOAD_BYTES;
    for (uint64_t left = passage->flits - known; left > 0; left--) {
        struct wide_512 flit;
        flit_input_build(&input, &flit);
        record(runtime, history, &flit, sizeof flit);
        input.offset += PAYLOAD_BYTES;
    }
}

// Records `value` repeatedly.
OUT_OF_LINE void record_often(struct runtime *runtime, struct stream *stream, const void *value,
                              uint64_t bytes, uint64_t count) {
    for (; count > 0; count--) record(runtime, stream, value, bytes);
}
