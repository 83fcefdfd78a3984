// SPDX-License-Identifier: Apache-2.0 OR MIT
// What loads, stores, atomic operations and helpers reach: packet, stack, context and maps, by the
// upper bits of an address. (hXDP, sections 4.1.2 and 4.1.3: the data bus, the stack, `struct
// xdp_md`, maps and the difference buffer; docs/sephirot.md has the rules of what misses.)
//
// Each memory has a read port for each lane. Writes to a memory go, the first one first, from
// its difference buffer, atomic operations, the service port, and arriving packets.

module data_memory #(
    parameter int LANES = 4,
    parameter int MAP_BYTES = 8192
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
    /* verilator lint_off UNUSEDSIGNAL */  // bits 7 to 4 say it all
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
    // The packet in work
    input  logic [1:0]              packet_slot,
    input  logic [11:0]             packet_data,
    input  logic [11:0]             packet_end,
    input  logic [11:0]             packet_meta,
    input  logic [12:0]             packet_arrived,
    input  logic                    packet_complete,
    input  logic [31:0]             packet_ifindex,
    input  logic [31:0]             packet_queue,
    // Packets that come and go
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
    output logic [sephirot_pkg::SLOTS-1:0]        stores_pending
);
  localparam int MAP_BITS = $clog2(MAP_BYTES);
  // Words of a memory, by their number's bits: 4 slots, 8 frames, maps.
  localparam int PACKET_WORD = sephirot_pkg::SLOT_BITS + 2 - 3;
  localparam int STACK_WORD = 12 - 3;
  localparam int MAP_WORD = MAP_BITS - 3;
  localparam int WINDOW_BITS = MAP_BITS > 12 ? MAP_BITS : 12;

  // What an address is.
  localparam logic [2:0] NOWHERE = 3'd0;
  localparam logic [2:0] IN_PACKET = 3'd1;
  localparam logic [2:0] IN_STACK = 3'd2;
  localparam logic [2:0] IN_CONTEXT = 3'd3;
  localparam logic [2:0] IN_MAPS = 3'd4;
  localparam logic [2:0] NOT_YET = 3'd5;  // a packet's byte that may still come

  // The first byte behind the packet, as far as is known, and behind the frame that runs.
  logic [12:0] packet_limit, stack_limit;
  assign packet_limit = packet_complete ? {1'b0, packet_end} : packet_arrived;
  assign stack_limit = {1'b0, frame, 9'd0} + 13'(sephirot_pkg::FRAME_BYTES);

  function automatic logic [2:0] place(input logic [63:0] address, input logic [3:0] bytes);
    logic [28:0] last;
    logic near;
    last = {1'b0, address[27:0]} + 29'(bytes);
    // Such offsets have 12 bits, and what lies behind their last byte has 13.
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
          // Where the packet ends is known when it is all there.
          place = !packet_complete && address[4:2] == 3'd1 ? NOT_YET : IN_CONTEXT;
        sephirot_pkg::REGION_MAPS: if (last <= 29'(MAP_BYTES)) place = IN_MAPS;
        default: ;
      endcase
  endfunction

  function automatic logic [255:0] banks_to_window(input logic [255:0] banks,
                                                   input logic [1:0] first);
    banks_to_window = 256'({banks, banks} >> {first, 6'd0});
  endfunction

  // ---------------------------------------------------------------------------------- loads

  logic [LANES-1:0][2:0] load_place, answer_place;
  logic [LANES-1:0][2:0] answer_byte;
  logic [LANES-1:0][7:0] load_mask, answer_mask;
  logic [LANES-1:0][31:0] load_context, answer_context;
  logic [LANES-1:0] load_two_words;
  logic [2:0] context_word;
  logic [LANES-1:0] packet_overlaps, stack_overlaps, map_overlaps;

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
          IN_PACKET: if (packet_overlaps[l]) load_wait = 1'b1;
          IN_STACK: if (stack_overlaps[l]) load_wait = 1'b1;
          IN_MAPS: if (map_overlaps[l]) load_wait = 1'b1;
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

  logic [LANES-1:0][63:0] packet_words, stack_words, map_words, answer_words;
  always_comb
    for (int l = 0; l < LANES; l++) begin
      case (answer_place[l])
        IN_PACKET: answer_words[l] = packet_words[l];
        IN_STACK: answer_words[l] = stack_words[l];
        IN_MAPS: answer_words[l] = map_words[l];
        // Turned like the others, although it is never at an odd place.
        IN_CONTEXT: answer_words[l] = {2{answer_context[l]}};
        default: answer_words[l] = 64'd0;
      endcase
      load_miss[l] = answer_place[l] == NOWHERE;
      answer_words[l] = 64'({answer_words[l], answer_words[l]} >> {answer_byte[l], 3'd0});
      for (int i = 0; i < 8; i++)
        load_data[l][8*i+:8] = answer_mask[l][i] ? answer_words[l][8*i+:8] : 8'd0;
    end

  // --------------------------------------------------------------------------------- stores

  logic [LANES-1:0][2:0] store_place;
  logic [LANES-1:0][15:0] store_enable;
  logic [LANES-1:0][63:0] store_turned;
  logic [LANES-1:0] store_not_yet, to_packet, to_stack, to_maps;
  logic packet_wait, stack_wait, map_wait, take;
  always_comb
    for (int l = 0; l < LANES; l++) begin
      store_place[l] = place(store_address[l], store_bytes[l]);
      store_enable[l] = 16'((24'd1 << store_bytes[l]) - 24'd1) << store_address[l][2:0];
      store_turned[l] = 64'({store_data[l], store_data[l]} << {store_address[l][2:0], 3'd0} >> 64);
      store_miss[l] = store_valid[l] && (store_place[l] == NOWHERE ||
                                         store_address[l][31:28] == sephirot_pkg::REGION_CONTEXT);
      store_not_yet[l] = store_valid[l] && store_place[l] == NOT_YET && !store_miss[l];
      to_packet[l] = store_valid[l] && store_place[l] == IN_PACKET;
      to_stack[l] = store_valid[l] && store_place[l] == IN_STACK;
      to_maps[l] = store_valid[l] && store_place[l] == IN_MAPS;
    end
  // Bytes that have not come yet would be lost when they come.
  assign store_wait = packet_wait || stack_wait || map_wait || store_not_yet != '0;
  assign take = !store_wait;

  logic [LANES-1:0][PACKET_WORD-1:0] packet_store_word, packet_load_word, packet_pending_word;
  logic [LANES-1:0][STACK_WORD-1:0] stack_store_word, stack_load_word;
  logic [LANES-1:0][MAP_WORD-1:0] map_store_word, map_load_word;
  logic [LANES-1:0][13:0] packet_lane_address;
  logic [LANES-1:0][11:0] stack_lane_address;
  logic [LANES-1:0][MAP_BITS-1:0] map_lane_address;
  always_comb
    for (int l = 0; l < LANES; l++) begin
      packet_lane_address[l] = {packet_slot, load_address[l][11:0]};
      stack_lane_address[l] = load_address[l][11:0];
      map_lane_address[l] = load_address[l][MAP_BITS-1:0];
      packet_load_word[l] = packet_lane_address[l][13:3];
      stack_load_word[l] = stack_lane_address[l][11:3];
      map_load_word[l] = map_lane_address[l][MAP_BITS-1:3];
      packet_store_word[l] = {store_slot, store_address[l][11:3]};
      stack_store_word[l] = store_address[l][11:3];
      map_store_word[l] = store_address[l][MAP_BITS-1:3];
    end

  logic [LANES-1:0] packet_pending;
  logic packet_busy, stack_busy, map_busy;
  logic [3:0][7:0] packet_stores, stack_stores, map_stores;
  logic [3:0][PACKET_WORD-3:0] packet_store_row;
  logic [3:0][STACK_WORD-3:0] stack_store_row;
  logic [3:0][MAP_WORD-3:0] map_store_row;
  logic [3:0][63:0] packet_store_data, stack_store_data, map_store_data;

  difference_buffer #(
      .LANES(LANES),
      .WORD_BITS(PACKET_WORD)
  ) packet_differences (
      .clk, .rst, .take, .load_two_words,
      .in_valid(to_packet), .in_word(packet_store_word),
      .in_enable(store_enable), .in_data(store_turned), .in_wait(packet_wait),
      .forget_all(1'b0), .forget_some(1'b0), .forget_frame(3'd0),
      .pending_valid(packet_pending), .pending_word(packet_pending_word),
      .load_word(packet_load_word), .load_overlaps(packet_overlaps),
      .write_busy(packet_busy), .write_enable(packet_stores),
      .write_row(packet_store_row), .write_data(packet_store_data)
  );
  /* verilator lint_off PINCONNECTEMPTY */  // nobody asks which stores wait, but for slots
  difference_buffer #(
      .LANES(LANES),
      .WORD_BITS(STACK_WORD)
  ) stack_differences (
      .clk, .rst, .take, .load_two_words,
      .in_valid(to_stack), .in_word(stack_store_word),
      .in_enable(store_enable), .in_data(store_turned), .in_wait(stack_wait),
      .forget_all(stack_clear), .forget_some(frame_clear), .forget_frame(frame),
      .pending_valid(), .pending_word(),
      .load_word(stack_load_word), .load_overlaps(stack_overlaps),
      .write_busy(stack_busy), .write_enable(stack_stores),
      .write_row(stack_store_row), .write_data(stack_store_data)
  );
  difference_buffer #(
      .LANES(LANES),
      .WORD_BITS(MAP_WORD)
  ) map_differences (
      .clk, .rst, .take, .load_two_words,
      .in_valid(to_maps), .in_word(map_store_word),
      .in_enable(store_enable), .in_data(store_turned), .in_wait(map_wait),
      .forget_all(1'b0), .forget_some(1'b0), .forget_frame(3'd0),
      .pending_valid(), .pending_word(),
      .load_word(map_load_word), .load_overlaps(map_overlaps),
      .write_busy(map_busy), .write_enable(map_stores),
      .write_row(map_store_row), .write_data(map_store_data)
  );
  /* verilator lint_on PINCONNECTEMPTY */
  always_comb begin
    stores_pending = '0;
    for (int k = 0; k < LANES; k++)
      for (int s = 0; s < sephirot_pkg::SLOTS; s++)
        if (packet_pending[k] && packet_pending_word[k][PACKET_WORD-1-:2] == 2'(s))
          stores_pending[s] = 1'b1;
  end

  // ------------------------------------------- windows: atomic operations and the service port

  logic atomic_outside, atomic_lock, atomic_window, atomic_write, atomic_ready;
  logic [2:0] atomic_place;
  logic [31:0] atomic_enable;
  logic [255:0] atomic_wdata;
  assign atomic_place = place(atomic_address, atomic_wide ? 4'd8 : 4'd4);
  assign atomic_outside = atomic_place == NOWHERE || atomic_place == IN_CONTEXT;

  // One of the two has the window. Compilers make atomic operations of what programs load, change
  // and store again in packets, too.
  logic window_to_packet, window_to_stack, window_to_maps, window_write, window_free;
  logic [WINDOW_BITS-1:3] window_word;
  logic [31:0] window_enable, turned_enable;
  logic [255:0] window_wdata, turned_wdata;
  logic [3:0] window_region;
  assign window_region = atomic_lock ? atomic_address[31:28] : service_address[31:28];
  assign window_word = atomic_lock ? atomic_address[WINDOW_BITS-1:3]
                                   : service_address[WINDOW_BITS-1:3];
  assign window_write = atomic_lock ? atomic_write : service_write;
  assign window_enable = atomic_lock ? atomic_enable : service_enable;
  assign window_wdata = atomic_lock ? atomic_wdata : service_wdata;
  assign turned_enable = 32'(({window_enable, window_enable} << {window_word[4:3], 3'd0}) >> 32);
  assign turned_wdata = 256'(({window_wdata, window_wdata} << {window_word[4:3], 6'd0}) >> 256);

  // Which words of the service port's window have memory.
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
  always_comb
    case (window_region)
      sephirot_pkg::REGION_PACKET: window_free = !packet_busy;
      sephirot_pkg::REGION_STACK: window_free = !stack_busy;
      default: window_free = !map_busy;
    endcase
  assign atomic_ready = window_free && atomic_place != NOT_YET;
  assign service_ready = service_valid && !atomic_lock && (service_outside || window_free);
  assign service_miss = service_ready && service_outside;
  logic window_go, window_reads;
  assign window_go = atomic_lock ? atomic_window && atomic_ready
                                 : service_ready && !service_outside;
  assign window_reads = window_go && !window_write;
  assign window_to_packet = window_go && window_region == sephirot_pkg::REGION_PACKET;
  assign window_to_stack = window_go && window_region == sephirot_pkg::REGION_STACK;
  assign window_to_maps = window_go && window_region == sephirot_pkg::REGION_MAPS;

  // Rows of the banks that a window lies in
  logic [3:0][PACKET_WORD-3:0] packet_window_row;
  logic [3:0][STACK_WORD-3:0] stack_window_row;
  logic [3:0][MAP_WORD-3:0] map_window_row;
  logic [3:0] next_row;
  always_comb
    for (int b = 0; b < 4; b++) begin
      next_row[b] = int'(window_word[4:3]) > b;
      packet_window_row[b] = {packet_slot, window_word[11:5]} + (PACKET_WORD - 2)'(next_row[b]);
      stack_window_row[b] = window_word[11:5] + (STACK_WORD - 2)'(next_row[b]);
      map_window_row[b] = window_word[MAP_BITS-1:5] + (MAP_WORD - 2)'(next_row[b]);
    end

  // The answer stays until the next one.
  logic [255:0] packet_window, stack_window, map_window, window_banks, window_rdata, kept;
  logic [1:0] answer_first;
  logic [3:0] answer_region;
  logic fresh;
  always_ff @(posedge clk) begin
    fresh <= window_reads && !atomic_lock;
    if (window_reads) begin
      answer_first <= window_word[4:3];
      answer_region <= window_region;
    end
    if (fresh) kept <= window_rdata;
  end
  always_comb
    case (answer_region)
      sephirot_pkg::REGION_PACKET: window_banks = packet_window;
      sephirot_pkg::REGION_STACK: window_banks = stack_window;
      default: window_banks = map_window;
    endcase
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

  // Emission and the service port share a port that reads windows of packets.
  logic packet_read;
  logic [PACKET_WORD-1:0] packet_read_word;
  logic [1:0] emit_first;
  assign packet_read = window_to_packet && !window_write;
  assign emit_ready = !packet_read;
  assign packet_read_word = packet_read ? {packet_slot, window_word[11:3]}
                                        : {emit_slot, emit_offset[11:3]};
  always_ff @(posedge clk) if (emit_valid && emit_ready) emit_first <= emit_offset[4:3];
  assign emit_data = banks_to_window(packet_window, emit_first);

  logic packet_written, stack_written, map_written;
  assign packet_written = window_to_packet && window_write;
  assign stack_written = window_to_stack && window_write;
  assign map_written = window_to_maps && window_write;
  assign fill_ready = !packet_busy && !packet_written;

  logic [3:0][7:0] packet_enable, stack_enable, map_enable;
  logic [3:0][PACKET_WORD-3:0] packet_row;
  logic [3:0][63:0] packet_in;
  always_comb begin
    packet_enable = packet_stores;
    packet_row = packet_store_row;
    packet_in = packet_store_data;
    if (packet_written) begin
      packet_enable = turned_enable;
      packet_row = packet_window_row;
      packet_in = turned_wdata;
    end else if (!packet_busy) begin
      packet_enable = {32{fill_valid}};
      packet_row = {4{fill_slot, fill_offset[11:5]}};
      packet_in = fill_data;
    end
    stack_enable = stack_written ? turned_enable : stack_stores;
    map_enable = map_written ? turned_enable : map_stores;
  end

  banked_memory #(
      .ROW_BITS(PACKET_WORD - 2), .LANES(LANES)
  ) packets (
      .clk, .lane_enable(!load_hold),
      .lane_address(packet_lane_address), .lane_data(packet_words),
      .window_enable(packet_read || emit_valid), .window_word(packet_read_word),
      .window_data(packet_window),
      .write_enable(packet_enable), .write_row(packet_row), .write_data(packet_in)
  );
  stack_memory #(
      .LANES(LANES)
  ) stack (
      .clk, .clear_all(stack_clear), .clear_frame(frame_clear), .frame,
      .lane_enable(!load_hold), .lane_address(stack_lane_address), .lane_data(stack_words),
      .window_enable(window_to_stack && !window_write), .window_word(window_word[11:3]),
      .window_data(stack_window), .write_enable(stack_enable),
      .write_row(stack_written ? stack_window_row : stack_store_row),
      .write_data(stack_written ? turned_wdata : stack_store_data)
  );
  banked_memory #(
      .ROW_BITS(MAP_WORD - 2), .LANES(LANES)
  ) maps (
      .clk, .lane_enable(!load_hold),
      .lane_address(map_lane_address), .lane_data(map_words),
      .window_enable(window_to_maps && !window_write), .window_word(window_word[MAP_BITS-1:3]),
      .window_data(map_window), .write_enable(map_enable),
      .write_row(map_written ? map_window_row : map_store_row),
      .write_data(map_written ? turned_wdata : map_store_data)
  );
endmodule
