// SPDX-License-Identifier: Apache-2.0 OR MIT
// Looks up, sets and removes entries of maps (hXDP, OSDI 2020, section 4.1: the helpers' direct
// link to the maps). Arrays are addressed by one multiplication. Hashes have buckets with lists of
// entries; a key of up to 32 bytes is read, hashed and compared in the same number of cycles. A
// longest-prefix map is a hash that is searched once for each existing prefix length, the longest
// first. If an LRU hash is full, the entry whose turn it is is evicted: it is removed as if its key
// had been deleted, and the update begins again. Queues and stacks are rings of values without keys
// (map_line); a Bloom filter only has bucket heads, which record the hashes that were pushed. One
// state machine handles all kinds of maps, since most of their steps are the same.

module map_engine #(
    parameter int CORES = 1,
    // Number of the core, for maps with a value for each core.
    parameter int CORE = 0
) (
    input  logic clk,
    input  logic rst,
    // Held, with its inputs, until `done`.
    input  logic start,
    input  logic do_update,
    input  logic do_delete,
    input  logic do_push,
    // Queue or stack: the next value is returned, and removed.
    input  logic do_next,
    input  logic do_pop,
    input  logic holds_maps,
    // The key is a number, not in memory.
    input  logic has_index,
    input  logic [31:0] index,
    input  logic [63:0] key_address,
    input  logic [63:0] value_address,
    input  logic [63:0] flags,
    input  logic [11:0] packet_meta,
    input  logic [11:0] packet_end,
    input  logic [12:0] packet_arrived,
    input  logic packet_complete,
    output logic done,
    // Result of a lookup: there is an entry, its value is here, and its program begins in this row.
    output logic found,
    output logic [31:0] value_at,
    output logic [15:0] value_row,
    // Key or value is not accessible.
    output logic fault,
    // Result of an update or deletion: 0 or a negative error.
    output logic [63:0] error,

    input  logic [7:0] row_kind,
    input  logic [15:0] row_key_bytes,
    input  logic [31:0] row_value_bytes,
    input  logic [31:0] row_entries,
    input  logic [31:0] row_base,
    input  logic [31:0] row_stride,
    input  logic [31:0] row_mask,
    input  logic [31:0] row_heads,
    input  logic [31:0] row_links,
    input  logic [31:0] row_used,
    input  logic [31:0] row_free,
    input  logic [31:0] row_hand,
    input  logic [128:0] row_lengths,
    input  logic row_by_core,
    output logic commit_valid,
    output logic [31:0] commit_used,
    output logic [31:0] commit_free,
    output logic [31:0] commit_hand,
    output logic [128:0] commit_lengths,

    // Copies the value to its place or, for a queue or stack, from there, or zeros if it is empty.
    output logic copy_start,
    output logic [31:0] copy_target,
    output logic [31:0] copy_bytes,
    output logic copy_fill,
    input  logic copy_done,
    input  logic copy_miss,

    output logic request_valid,
    output logic request_write,
    output logic [31:0] request_address,
    output logic [4:0] request_bytes,
    output logic [191:0] request_data,
    input  logic request_ready,
    input  logic request_miss,
    input  logic [191:0] chunk,
    input  logic [255:0] window
);
  localparam logic [63:0] ENOENT = -64'd2;
  localparam logic [63:0] E2BIG = -64'd7;
  localparam logic [63:0] EFAULT = -64'd14;
  localparam logic [63:0] EEXIST = -64'd17;
  localparam logic [63:0] EINVAL = -64'd22;
  localparam logic [63:0] ENOSPC = -64'd28;
  localparam logic [63:0] NOEXIST = 64'd1;
  localparam logic [63:0] EXIST = 64'd2;

  localparam logic [5:0] BEGIN = 6'd0;      // reads the key's first bytes
  localparam logic [5:0] INDEX = 6'd1;      // array: they have arrived, and are multiplied
  localparam logic [5:0] ELEMENT = 6'd2;    // array: the address is known
  localparam logic [5:0] PRESENCE = 6'd3;   // sparse: whether the entry exists
  localparam logic [5:0] SET = 6'd4;        // sparse: sets that
  localparam logic [5:0] KEY1 = 6'd5;       // the key's next bytes
  localparam logic [5:0] KEY2 = 6'd6;
  localparam logic [5:0] KEY3 = 6'd7;
  localparam logic [5:0] PREFIX = 6'd8;     // longest prefix: selects the length
  localparam logic [5:0] MASK = 6'd9;       // and the bits that count for it
  localparam logic [5:0] HEAD = 6'd10;      // reads the head of the bucket
  localparam logic [5:0] LINKED = 6'd11;    // it has arrived, or the link after an entry
  localparam logic [5:0] ENTRY = 6'd12;     // reads an entry
  localparam logic [5:0] COMPARE = 6'd13;
  localparam logic [5:0] COMPARE2 = 6'd14;  // bytes 32 to 63
  localparam logic [5:0] LINK = 6'd15;      // reads the link after it
  localparam logic [5:0] ALLOCATE = 6'd16;  // a free entry
  localparam logic [5:0] PLACE = 6'd17;     // its link has arrived, and its number is multiplied
  localparam logic [5:0] VALUE = 6'd18;     // copies the value
  localparam logic [5:0] KEY = 6'd19;       // writes the key
  localparam logic [5:0] TAIL = 6'd20;      // links the entry to those of its bucket
  localparam logic [5:0] FRONT = 6'd21;     // and the bucket to it
  localparam logic [5:0] NEXT = 6'd22;      // removal: reads the next entry
  localparam logic [5:0] UNLINK = 6'd23;    // the previous entry skips it
  localparam logic [5:0] RELEASE = 6'd24;   // it goes to the free list
  localparam logic [5:0] VICTIM = 6'd25;    // LRU: address of the entry to be evicted
  localparam logic [5:0] OUST = 6'd27;
  localparam logic [5:0] OUST1 = 6'd28;     // reads its key, as BEGIN does
  localparam logic [5:0] CLEAR = 6'd32;     // zeros other cores' values of a new entry
  localparam logic [5:0] SELECT = 6'd26;    // longest prefix: shorter ones
  localparam logic [5:0] LINE = 6'd29;      // queue, stack: selects the place
  localparam logic [5:0] TURN = 6'd30;      // wraps around after the last place
  localparam logic [5:0] HANDLE = 6'd31;    // map of maps: reads the handle
  localparam logic [5:0] FAULT = 6'd33;     // the key or the value is not accessible

  localparam logic [3:0] MAPS = sephirot_pkg::REGION_MAPS;

  logic [5:0] state;
  // An entry is being removed for another one.
  logic evicting;

  logic is_array, is_lru, is_sparse, is_prefix, is_stack, is_line, is_bloom, by_index;
  assign is_sparse = row_kind == sephirot_pkg::MAP_SPARSE || row_kind == sephirot_pkg::MAP_PROGRAMS;
  assign is_array = row_kind == sephirot_pkg::MAP_ARRAY;
  assign is_lru = row_kind == sephirot_pkg::MAP_LRU_HASH;
  assign is_prefix = row_kind == sephirot_pkg::MAP_LPM;
  assign is_stack = row_kind == sephirot_pkg::MAP_STACK;
  assign is_line = is_stack || row_kind == sephirot_pkg::MAP_QUEUE;
  assign is_bloom = row_kind == sephirot_pkg::MAP_BLOOM;
  assign by_index = is_array || is_sparse;

  logic updates, deletes, asks_map;
  assign updates = (do_update || do_push) && !evicting;
  assign deletes = do_delete || evicting;
  assign asks_map = holds_maps && !do_update && !do_delete;

  logic [6:0] key_bytes, key_room;
  assign key_bytes = row_key_bytes[6:0];
  assign key_room = {4'(row_key_bytes[6:3] + 4'(row_key_bytes[2:0] != 3'd0)), 3'd0};

  // Whether key and value are accessible.
  logic key_waits, key_fault, value_waits, value_fault;
  packet_bounds key_bounds (
      .address(key_address), .bytes({16'd0, row_key_bytes}), .packet_meta, .packet_end,
      .packet_arrived, .packet_complete, .must_wait(key_waits), .fault(key_fault));
  packet_bounds value_bounds (
      .address(value_address), .bytes(row_value_bytes), .packet_meta, .packet_end,
      .packet_arrived, .packet_complete, .must_wait(value_waits), .fault(value_fault));
  logic waits, outside;
  assign waits = (!has_index && key_waits) || (do_update && value_waits);
  assign outside = (!has_index && key_fault) || (do_update && value_fault);
  assign fault = state == FAULT;

  // The given key; the bytes after it are zero.
  logic [511:0] key, key_mask;
  // The current prefix length of a longest-prefix map; only its bits count.
  logic [7:0] length, longest, limit;
  logic [127:0] length_mask, prefix_mask;
  logic has_length, bad_length;
  assign limit = state == PREFIX ? key[7:0] : length - 8'd1;
  prefix_select select (
      .lengths(row_lengths), .limit, .found(has_length), .longest, .length, .mask(length_mask),
      .given(key[31:0]), .key_bytes, .is_too_long(bad_length));

  logic [31:0] hashed;
  logic [25:0] hash;
  logic same, same_rest;
  map_key counted (
      .key, .bytes(key_bytes), .is_prefix, .length, .mask(prefix_mask), .window, .key_mask, .hashed,
      .same, .same_rest);
  // It is used when it is computed, and latched for the update of the bucket's head.
  logic [25:0] bucket;
  assign bucket = state == HEAD ? hashed[25:0] : hash;
  logic [27:0] head_at;
  assign head_at = row_heads[27:0] + {bucket & row_mask[25:0], 2'd0};

  // One multiplication: number of the entry times its size. Its registers are those of a DSP.
  logic [19:0] factor;
  logic [27:0] product;
  logic [27:0] entry_at;
  always_ff @(posedge clk) product <= 28'(factor) * 28'(row_stride[23:0]);
  assign entry_at = row_base[27:0] + product;

  // Numbers of entries are one more than their index.
  logic [31:0] current, linked, head, next_free, at_index;
  logic [27:0] previous_at;
  // A free entry that was used before; the head of its bucket was read last.
  logic from_free, at_head;
  logic [27:0] current_link_at;
  logic link_is_upper;
  assign linked = link_is_upper ? window[63:32] : window[31:0];
  assign current_link_at = row_links[27:0] + {current[25:0] - 26'd1, 2'd0};

  always_comb begin
    case (state)
      BEGIN: factor = index[19:0];
      INDEX: factor = chunk[19:0];
      ELEMENT: factor = at_index[19:0];
      LINKED: factor = linked[19:0] - 20'd1;
      TURN: factor = at_index[19:0] - (beyond ? row_entries[19:0] : 20'd0);
      VICTIM: factor = row_hand[19:0];
      default: factor = current[19:0] - 20'd1;
    endcase
  end

  // An update or removal has found its entry, or that there is none.
  logic hit, absent;
  assign hit = (state == COMPARE && same && key_bytes <= 7'd32) || (state == COMPARE2 && same_rest);
  assign absent = state == LINKED && linked == 32'd0 && !(is_prefix && !updates && !deletes);

  logic sparse_bad_flags, flags_bad;
  assign flags_bad = flags > EXIST;
  assign sparse_bad_flags = flags_bad || (row_kind == sephirot_pkg::MAP_PROGRAMS && flags != 64'd0);
  logic beyond, has_room, is_there;
  assign beyond = at_index >= row_entries;
  assign has_room = row_free != 32'd0 || row_used < row_entries;
  assign is_there = holds_maps ? chunk[30] : window[0];

  logic is_empty, line_advances;
  logic [20:0] line_place;
  logic [31:0] line_left;
  map_line line (
      .is_stack, .do_push, .do_next, .is_full(!has_room), .used(row_used), .hand(row_hand[19:0]),
      .is_empty, .advances(line_advances), .place(line_place), .left(line_left));

  // Address of the entry, as far as known; bytes of its key that are written.
  logic [27:0] at;
  logic [31:0] key_from;
  logic [6:0] key_left, key_step, written;
  logic new_entry, is_set;
  logic [191:0] key_part;
  assign key_from = evicting ? {MAPS, at} : key_address[31:0];
  assign key_part = written == 7'd0 ? key[191:0] : written == 7'd24 ? key[383:192]
      : {64'd0, key[511:384]};
  assign key_left = key_room - written;
  assign key_step = key_left < 7'd24 ? key_left : 7'd24;

  always_comb begin
    request_valid = 1'b0;
    request_write = 1'b0;
    request_address = key_address[31:0];
    request_bytes = 5'd24;
    request_data = 192'd0;
    case (state)
      BEGIN: begin
        request_valid = start && !waits && !outside && !has_index && !is_line;
        // The bytes needed of the first window; arrays need no more.
        request_bytes = key_bytes < 7'd24 ? key_bytes[4:0] : 5'd24;
      end
      KEY1: begin
        request_valid = 1'b1;
        request_address = key_from + 32'd24;
        request_bytes = key_bytes < 7'd24 ? 5'd0
            : key_bytes < 7'd48 ? 5'(key_bytes - 7'd24) : 5'd24;
      end
      KEY2: begin
        request_valid = key_bytes > 7'd48;
        request_address = key_from + 32'd48;
        request_bytes = 5'(key_bytes - 7'd48);
      end
      OUST1: begin
        request_valid = 1'b1;
        request_address = key_from;
      end
      ELEMENT: begin
        request_valid = is_sparse && !beyond;
        request_address = {MAPS, entry_at};
        request_bytes = 5'd8;
      end
      HANDLE: begin
        request_valid = 1'b1;
        request_address = copy_target;
        request_bytes = 5'd8;
      end
      SET: begin
        request_valid = 1'b1;
        request_write = 1'b1;
        request_address = {MAPS, at};
        request_bytes = 5'd8;
        request_data = {191'd0, is_set};
      end
      HEAD: begin
        request_valid = 1'b1;
        request_address = {MAPS, head_at[27:3], 3'd0};
        request_bytes = 5'd8;
      end
      ENTRY: begin
        request_valid = 1'b1;
        request_address = {MAPS, entry_at};
      end
      COMPARE: begin
        // Read before it is known whether it is needed: a request that depended on read data would
        // be a long timing path.
        request_valid = key_bytes > 7'd32;
        request_address = {MAPS, entry_at + 28'd32};
      end
      LINK, NEXT: begin
        request_valid = 1'b1;
        request_address = {MAPS, current_link_at[27:3], 3'd0};
        request_bytes = 5'd8;
      end
      ALLOCATE: begin
        request_valid = from_free;
        request_address = {MAPS, current_link_at[27:3], 3'd0};
        request_bytes = 5'd8;
      end
      KEY: begin
        request_valid = 1'b1;
        request_write = 1'b1;
        request_address = {MAPS, at + {21'd0, written}};
        request_bytes = key_step[4:0];
        request_data = key_part;
      end
      TAIL: begin
        request_valid = 1'b1;
        request_write = 1'b1;
        request_address = {MAPS, current_link_at};
        request_bytes = 5'd4;
        request_data = {160'd0, head};
      end
      FRONT: begin
        request_valid = 1'b1;
        request_write = 1'b1;
        request_address = {MAPS, head_at};
        request_bytes = 5'd4;
        request_data = {160'd0, current};
      end
      UNLINK: begin
        request_valid = 1'b1;
        request_write = 1'b1;
        request_address = {MAPS, previous_at};
        request_bytes = 5'd4;
        request_data = {160'd0, linked};
      end
      RELEASE: begin
        request_valid = 1'b1;
        request_write = 1'b1;
        request_address = {MAPS, current_link_at};
        request_bytes = 5'd4;
        request_data = {160'd0, row_free};
      end
      default: ;
    endcase
  end

  // Per-core values are consecutive, each padded to a multiple of 8 bytes.
  logic [27:0] value_room, own_value;
  assign value_room = {row_value_bytes[27:3] + 25'(row_value_bytes[2:0] != 3'd0), 3'd0};
  assign own_value = row_by_core ? 28'(CORE) * value_room : 28'd0;
  assign copy_start = state == VALUE || state == CLEAR;
  assign copy_fill = state == CLEAR || (copy_start && do_next && is_empty);
  assign copy_bytes = state == CLEAR ? 32'(28'(CORES) * value_room) : row_value_bytes;
  assign copy_target = {MAPS, at + (is_array || is_line ? 28'd0
                              : is_sparse ? 28'd8 : {21'd0, key_room})
                              + (state == CLEAR ? 28'd0 : own_value)};

  // New entries count from when they are linked; removed ones from when they are free.
  logic line_commit;
  assign line_commit = is_line && state == VALUE && copy_done && !copy_miss
      && (do_push || (do_pop && !is_empty));
  assign commit_valid = line_commit
      || (request_ready && ((state == FRONT && !is_bloom) || state == RELEASE));
  assign commit_used = (state == FRONT && !from_free) || (line_commit && !(do_push && !has_room))
      ? current : row_used;
  // Rings have no free entries, whatever the previous map had.
  assign commit_free = state == RELEASE ? current
      : state == FRONT && from_free ? next_free : row_free;
  assign commit_hand = !evicting && !(is_line && line_advances) ? row_hand
      : row_hand + 32'd1 == row_entries ? 32'd0 : row_hand + 32'd1;
  assign commit_lengths = row_lengths
      | (state == FRONT && is_prefix ? 129'd1 << length : 129'd0);

  assign value_at = holds_maps ? chunk[31:0] : {MAPS, entry_at + own_value
      + (is_array ? 28'd0 : is_sparse ? 28'd8 : {21'd0, key_room})};
  assign value_row = window[79:64];

  always_comb begin
    done = 1'b0;
    found = 1'b0;
    error = 64'd0;
    case (state)
      FAULT: begin
        done = 1'b1;
        error = EFAULT;
      end
      ELEMENT: begin
        found = !beyond;
        if (do_delete) error = row_kind == sephirot_pkg::MAP_SPARSE || is_array ? EINVAL : E2BIG;
        else if (do_update) begin
          error = (is_array ? flags_bad : sparse_bad_flags) ? EINVAL : beyond ? E2BIG : EEXIST;
        end
        if (is_line) done = 1'b0;
        else if (is_array) done = beyond || (do_update ? flags_bad || flags == NOEXIST : !asks_map);
        else done = beyond || (do_update && (sparse_bad_flags || flags == NOEXIST));
      end
      LINE: begin
        done = do_push && (flags_bad || flags == NOEXIST || (!has_room && flags != EXIST));
        error = flags_bad || flags == NOEXIST ? EINVAL : E2BIG;
      end
      PRESENCE: begin
        found = is_there;
        error = ENOENT;
        done = do_delete ? !is_there && row_kind == sephirot_pkg::MAP_PROGRAMS : !do_update;
        if (!do_delete) error = 64'd0;
      end
      SET: done = request_ready;
      PREFIX: begin
        done = bad_length || (!updates && !deletes && !has_length);
        error = (updates || deletes) && bad_length ? EINVAL : 64'd0;
      end
      SELECT: done = !has_length || length == 8'd0;
      LINKED: if (is_bloom) begin
        done = !do_push || flags != 64'd0 || linked != 32'd0;
        error = do_push ? (flags != 64'd0 ? EINVAL : 64'd0) : linked == 32'd0 ? ENOENT : 64'd0;
      end else if (absent && !evicting) begin
        done = !updates || flags_bad || flags == EXIST || (!has_room && !is_lru);
        error = deletes ? ENOENT : !updates ? 64'd0 : flags_bad ? EINVAL
            : flags == EXIST ? ENOENT : is_prefix ? ENOSPC : E2BIG;
      end
      // `found` only matters with `done`, so it need not wait for the comparison.
      COMPARE, COMPARE2: begin
        found = 1'b1;
        done = hit && !deletes && (updates ? flags_bad || flags == NOEXIST : !asks_map);
        error = !updates ? 64'd0 : flags_bad ? EINVAL : EEXIST;
      end
      VALUE: begin
        // Entries of key-value maps are linked afterwards, or have their key rewritten.
        done = copy_done && (copy_miss || (!new_entry && !is_prefix && !is_sparse));
        error = copy_miss ? EFAULT : do_next && is_empty ? ENOENT : 64'd0;
      end
      KEY: done = request_ready && key_left == key_step && !new_entry;
      FRONT: done = request_ready;
      RELEASE: done = request_ready && !evicting;
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    case (state)
      BEGIN: begin
        at_index <= index;
        written <= 7'd0;
        new_entry <= 1'b0;
        // A key that is a number is padded like any other.
        if (start && !waits) key <= {480'd0, index};
        if (start && !waits && outside) state <= FAULT;
        else if (start && !waits && (has_index || is_line || request_ready))
          state <= request_valid && request_miss ? FAULT : is_line ? LINE
              : has_index ? (by_index ? ELEMENT : HEAD) : by_index ? INDEX : KEY1;
      end
      LINE: begin
        at_index <= {11'd0, line_place};
        current <= line_left;
        state <= do_next && is_empty ? VALUE : TURN;
      end
      TURN: state <= ELEMENT;
      HANDLE: if (request_ready) state <= PRESENCE;
      INDEX: begin
        at_index <= chunk[31:0];
        state <= ELEMENT;
      end
      ELEMENT: begin
        at <= entry_at;
        is_set <= !do_delete;
        if (asks_map) state <= HANDLE;
        else if (is_array || is_line) state <= VALUE;
        else if (request_ready) state <= PRESENCE;
      end
      PRESENCE: state <= do_delete ? SET : VALUE;
      KEY1: begin
        key[191:0] <= chunk & key_mask[191:0];
        if (request_ready) state <= request_miss && key_bytes > 7'd24 ? FAULT : KEY2;
      end
      KEY2: begin
        key[511:192] <= {128'd0, chunk & key_mask[383:192]};
        if (!request_valid) state <= is_prefix ? PREFIX : HEAD;
        else if (request_ready) state <= request_miss ? FAULT : KEY3;
      end
      KEY3: begin
        key[511:384] <= chunk[127:0] & key_mask[511:384];
        state <= HEAD;
      end
      PREFIX: begin
        length <= updates || deletes ? key[7:0] : longest;
        state <= MASK;
      end
      SELECT: begin
        length <= longest;
        state <= MASK;
      end
      MASK: begin
        prefix_mask <= length_mask;
        state <= HEAD;
      end
      HEAD: begin
        hash <= hashed[25:0];
        previous_at <= head_at;
        link_is_upper <= head_at[2];
        at_head <= 1'b1;
        if (request_ready) state <= LINKED;
      end
      LINKED: begin
        if (at_head) head <= linked;
        current <= linked;
        if (linked != 32'd0) state <= ENTRY;
        else if (!updates) state <= SELECT;
        else if (!has_room) state <= VICTIM;
        else begin
          current <= row_free != 32'd0 ? row_free : row_used + 32'd1;
          from_free <= row_free != 32'd0;
          state <= is_bloom ? FRONT : ALLOCATE;
        end
      end
      ENTRY: if (request_ready) state <= COMPARE;
      COMPARE: begin
        at <= entry_at;
        if (hit) state <= deletes ? NEXT : asks_map ? HANDLE : VALUE;
        else if (same && key_bytes > 7'd32) begin
          if (request_ready) state <= COMPARE2;
        end else state <= LINK;
      end
      COMPARE2: state <= !hit ? LINK : deletes ? NEXT : asks_map ? HANDLE : VALUE;
      LINK: begin
        previous_at <= current_link_at;
        link_is_upper <= current_link_at[2];
        at_head <= 1'b0;
        if (request_ready) state <= LINKED;
      end
      ALLOCATE: begin
        link_is_upper <= current_link_at[2];
        new_entry <= 1'b1;
        if (request_ready || !from_free) state <= PLACE;
      end
      PLACE: begin
        next_free <= linked;
        at <= entry_at;
        state <= CORES > 1 && row_by_core ? CLEAR : VALUE;
      end
      CLEAR: if (copy_done) state <= VALUE;
      VALUE: if (copy_done) begin
        // No device or processor has number 0: it empties the slot. A program may begin in row 0.
        is_set <= row_kind == sephirot_pkg::MAP_PROGRAMS || chunk[31:0] != 32'd0;
        state <= is_sparse ? SET : KEY;
      end
      KEY: if (request_ready) begin
        written <= written + key_step;
        if (key_left == key_step) state <= TAIL;
      end
      TAIL: if (request_ready) state <= FRONT;
      NEXT: begin
        link_is_upper <= current_link_at[2];
        if (request_ready) state <= UNLINK;
      end
      UNLINK: if (request_ready) state <= RELEASE;
      RELEASE: if (request_ready) begin
        evicting <= 1'b0;
        state <= BEGIN;
      end
      VICTIM: begin
        evicting <= 1'b1;
        state <= OUST;
      end
      OUST: begin
        at <= entry_at;
        state <= OUST1;
      end
      OUST1: if (request_ready) state <= KEY1;
      // SET and FRONT are final states: `done` ends them.
      default: ;
    endcase
    if (rst || !start || done) begin
      state <= BEGIN;
      evicting <= 1'b0;
    end
  end
  /* verilator lint_off UNUSEDSIGNAL */
  // Entries are less than 16 MiB apart, and addresses of map memory have 28 bits.
  wire unused = ^{row_base[31:28], row_heads[31:28], row_links[31:28],
      row_stride[31:24], row_mask[31:26], hashed[31:26]};
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
