// SPDX-License-Identifier: Apache-2.0 OR MIT
// Memory for loads, stores, atomic operations and helpers: packet, stack, context and maps,
// selected by the upper bits of an address. (hXDP, sections 4.1.2 and 4.1.3: the data bus, the
// stack, `struct xdp_md`, maps and the difference buffer; docs/internals/sephirot.md has the rules
// for misses.)
//
// Each memory has a read port for each lane. Writes to a memory have this priority: its difference
// buffer, atomic operations, the service port, arriving packets.
//
// With several cores, each has an instance with its own copy of the maps. Every write to maps goes
// to all copies in the same cycle, so all cores see the same memory, and loads never wait.
// `map_port` arbitrates the writes.

module data_memory #(
    parameter int LANES = 4,
    parameter int MAP_BYTES = 8192,
    parameter int CORES = 1,
    parameter int MAP_ROW_BITS = $clog2(MAP_BYTES) - 5
) (
    input  logic                    clk,
    input  logic                    rst,
    // Loads, from decode
    input  logic [LANES-1:0]        load_valid,
    input  logic [LANES-1:0][63:0]  load_address,
    input  logic [LANES-1:0][3:0]   load_bytes,
    input  logic                    load_hold,
    output logic                    load_wait,
    output logic [LANES-1:0][63:0]  load_data,
    output logic [LANES-1:0]        load_miss,
    // Stores, from execute
    input  logic [LANES-1:0]        store_valid,
    input  logic [LANES-1:0][63:0]  store_address,
    input  logic [LANES-1:0][3:0]   store_bytes,
    input  logic [LANES-1:0][63:0]  store_data,
    input  logic [1:0]              store_slot,
    output logic                    store_wait,
    output logic [LANES-1:0]        store_miss,
    // Atomic operations
    input  logic                    atomic_valid,
    input  logic [63:0]             atomic_address,
    input  logic                    atomic_wide,
    /* verilator lint_off UNUSEDSIGNAL */  // bits 7 to 4 are sufficient
    input  logic [7:0]              atomic_operation,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [63:0]             atomic_operand,
    input  logic [63:0]             atomic_expected,
    output logic                    atomic_done,
    output logic                    atomic_miss,
    output logic [63:0]             atomic_old,
    // Frames
    input  logic [2:0]              frame,
    input  logic                    frame_clear,
    input  logic                    stack_clear,
    // Helpers
    input  logic                    service_valid,
    input  logic                    service_write,
    /* verilator lint_off UNUSEDSIGNAL */  // a multiple of 8
    input  logic [31:0]             service_address,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [31:0]             service_enable,
    input  logic [255:0]            service_wdata,
    output logic                    service_ready,
    output logic [255:0]            service_rdata,
    output logic                    service_miss,
    // The current packet
    input  logic [1:0]              packet_slot,
    input  logic [11:0]             packet_data,
    input  logic [11:0]             packet_end,
    input  logic [11:0]             packet_meta,
    input  logic [12:0]             packet_arrived,
    input  logic                    packet_complete,
    input  logic [31:0]             packet_ifindex,
    input  logic [31:0]             packet_queue,
    // Arriving and departing packets
    input  logic                    fill_valid,
    input  logic [1:0]              fill_slot,
    /* verilator lint_off UNUSEDSIGNAL */  // a multiple of 32
    input  logic [11:0]             fill_offset,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [255:0]            fill_data,
    output logic                    fill_ready,
    input  logic                    emit_valid,
    input  logic [1:0]              emit_slot,
    /* verilator lint_off UNUSEDSIGNAL */  // a multiple of 8
    input  logic [11:0]             emit_offset,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic                    emit_ready,
    output logic [255:0]            emit_data,
    output logic [sephirot_pkg::SLOTS-1:0]        stores_pending,
    // Maps that several cores share; unused with one core. Stores to maps are pending, and may be
    // written.
    output logic                    map_store,
    input  logic                    map_store_go,
    // An atomic operation or the service port requests to change maps, and is granted: no other
    // core changes them until it has written. Cycles in which it may write, from registers alone;
    // and completion.
    output logic                    map_window,
    input  logic                    map_window_go,
    output logic                    map_window_write,
    output logic                    map_window_done,
    // Another core writes the copies in this cycle. Writes here and there:
    /* verilator lint_off UNUSEDSIGNAL */
    input  logic                    map_busy,
    input  logic [3:0][7:0]         map_in_enable,
    input  logic [3:0][MAP_ROW_BITS-1:0] map_in_row,
    input  logic [3:0][63:0]        map_in_data,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic [3:0][7:0]         map_out_enable,
    output logic [3:0][MAP_ROW_BITS-1:0] map_out_row,
    output logic [3:0][63:0]        map_out_data,
    // Accepted stores are not written yet.
    output logic                    stores_waiting
);
  localparam bit SHARED = CORES > 1;
  localparam int MAP_BITS = $clog2(MAP_BYTES);
  // Maps and stack share a memory, the stack after the maps: a block RAM is deep enough for both.
  localparam int MAP_ROWS = MAP_BYTES / 32;
  localparam int STACK_ROWS = sephirot_pkg::FRAMES * sephirot_pkg::FRAME_BYTES / 32;
  localparam int ROW_BITS = MAP_BITS - 5 + 1;
  localparam int PACKET_ROWS = sephirot_pkg::SLOTS * 2 ** sephirot_pkg::SLOT_BITS / 32;
  localparam int PACKET_ROW_BITS = $clog2(PACKET_ROWS);
  // A word's number in either memory, below a bit that selects packet memory
  localparam int ANY_ROW_BITS = ROW_BITS > PACKET_ROW_BITS ? ROW_BITS : PACKET_ROW_BITS;
  localparam int WORD_BITS = ANY_ROW_BITS + 3;
  localparam int MEMORY_BITS = MAP_BITS > 12 ? MAP_BITS : 12;  // of an offset

  // Classes of addresses.
  localparam logic [2:0] NOWHERE = 3'd0;
  localparam logic [2:0] IN_PACKET = 3'd1;
  localparam logic [2:0] IN_STACK = 3'd2;
  localparam logic [2:0] IN_CONTEXT = 3'd3;
  localparam logic [2:0] IN_MAPS = 3'd4;
  localparam logic [2:0] NOT_YET = 3'd5;  // a packet byte that may still arrive

  // End of the packet, as far as known, and end of the current frame.
  logic [12:0] packet_limit, stack_limit;
  assign packet_limit = packet_complete ? {1'b0, packet_end} : packet_arrived;
  assign stack_limit = {1'b0, frame, 9'd0} + 13'(sephirot_pkg::FRAME_BYTES);

  function automatic logic [2:0] place(input logic [63:0] address, input logic [3:0] bytes);
    logic [28:0] last;
    logic near;
    last = {1'b0, address[27:0]} + 29'(bytes);
    // Such offsets have 12 bits, and the end of an access has 13.
    near = address[27:12] == 16'd0;
    place = NOWHERE;
    if (address[63:32] == 32'd0)
      case (address[31:28])
        sephirot_pkg::REGION_PACKET:
        if (near && address[11:0] >= packet_meta) begin
          if (last[12:0] <= packet_limit) place = IN_PACKET;
          else if (!packet_complete && last[12:0] <= 13'(sephirot_pkg::PACKET_END)) place = NOT_YET;
        end
        sephirot_pkg::REGION_STACK: if (near && last[12:0] <= stack_limit) place = IN_STACK;
        sephirot_pkg::REGION_CONTEXT:
        if (address[27:5] == 23'd0 && address[4:3] != 2'd3 && address[1:0] == 2'd0 &&
            bytes == 4'd4)
          // The packet's end is known when all of it has arrived.
          place = !packet_complete && address[4:2] == 3'd1 ? NOT_YET : IN_CONTEXT;
        sephirot_pkg::REGION_MAPS: if (last <= 29'(MAP_BYTES)) place = IN_MAPS;
        default: ;
      endcase
  endfunction

  function automatic logic [255:0] banks_to_window(input logic [255:0] banks,
                                                   input logic [1:0] first);
    banks_to_window = first[0] ? {banks[63:0], banks[255:64]} : banks;
    if (first[1]) banks_to_window = {banks_to_window[127:0], banks_to_window[255:128]};
  endfunction

  // Rotates the bytes of a word up or down, in steps that are small multiplexers
  function automatic logic [63:0] turn_down(input logic [63:0] word, input logic [2:0] bytes);
    turn_down = bytes[0] ? {word[7:0], word[63:8]} : word;
    if (bytes[1]) turn_down = {turn_down[15:0], turn_down[63:16]};
    if (bytes[2]) turn_down = {turn_down[31:0], turn_down[63:32]};
  endfunction
  function automatic logic [63:0] turn_up(input logic [63:0] word, input logic [2:0] bytes);
    turn_up = turn_down(word, 3'd0 - bytes);
  endfunction

  // Location of a word: its offset in the region and, in a packet, its slot
  function automatic logic [WORD_BITS-1:0] word_of(input logic [3:0] region,
                                                   input logic [MEMORY_BITS-1:3] offset,
                                                   input logic [1:0] slot);
    if (region == sephirot_pkg::REGION_PACKET)
      word_of = {1'b1, (ANY_ROW_BITS + 2)'({slot, offset[11:3]})};
    else if (region == sephirot_pkg::REGION_STACK)
      word_of = WORD_BITS'({1'b1, (MAP_BITS - 3)'(offset[11:3])});
    else word_of = WORD_BITS'(offset[MAP_BITS-1:3]);
  endfunction

  // ---------------------------------------------------------------------------------- loads

  logic [LANES-1:0][2:0] load_place, answer_place;
  logic [LANES-1:0][2:0] answer_byte;
  logic [LANES-1:0][7:0] load_mask, answer_mask;
  logic [LANES-1:0][31:0] load_context, answer_context;
  logic [LANES-1:0] load_two_words;
  logic [2:0] context_word;
  logic [LANES-1:0] load_overlaps;

  always_comb begin
    load_wait = 1'b0;
    context_word = 3'd0;
    for (int l = 0; l < LANES; l++) begin
      load_place[l] = place(load_address[l], load_bytes[l]);
      load_two_words[l] = 5'(load_address[l][2:0]) + 5'(load_bytes[l]) > 5'd8;
      load_mask[l] = 8'((16'd1 << load_bytes[l]) - 16'd1);
      context_word = load_address[l][4:2];
      case (context_word)
        3'd0: load_context[l] = {sephirot_pkg::REGION_PACKET, 16'd0, packet_data};
        3'd1: load_context[l] = {sephirot_pkg::REGION_PACKET, 16'd0, packet_end};
        3'd2: load_context[l] = {sephirot_pkg::REGION_PACKET, 16'd0, packet_meta};
        3'd3: load_context[l] = packet_ifindex;
        3'd4: load_context[l] = packet_queue;
        default: load_context[l] = 32'd0;
      endcase
      if (load_valid[l])
        case (load_place[l])
          NOT_YET: load_wait = 1'b1;
          IN_PACKET, IN_STACK, IN_MAPS: if (load_overlaps[l]) load_wait = 1'b1;
          default: ;
        endcase
    end
  end
  always_ff @(posedge clk)
    if (!load_hold) begin
      answer_place <= load_place;
      answer_mask <= load_mask;
      answer_context <= load_context;
      for (int l = 0; l < LANES; l++) answer_byte[l] <= load_address[l][2:0];
    end

  logic [LANES-1:0][63:0] packet_words, other_words, answer_words;
  logic [LANES-1:0][7:0] lane_written;
  always_comb
    for (int l = 0; l < LANES; l++) begin
      case (answer_place[l])
        IN_PACKET: answer_words[l] = packet_words[l];
        IN_STACK, IN_MAPS: answer_words[l] = other_words[l];
        // Rotated like the others, although its address is always aligned.
        IN_CONTEXT: answer_words[l] = {2{answer_context[l]}};
        default: answer_words[l] = 64'd0;
      endcase
      load_miss[l] = answer_place[l] == NOWHERE;
      if (answer_place[l] == IN_STACK)
        for (int p = 0; p < 8; p++)
          if (!lane_written[l][p]) answer_words[l][8*p+:8] = 8'd0;
      answer_words[l] = turn_down(answer_words[l], answer_byte[l]);
      for (int i = 0; i < 8; i++)
        load_data[l][8*i+:8] = answer_mask[l][i] ? answer_words[l][8*i+:8] : 8'd0;
    end

  // --------------------------------------------------------------------------------- stores

  logic [LANES-1:0][2:0] store_place;
  logic [LANES-1:0][15:0] store_enable;
  logic [LANES-1:0][63:0] store_turned;
  logic [LANES-1:0] store_not_yet, stored;
  logic stores_wait, take;
  always_comb
    for (int l = 0; l < LANES; l++) begin
      store_place[l] = place(store_address[l], store_bytes[l]);
      store_enable[l] = 16'((16'd1 << store_bytes[l]) - 16'd1) << store_address[l][2:0];
      store_turned[l] = turn_up(store_data[l], store_address[l][2:0]);
      store_miss[l] = store_valid[l] && (store_place[l] == NOWHERE ||
                                         store_address[l][31:28] == sephirot_pkg::REGION_CONTEXT);
      store_not_yet[l] = store_valid[l] && store_place[l] == NOT_YET && !store_miss[l];
    end
  // The program ends with the first store that misses: stores of later lanes are dropped.
  always_comb begin
    stored = store_valid & ~store_miss;
    for (int l = 1; l < LANES; l++)
      for (int earlier = 0; earlier < l; earlier++)
        if (store_miss[earlier]) stored[l] = 1'b0;
  end
  // A store to bytes that have not arrived yet would be overwritten.
  assign store_wait = stores_wait || store_not_yet != '0;
  assign take = !store_wait;

  logic [LANES-1:0][WORD_BITS-1:0] store_word, load_word, pending_word;
  logic [LANES-1:0][ROW_BITS+4:0] other_address;
  logic [LANES-1:0][PACKET_ROW_BITS+4:0] packet_address;
  logic [LANES-1:0][11:0] stack_address;
  logic [LANES-1:0] pending_valid, forget_in, forget_pending;
  function automatic logic in_packet(input logic [WORD_BITS-1:0] word);
    in_packet = word[WORD_BITS-1];
  endfunction
  function automatic logic in_maps(input logic [WORD_BITS-1:0] word);
    in_maps = !word[WORD_BITS-1] && !word[MAP_BITS-3];
  endfunction
  // Whether a word is in a frame that is being cleared
  function automatic logic cleared(input logic [WORD_BITS-1:0] word);
    cleared = !word[WORD_BITS-1] && word[MAP_BITS-3] &&
              (stack_clear || (frame_clear && word[8:6] == frame));
  endfunction
  always_comb
    for (int l = 0; l < LANES; l++) begin
      store_word[l] = word_of(store_address[l][31:28], store_address[l][MEMORY_BITS-1:3],
                              store_slot);
      load_word[l] = word_of(load_address[l][31:28], load_address[l][MEMORY_BITS-1:3],
                             packet_slot);
      packet_address[l] = {packet_slot, load_address[l][11:0]};
      other_address[l] = {load_word[l][ROW_BITS+1:0], load_address[l][2:0]};
      stack_address[l] = load_address[l][11:0];
      forget_in[l] = cleared(store_word[l]);
      forget_pending[l] = cleared(pending_word[l]);
    end

  // Targets of this cycle's stores: of the waiting ones, otherwise of the new ones.
  logic stores_hold, reaches_maps, reaches_copies;
  logic [LANES-1:0] going;
  assign stores_waiting = pending_valid != '0;
  assign going = stores_waiting ? pending_valid : store_not_yet == '0 ? stored : '0;
  always_comb begin
    reaches_maps = 1'b0;
    reaches_copies = 1'b0;
    for (int l = 0; l < LANES; l++)
      if (going[l]) begin
        if (!in_packet(stores_waiting ? pending_word[l] : store_word[l])) reaches_copies = 1'b1;
        if (in_maps(stores_waiting ? pending_word[l] : store_word[l])) reaches_maps = 1'b1;
      end
  end
  assign map_store = SHARED && reaches_maps;
  assign stores_hold = SHARED && ((reaches_maps && !map_store_go) || (reaches_copies && map_busy));

  logic stores_busy;
  logic [3:0][7:0] stores_enable;
  logic [3:0][WORD_BITS-3:0] stores_row;
  logic [3:0][63:0] stores_data;
  difference_buffer #(
      .LANES(LANES),
      .WORD_BITS(WORD_BITS)
  ) differences (
      .clk, .rst, .take, .hold(stores_hold), .load_two_words, .load_word, .load_overlaps,
      .in_valid(stored), .in_word(store_word), .in_enable(store_enable), .in_data(store_turned),
      .in_wait(stores_wait), .forget_in, .forget_pending, .pending_valid, .pending_word,
      .write_busy(stores_busy), .write_enable(stores_enable), .write_row(stores_row),
      .write_data(stores_data)
  );
  always_comb begin
    stores_pending = '0;
    for (int k = 0; k < LANES; k++)
      for (int s = 0; s < sephirot_pkg::SLOTS; s++)
        if (pending_valid[k] && pending_word[k][WORD_BITS-1] && pending_word[k][10:9] == 2'(s))
          stores_pending[s] = 1'b1;
  end

  // ------------------------------------------- windows: atomic operations and the service port

  logic atomic_outside, atomic_lock, atomic_window, atomic_write;
  logic [2:0] atomic_place;
  logic [31:0] atomic_enable;
  logic [255:0] atomic_wdata;
  assign atomic_place = place(atomic_address, atomic_wide ? 4'd8 : 4'd4);
  assign atomic_outside = atomic_place == NOWHERE || atomic_place == IN_CONTEXT;

  // One of the two owns the window. Compilers also merge load, change and store of packet bytes
  // into atomic operations; packet bytes that have not arrived are waited for.
  logic atomic_ready, atomic_in_maps, service_in_maps, asked_to_write;
  assign atomic_in_maps = atomic_address[31:28] == sephirot_pkg::REGION_MAPS;
  assign service_in_maps = service_write && service_address[31:28] == sephirot_pkg::REGION_MAPS;
  assign atomic_ready = !stores_busy && atomic_place != NOT_YET &&
                        (!SHARED || (atomic_in_maps ? map_window_go : !map_busy));
  logic window_to_packet, window_to_stack, window_write, window_go, window_reads;
  logic [MEMORY_BITS-1:3] window_offset;
  logic [WORD_BITS-1:0] window_word;
  logic [31:0] window_enable, turned_enable;
  logic [255:0] window_wdata, turned_wdata;
  logic [3:0] window_region;
  assign window_region = atomic_lock ? atomic_address[31:28] : service_address[31:28];
  assign window_offset = atomic_lock ? atomic_address[MEMORY_BITS-1:3]
                                     : service_address[MEMORY_BITS-1:3];
  assign window_word = word_of(window_region, window_offset, packet_slot);
  assign window_write = atomic_lock ? atomic_write : service_write;
  assign window_enable = atomic_lock ? atomic_enable : service_enable;
  assign window_wdata = atomic_lock ? atomic_wdata : service_wdata;
  // The inverse rotation from banks to a window: three rotations minus one is one.
  assign turned_wdata = banks_to_window(window_wdata, 2'd0 - window_word[1:0]);
  always_comb begin
    turned_enable = window_word[0] ? {window_enable[23:0], window_enable[31:24]} : window_enable;
    if (window_word[1]) turned_enable = {turned_enable[15:0], turned_enable[31:16]};
  end

  // Words of the service port's window for which memory exists.
  logic [3:0] word_used, word_there;
  logic [26:0] words_there;
  always_comb begin
    case (service_address[31:28])
      sephirot_pkg::REGION_PACKET: words_there = 27'(sephirot_pkg::PACKET_END / 8);
      sephirot_pkg::REGION_STACK: words_there = 27'(stack_limit[12:3]);
      sephirot_pkg::REGION_MAPS: words_there = 27'(MAP_BYTES / 8);
      default: words_there = 27'd0;
    endcase
    for (int w = 0; w < 4; w++) begin
      word_used[w] = service_write ? service_enable[8*w+:8] != 8'd0 : w == 0;
      word_there[w] = 27'(service_address[27:3]) + 27'(w) < words_there;
    end
  end
  logic service_outside;
  assign service_outside = (word_used & ~word_there) != 4'd0;
  // Acceptance does not depend on the address, which is known late.
  assign service_ready = service_valid && !atomic_lock && !stores_busy && service_may_write;
  logic service_may_write;
  assign service_may_write = !SHARED || !service_write ||
                             (service_in_maps ? map_window_write : !map_busy);
  assign service_miss = service_ready && service_outside;
  assign window_go = atomic_lock ? atomic_window && atomic_ready
                                 : service_ready && !service_outside;
  assign window_reads = window_go && !window_write;
  assign window_to_packet = window_word[WORD_BITS-1];
  assign window_to_stack = window_region == sephirot_pkg::REGION_STACK;

  // Maps are requested a cycle before they are changed; by then it is known whether the access is a
  // write. A core's stores therefore depend, within a cycle, only on the stores of other cores.
  assign map_window = SHARED && (atomic_lock ? atomic_in_maps
                                 : service_valid && service_in_maps);
  always_ff @(posedge clk) asked_to_write <= map_window && !atomic_lock;
  assign map_window_write = map_window_go && (asked_to_write || atomic_write);
  assign map_window_done = window_go && window_write && in_maps(window_word);

  // The answer is held until the next one.
  logic [255:0] packet_window, other_window, window_banks, window_rdata, kept;
  logic [3:0] window_written;
  logic [1:0] answer_first;
  logic fresh, answer_packet, answer_stack;
  always_ff @(posedge clk) begin
    fresh <= window_reads && !atomic_lock;
    if (window_reads) begin
      answer_first <= window_word[1:0];
      answer_packet <= window_to_packet;
      answer_stack <= window_to_stack;
    end
    if (fresh) kept <= window_rdata;
  end
  always_comb begin
    window_banks = answer_packet ? packet_window : other_window;
    for (int b = 0; b < 4; b++)
      if (answer_stack && !window_written[b]) window_banks[64*b+:64] = 64'd0;
  end
  assign window_rdata = banks_to_window(window_banks, answer_first);
  assign service_rdata = fresh ? window_rdata : kept;

  atomic_unit atomic (
      .clk, .rst, .atomic_valid, .atomic_wide, .atomic_operand, .atomic_expected,
      .atomic_byte(atomic_address[2:0]), .atomic_operation(atomic_operation[7:4]),
      .atomic_outside, .atomic_done, .atomic_miss, .atomic_old,
      .busy(atomic_lock), .window_valid(atomic_window), .window_write(atomic_write),
      .window_enable(atomic_enable), .window_wdata(atomic_wdata), .window_ready(atomic_ready),
      .window_rdata(window_rdata[127:0])
  );

  // -------------------------------------------------------------------------------- memories

  // Writes of stores or the window, to any of the memories
  logic [3:0][7:0] write_enable, packet_enable, other_enable;
  logic [3:0][WORD_BITS-3:0] write_row;
  logic [3:0][63:0] write_data, packet_in;
  logic [3:0] to_packet, to_stack, write_again;
  logic [3:0][6:0] stack_row;
  logic [3:0][ROW_BITS-1:0] other_row;
  logic [3:0][PACKET_ROW_BITS-1:0] packet_row;
  // The same with the writes of another core to maps
  logic [3:0][7:0] copy_enable;
  logic [3:0][ROW_BITS-1:0] copy_row;
  logic [3:0][63:0] copy_data;
  generate
    if (SHARED) begin : g_shared
      assign copy_enable = map_busy ? map_in_enable : other_enable;
      assign copy_data = map_busy ? map_in_data : write_data;
      genvar bank;
      for (bank = 0; bank < 4; bank++) begin : g_bank
        assign copy_row[bank] = map_busy ? {1'b0, map_in_row[bank]} : other_row[bank];
        assign map_out_enable[bank] = other_row[bank][ROW_BITS-1] ? 8'd0 : other_enable[bank];
        assign map_out_row[bank] = other_row[bank][ROW_BITS-2:0];
        assign map_out_data[bank] = write_data[bank];
      end
    end else begin : g_alone
      assign copy_enable = other_enable;
      assign copy_row = other_row;
      assign copy_data = write_data;
      assign map_out_enable = '0;
      assign map_out_row = '0;
      assign map_out_data = '0;
    end
  endgenerate
  always_comb begin
    for (int b = 0; b < 4; b++) begin
      write_enable[b] = stores_enable[b];
      write_row[b] = stores_row[b];
      write_data[b] = stores_data[b];
      if (!stores_busy) begin
        write_enable[b] = window_go && window_write ? turned_enable[8*b+:8] : 8'd0;
        write_row[b] = window_word[WORD_BITS-1:2] +
                       (WORD_BITS - 2)'(int'(window_word[1:0]) > b);
        // Bytes that are not written are zero: they may be the rest of a cleared word of the stack.
        for (int p = 0; p < 8; p++)
          write_data[b][8*p+:8] = turned_enable[8*b+p] ? turned_wdata[64*b+8*p+:8] : 8'd0;
      end
      to_packet[b] = write_enable[b] != 8'd0 && write_row[b][WORD_BITS-3];
      to_stack[b] = write_enable[b] != 8'd0 && !write_row[b][WORD_BITS-3] &&
                    write_row[b][ROW_BITS-1];
      stack_row[b] = write_row[b][6:0];
      other_row[b] = write_row[b][ROW_BITS-1:0];
      other_enable[b] = write_row[b][WORD_BITS-3] ? 8'd0 : write_enable[b];
      if (to_stack[b] && !write_again[b]) other_enable[b] = 8'hff;
      // Arriving beats have the lowest priority.
      packet_enable[b] = to_packet[b] ? write_enable[b] : 8'd0;
      packet_row[b] = write_row[b][PACKET_ROW_BITS-1:0];
      packet_in[b] = write_data[b];
      if (fill_ready) begin
        packet_enable[b] = {8{fill_valid}};
        packet_row[b] = {fill_slot, fill_offset[11:5]};
        packet_in[b] = fill_data[64*b+:64];
      end
    end
  end
  assign fill_ready = to_packet == 4'd0;

  // Emission and the service port share a port for windows of packets.
  logic packet_read;
  logic [1:0] emit_first;
  assign packet_read = window_reads && window_to_packet;
  assign emit_ready = !packet_read;
  always_ff @(posedge clk) if (emit_valid && emit_ready) emit_first <= emit_offset[4:3];
  assign emit_data = banks_to_window(packet_window, emit_first);

  banked_memory #(
      .ROWS(PACKET_ROWS), .LANES(LANES)
  ) packets (
      .clk, .lane_enable(!load_hold), .lane_address(packet_address), .lane_data(packet_words),
      .window_enable(packet_read || emit_valid), .window_data(packet_window),
      .window_word(packet_read ? window_word[PACKET_ROW_BITS+1:0]
                               : {emit_slot, emit_offset[11:3]}),
      .write_enable(packet_enable), .write_row(packet_row), .write_data(packet_in)
  );
  banked_memory #(
      .ROWS(MAP_ROWS + STACK_ROWS), .LANES(LANES)
  ) stack_and_maps (
      .clk, .lane_enable(!load_hold), .lane_address(other_address), .lane_data(other_words),
      .window_enable(window_reads && !window_to_packet), .window_data(other_window),
      .window_word(window_word[ROW_BITS+1:0]),
      .write_enable(copy_enable), .write_row(copy_row), .write_data(copy_data)
  );
  stack_words #(
      .LANES(LANES)
  ) stack (
      .clk, .clear_all(stack_clear), .clear_frame(frame_clear), .frame,
      .write(to_stack), .write_row(stack_row), .write_again,
      .lane_enable(!load_hold), .lane_address(stack_address), .lane_written,
      .window_enable(window_reads && !window_to_packet), .window_word(window_word[8:0]),
      .window_written
  );
endmodule
