// SPDX-License-Identifier: Apache-2.0 OR MIT
// The helpers in hardware (hXDP, OSDI 2020, section 4.1). The core makes one call at a time over
// the helper bus, with registers 1 to 5, and waits for register 0; commands of the host are calls
// between two of the core's. Helpers have the kernel's numbers, results and errors.

module helper_unit #(
    parameter int MAPS = 32,
    parameter int CORES = 1,
    // Number of the core.
    parameter logic [31:0] CPU = 32'd0
) (
    input  logic clk,
    input  logic rst,
    // The core.
    input  logic call_valid,
    input  logic [7:0] call_helper,
    input  logic [4:0][63:0] call_arguments,
    output logic call_done,
    output logic [63:0] call_result,
    output logic call_unknown,
    output logic call_jump,
    output logic [15:0] call_row,
    input  logic packet_begin,
    // Start of a map's entries, combinational.
    input  logic [15:0] map_base_index,
    output logic [31:0] map_base,
    // The service port of the memory.
    output logic service_valid,
    output logic service_write,
    output logic [31:0] service_address,
    output logic [31:0] service_enable,
    output logic [255:0] service_wdata,
    input  logic service_ready,
    input  logic [255:0] service_rdata,
    input  logic service_miss,
    // The current packet.
    input  logic [11:0] packet_data,
    input  logic [11:0] packet_end,
    input  logic [11:0] packet_meta,
    input  logic [12:0] packet_arrived,
    input  logic packet_complete,
    output logic set_valid,
    output logic [11:0] set_data,
    output logic [11:0] set_end,
    output logic [11:0] set_meta,
    output logic redirect_valid,
    output logic [31:0] redirect_map,
    output logic [31:0] redirect_key,
    // The host. A command is held until it is done; `table_rdata` is combinational.
    input  logic command_valid,
    input  logic [15:0] command_helper,
    input  logic [4:0][63:0] command_arguments,
    output logic command_done,
    output logic [63:0] command_result,
    input  logic table_valid,
    input  logic table_write,
    input  logic [15:0] table_map,
    input  logic [2:0] table_word,
    input  logic [63:0] table_wdata,
    output logic [63:0] table_rdata,
    input  logic [63:0] time_now,
    input  logic random_write,
    input  logic [63:0] random_wdata,
    output logic [63:0] random_state,
    // A call of the core is done.
    output logic event_call,
    // Changes of this unit to the table of maps, and those of the other units: each core has a copy
    // of the table, and all copies change together.
    output logic [241:0] commit_out,
    input  logic [241:0] commit_in
);
  localparam logic [63:0] ENOENT = -64'd2;
  localparam logic [63:0] EFAULT = -64'd14;
  localparam logic [63:0] EINVAL = -64'd22;
  localparam logic [63:0] EOPNOTSUPP = -64'd95;
  localparam logic [31:0] ABORTED = sephirot_pkg::XDP_ABORTED;
  localparam logic [31:0] REDIRECT = sephirot_pkg::XDP_REDIRECT;
  localparam logic [5:0] TAIL_CALLS_MAX = 6'd33;
  localparam logic [63:0] VERDICT_FLAGS = 64'h3;
  localparam logic [63:0] DEVICE_FLAGS = 64'h1b;
  localparam logic [31:0] COPY_MAX = 32'hffff;

  // Owner of the current call: a command once it has begun, otherwise the core has priority.
  logic command_runs, is_command, valid, done, unknown;
  assign is_command = command_runs || !call_valid;
  assign valid = is_command ? command_valid : call_valid;
  always_ff @(posedge clk) command_runs <= !rst && is_command && command_valid && !done;

  logic [7:0] helper;
  logic [4:0][63:0] arguments;
  logic [63:0] result;
  assign helper = !is_command ? call_helper
      : command_helper[15:8] == 8'd0 ? command_helper[7:0] : 8'd0;
  assign arguments = is_command ? command_arguments : call_arguments;

  // Type of the helper.
  logic is_lookup, is_update, is_delete, is_tail_call, is_by_map, is_time, is_random, is_csum;
  logic is_head, is_tail, is_meta, is_load, is_store, is_device, is_length, is_zero;
  logic is_push, is_pop, is_peek, is_next;
  assign is_lookup = helper == 8'd1;
  assign is_update = helper == 8'd2;
  assign is_delete = helper == 8'd3;
  assign is_time = helper == 8'd5 || helper == 8'd125 || helper == 8'd160 || helper == 8'd208;
  assign is_random = helper == 8'd7;
  assign is_tail_call = helper == 8'd12 && !is_command;
  assign is_device = helper == 8'd23 && !is_command;
  assign is_csum = helper == 8'd28;
  assign is_head = helper == 8'd44 && !is_command;
  assign is_by_map = helper == 8'd51 && !is_command;
  assign is_meta = helper == 8'd54 && !is_command;
  assign is_tail = helper == 8'd65 && !is_command;
  assign is_push = helper == 8'd87;
  assign is_pop = helper == 8'd88;
  assign is_peek = helper == 8'd89;
  assign is_length = helper == 8'd188 && !is_command;
  assign is_load = helper == 8'd189 && !is_command;
  assign is_store = helper == 8'd190 && !is_command;
  // There is one memory node. With several cores, a caller waits outside this unit until a lock is
  // free (`call_arbiter`).
  assign is_zero = helper == 8'd42 || helper == 8'd93 || helper == 8'd94;

  // The map: the first argument, for a tail call the second.
  logic [63:0] handle;
  logic [7:0] row_kind;
  logic row_holds_devices, row_holds_maps;
  logic [15:0] row_key_bytes;
  logic [31:0] row_value_bytes, row_entries, row_base, row_stride, row_mask, row_heads;
  logic [31:0] row_links, row_used, row_free, row_hand;
  logic [128:0] row_lengths, commit_lengths;
  logic commit_valid;
  logic [31:0] commit_used, commit_free, commit_hand;
  logic row_by_core;
  assign handle = is_tail_call ? arguments[1] : arguments[0];
  logic [241:0] commit_any;
  assign commit_out = commit_valid ? {1'b1, handle[15:0], commit_used, commit_free, commit_hand,
                                      commit_lengths} : '0;
  assign commit_any = commit_out | commit_in;
  map_table #(.MAPS(MAPS)) maps (
      .*, .row_map(handle[15:0]), .commit_valid(commit_any[241]), .commit_map(commit_any[240:225]),
      .commit_used(commit_any[224:193]), .commit_free(commit_any[192:161]),
      .commit_hand(commit_any[160:129]), .commit_lengths(commit_any[128:0]));

  // Maps that a helper accepts. Operations reserved for the host do not exist for programs.
  logic is_map, is_sparse, is_line, is_bloom, is_engine, fits, by_number;
  assign is_sparse = row_kind == sephirot_pkg::MAP_SPARSE;
  assign is_line = row_kind == sephirot_pkg::MAP_QUEUE || row_kind == sephirot_pkg::MAP_STACK;
  assign is_bloom = row_kind == sephirot_pkg::MAP_BLOOM;
  assign is_next = is_line && (is_pop || is_peek);
  assign is_map = handle[63:16] == {32'd0, sephirot_pkg::REGION_MAP_HANDLE, 12'd0}
      && row_kind != sephirot_pkg::MAP_NONE;
  assign by_number = is_tail_call || is_by_map;
  always_comb begin
    fits = 1'b0;
    if (is_lookup) fits = is_command || row_kind != sephirot_pkg::MAP_PROGRAMS;
    if (is_update || is_delete) begin
      fits = is_command
          || (row_kind != sephirot_pkg::MAP_PROGRAMS && !is_sparse && !row_holds_maps);
    end
    if (is_line || is_bloom) fits = is_push || is_peek || (is_pop && is_line);
    if (is_tail_call) fits = row_kind == sephirot_pkg::MAP_PROGRAMS;
    if (is_by_map) begin
      fits = is_sparse || (row_kind == sephirot_pkg::MAP_HASH && row_key_bytes == 16'd4);
    end
    is_engine = is_map && fits;
  end

  // Multi-cycle units, and which of them owns the memory.
  logic bad_flags, to_all, engine_start, engine_done, engine_found, engine_fault;
  logic [31:0] engine_value;
  logic [15:0] engine_row;
  logic [63:0] engine_error;
  logic [5:0] tail_calls;
  assign bad_flags = is_by_map
      && (arguments[2] & ~(row_holds_devices ? DEVICE_FLAGS : VERDICT_FLAGS)) != 64'd0;
  // A broadcast to all devices of a map needs no lookup.
  assign to_all = is_by_map && arguments[2][3];
  assign engine_start = valid && is_engine && !bad_flags && !to_all;
  // For flags, it only matters whether any other than the lower two is set.
  logic [63:0] map_flags;
  assign map_flags = is_push ? {61'd0, arguments[2][63:2] != 62'd0, arguments[2][1:0]}
      : {61'd0, arguments[3][63:2] != 62'd0, arguments[3][1:0]};

  logic request_valid, request_write, request_ready, request_miss;
  logic [31:0] request_address;
  logic [4:0] request_bytes;
  logic [191:0] request_data, chunk;
  logic [255:0] window;
  memory_sequencer sequencer (.*);

  logic engine_request, engine_write;
  logic [31:0] engine_address, engine_target;
  logic [4:0] engine_bytes;
  logic [191:0] engine_data;
  logic engine_copies, engine_fill, copy_done, copy_miss;
  logic [31:0] engine_length;
  map_engine #(.CORES(CORES), .CORE(int'(CPU))) engine (
      .clk, .rst, .start(engine_start), .do_update(is_update), .do_delete(is_delete),
      .do_push(is_push), .do_next(is_next), .do_pop(is_pop), .holds_maps(row_holds_maps),
      .has_index(by_number), .index(is_tail_call ? arguments[2][31:0] : arguments[1][31:0]),
      .key_address(arguments[1]), .value_address(arguments[2]), .flags(map_flags),
      .packet_meta, .packet_end, .packet_arrived, .packet_complete,
      .done(engine_done), .found(engine_found), .fault(engine_fault), .value_at(engine_value),
      .value_row(engine_row), .error(engine_error),
      .row_kind, .row_key_bytes, .row_value_bytes, .row_entries, .row_base, .row_stride,
      .row_mask, .row_heads, .row_links, .row_used, .row_free, .row_hand, .row_lengths,
      .row_by_core, .commit_valid, .commit_used, .commit_free, .commit_hand, .commit_lengths,
      .copy_start(engine_copies), .copy_target(engine_target), .copy_bytes(engine_length),
      .copy_fill(engine_fill), .copy_done, .copy_miss,
      .request_valid(engine_request), .request_write(engine_write),
      .request_address(engine_address), .request_bytes(engine_bytes),
      .request_data(engine_data), .request_ready, .request_miss, .chunk, .window);

  logic csum_done, csum_request;
  logic [63:0] csum_result;
  logic [31:0] csum_address;
  logic [4:0] csum_bytes;
  checksum csum (
      .clk, .rst, .start(valid && is_csum), .arguments, .packet_meta, .packet_end,
      .packet_arrived, .packet_complete, .done(csum_done), .result(csum_result),
      .request_valid(csum_request), .request_address(csum_address),
      .request_bytes(csum_bytes), .request_ready, .request_miss, .chunk);

  logic adjust_start, adjust_done, adjust_copies, adjust_fill, adjust_backward;
  logic [63:0] adjust_result;
  logic [31:0] adjust_source, adjust_target, adjust_bytes;
  assign adjust_start = valid && (is_head || is_meta || is_tail) && packet_complete;
  adjust adjuster (
      .clk, .rst, .start(adjust_start), .is_head, .is_meta, .by(arguments[1][31:0]),
      .packet_begin, .packet_data, .packet_end, .packet_meta, .done(adjust_done),
      .result(adjust_result), .set_valid, .set_data, .set_end, .set_meta,
      .copy_start(adjust_copies), .copy_source(adjust_source), .copy_target(adjust_target),
      .copy_bytes(adjust_bytes), .copy_fill(adjust_fill), .copy_backward(adjust_backward),
      .copy_done);

  // Copies between packet and other memory: offset, buffer, bytes.
  logic [31:0] offset, bytes, length, packet_place;
  logic is_bytes, bytes_wait, bytes_fault, bytes_copies, bytes_too_many, bytes_beyond;
  assign offset = arguments[1][31:0];
  assign bytes = arguments[3][31:0];
  assign length = {20'd0, packet_end - packet_data};
  assign packet_place = {sephirot_pkg::REGION_PACKET, 16'd0, packet_data + offset[11:0]};
  assign is_bytes = is_load || is_store;
  assign bytes_too_many = offset > COPY_MAX || bytes > COPY_MAX;
  assign bytes_beyond = {1'b0, offset} + {1'b0, bytes} > {1'b0, length};
  packet_bounds buffer_bounds (
      .address(arguments[2]), .bytes(bytes), .packet_meta, .packet_end,
      .packet_arrived, .packet_complete, .must_wait(bytes_wait), .fault(bytes_fault));
  assign bytes_copies = valid && is_bytes && packet_complete && !bytes_too_many && !bytes_beyond
      && !bytes_fault;

  logic copy_request, copy_write;
  logic [31:0] copy_address, copy_source, copy_target, copy_bytes;
  logic [4:0] copy_count;
  logic [191:0] copy_data;
  always_comb begin
    copy_source = adjust_source;
    copy_target = adjust_target;
    copy_bytes = adjust_bytes;
    if (is_engine) begin
      copy_source = is_next ? engine_target : is_push ? arguments[1][31:0] : arguments[2][31:0];
      copy_target = is_next ? arguments[1][31:0] : engine_target;
      copy_bytes = engine_length;
    end else if (is_bytes) begin
      copy_source = is_load ? packet_place : arguments[2][31:0];
      copy_target = is_load ? arguments[2][31:0] : packet_place;
      copy_bytes = bytes;
    end
  end
  memory_copy copier (
      .clk, .rst, .start(engine_copies || adjust_copies || bytes_copies), .source(copy_source),
      .target(copy_target), .bytes(copy_bytes),
      .fill(is_engine ? engine_fill : adjust_copies && adjust_fill),
      .backward(adjust_copies && adjust_backward), .done(copy_done), .miss(copy_miss),
      .request_valid(copy_request), .request_write(copy_write), .request_address(copy_address),
      .request_bytes(copy_count), .request_data(copy_data), .request_ready, .request_miss,
      .chunk);

  always_comb begin
    request_valid = copy_request || engine_request || csum_request;
    request_write = copy_request ? copy_write : engine_request && engine_write;
    request_data = copy_request ? copy_data : engine_data;
    request_address = csum_address;
    request_bytes = csum_bytes;
    if (copy_request) begin
      request_address = copy_address;
      request_bytes = copy_count;
    end else if (is_engine) begin
      request_address = engine_address;
      request_bytes = engine_bytes;
    end
  end

  logic random_ready;
  logic [31:0] random_number;
  random generator (
      .clk, .rst, .random_write, .random_wdata, .random_state, .ready(random_ready),
      .number(random_number), .take(valid && is_random));

  // The result.
  always_comb begin
    done = 1'b1;
    unknown = 1'b0;
    result = 64'd0;
    redirect_valid = 1'b0;
    redirect_map = {14'd0, to_all && arguments[2][4], to_all, handle[15:0]};
    redirect_key = arguments[1][31:0];
    call_jump = 1'b0;
    if (is_engine) begin
      done = bad_flags || to_all || engine_done;
      result = engine_error;
      if (is_lookup)
        result = engine_fault ? EFAULT : engine_found ? {32'd0, engine_value} : 64'd0;
      if (is_tail_call) begin
        call_jump = engine_done && engine_found && tail_calls < TAIL_CALLS_MAX;
        result = ENOENT;
      end
      if (is_by_map) begin
        redirect_valid = valid && (engine_done || (to_all && !bad_flags));
        result = bad_flags ? {32'd0, ABORTED}
            : engine_found || to_all ? {32'd0, REDIRECT} : {62'd0, arguments[2][1:0]};
        // Without an entry, no target of an earlier call may remain: no device has number 0.
        if (!engine_found && !to_all) {redirect_map, redirect_key} = {32'hffff_ffff, 32'd0};
      end
    end else if (is_csum) begin
      done = csum_done;
      result = csum_result;
    end else if (is_head || is_meta || is_tail) begin
      done = adjust_done;
      result = adjust_result;
    end else if (is_bytes) begin
      done = packet_complete && (bytes_too_many || bytes_beyond || bytes_fault || copy_done);
      result = bytes_too_many ? EFAULT : bytes_beyond ? EINVAL
          : bytes_fault || copy_miss ? EFAULT : 64'd0;
    end else if (is_device) begin
      result = {32'd0, arguments[1] == 64'd0 ? REDIRECT : ABORTED};
      redirect_valid = valid && arguments[1] == 64'd0;
      redirect_map = 32'hffff_ffff;
      redirect_key = arguments[0][31:0];
    end else if (is_length) begin
      done = packet_complete;
      result = {32'd0, length};
    end else if (is_time) begin
      result = time_now;
    end else if (is_random) begin
      done = random_ready;
      result = {32'd0, random_number};
    end else if (helper == 8'd8) begin
      result = {32'd0, CPU};
    end else if (!is_zero) begin
      unknown = 1'b1;
      result = EOPNOTSUPP;
    end
  end

  always_ff @(posedge clk) begin
    if (rst || packet_begin) tail_calls <= 6'd0;
    else if (call_done && call_jump) tail_calls <= tail_calls + 6'd1;
  end

  assign call_done = valid && !is_command && done;
  assign call_result = result;
  assign call_unknown = unknown;
  assign call_row = engine_row;
  assign command_done = valid && is_command && done;
  assign command_result = result;
  assign event_call = call_done;

  /* verilator lint_off UNUSEDSIGNAL */
  // These helpers wait for the whole packet in any case.
  wire unused = bytes_wait;
  /* verilator lint_on UNUSEDSIGNAL */

`ifdef VERILATOR
  always_ff @(posedge clk) if (!rst) begin
    if (engine_start && !is_line && (row_key_bytes == 16'd0 || row_key_bytes > 16'd64)) begin
      $error("map %0d has keys of %0d bytes", handle[15:0], row_key_bytes);
    end
    if (engine_start && (row_base[2:0] != 3'd0 || row_stride[2:0] != 3'd0)) begin
      $error("entries of map %0d are at no multiple of 8", handle[15:0]);
    end
  end
`endif
endmodule
