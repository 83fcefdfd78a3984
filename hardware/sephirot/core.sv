// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sephirot: the processor core, LANES operations a row and a row a cycle, in four stages (hXDP,
// OSDI 2020, sections 4.1.3 and 4.2). docs/internals/vliw.md defines the semantics of rows,
// docs/internals/sephirot.md the signals.
//
// A packet is done when all effects of its rows are complete: an exit in fetch waits until no
// earlier row can leave, store, call or stop. Rows of two packets therefore never overlap, and no
// state has to be kept per packet.

module core #(
    // Operations in a row: 1 to 8.
    parameter int LANES = 4,
    // Rows of instruction memory.
    parameter int ROWS = 1024
) (
    input  logic                   clk,
    input  logic                   rst,

    // From the host: slots of rows, first row and number of rows of a program, whether packets may
    // begin, cycles after which a program is stopped (0: never).
    input  logic                   row_write,
    input  logic [15:0]            row_address,
    input  logic [2:0]             row_lane,
    input  logic [63:0]            row_data,
    input  logic [15:0]            entry,
    input  logic [15:0]            rows,
    input  logic                   running,
    input  logic [31:0]            watchdog,

    // Packets: `core` and `packet_selector`.
    input  logic                   packet_ready,
    output logic                   packet_begin,
    output logic                   packet_done,
    output logic [31:0]            packet_verdict,
    output logic [2:0]             packet_stop,
    input  logic [1:0]             packet_slot,
    input  logic [11:0]            packet_data,
    input  logic [11:0]            packet_end,
    // Not used here: data_memory handles the bytes before the packet.
    input  logic [11:0]            packet_meta,
    input  logic [12:0]            packet_arrived,
    input  logic                   packet_complete,

    // Loads: addressed in decode, answered in execute.
    output logic [LANES-1:0]       load_valid,
    output logic [LANES-1:0][63:0] load_address,
    output logic [LANES-1:0][3:0]  load_bytes,
    output logic                   load_hold,
    input  logic                   load_wait,
    input  logic [LANES-1:0][63:0] load_data,
    input  logic [LANES-1:0]       load_miss,
    // Stores: from execute, for the packet in `store_slot`.
    output logic [LANES-1:0]       store_valid,
    output logic [LANES-1:0][63:0] store_address,
    output logic [LANES-1:0][3:0]  store_bytes,
    output logic [LANES-1:0][63:0] store_data,
    output logic [1:0]             store_slot,
    input  logic                   store_wait,
    input  logic [LANES-1:0]       store_miss,
    // Atomic operations: one at a time.
    output logic                   atomic_valid,
    output logic [63:0]            atomic_address,
    output logic                   atomic_wide,
    output logic [7:0]             atomic_operation,
    output logic [63:0]            atomic_operand,
    output logic [63:0]            atomic_expected,
    input  logic                   atomic_done,
    input  logic                   atomic_miss,
    input  logic [63:0]            atomic_old,
    // The stack: the current frame, and what is cleared.
    output logic [2:0]             frame,
    output logic                   frame_clear,
    output logic                   stack_clear,

    // Helpers.
    output logic                   call_valid,
    output logic [7:0]             call_helper,
    output logic [4:0][63:0]       call_arguments,
    input  logic                   call_done,
    input  logic [63:0]            call_result,
    input  logic                   call_unknown,
    input  logic                   call_jump,
    input  logic [15:0]            call_row,

    // Address in map memory of the first value of map `map_base_index`, in the same cycle.
    output logic [15:0]            map_base_index,
    input  logic [31:0]            map_base,

    // For counters: a row leaves execute; decode or execute waits for memory, for a helper, for
    // long arithmetic or atomic operations; a jump is taken in decode or execute (not to the next
    // row); a packet is being processed.
    output logic                   event_row,
    output logic                   event_wait_memory,
    output logic                   event_wait_helper,
    output logic                   event_wait_long,
    output logic                   event_jump,
    output logic                   busy
);
  // ---------------------------------------------------------------- fetch
  logic active;
  logic fetch, f_joined, f_valid, f_go;
  logic [15:0] fetch_row, f_row, f_target;
  logic [LANES-1:0][63:0] f_slots;
  logic [LANES-1:0] f_is_exit, f_is_goto, f_is_control, f_is_risk, f_alive, f_last;
  logic f_has_control, f_leaves, f_risk, f_beyond, f_ends;
  logic [31:0] f_verdict;

  instruction_memory #(.LANES(LANES), .ROWS(ROWS)) instructions (
      .clk(clk), .row_write(row_write), .row_address(row_address), .row_lane(row_lane),
      .row_data(row_data), .read(fetch), .address(fetch_row), .row(f_slots),
      .is_exit(f_is_exit), .is_goto(f_is_goto), .is_control(f_is_control), .is_risk(f_is_risk)
  );
  // A control operation that fetch cannot evaluate hides all later lanes.
  control_unit #(.LANES(LANES)) fetch_control (
      .alive({LANES{1'b1}}), .takes(f_is_exit | f_is_goto), .unknown(f_is_control),
      .taken(f_leaves), .taken_lane(f_last), .done(f_alive), .is_unknown(f_has_control)
  );
  assign f_beyond = f_row >= rows || {16'd0, f_row} >= 32'(ROWS);
  assign f_risk = |(f_alive & f_is_risk);
  wire f_exits = f_leaves && |(f_last & f_is_exit);
  wire f_jumps = f_leaves && |(f_last & f_is_goto);
  // Ends of the program that decode never sees.
  assign f_ends = f_beyond || (f_exits && !f_risk);
  logic [31:0] f_sum;
  always_comb begin
    f_verdict = 32'd0;
    f_sum = 32'd0;
    for (int lane = 0; lane < LANES; lane++) begin
      if (f_last[lane]) begin
        f_verdict = f_slots[lane][63:32];
        f_sum = f_slots[lane][1] ? f_slots[lane][63:32]
            : {{16{f_slots[lane][31]}}, f_slots[lane][31:16]};
      end
    end
    f_sum = f_sum + {16'd0, f_row} + 32'd1;
    f_target = f_sum[31:16] == 16'd0 ? f_sum[15:0] : 16'hffff;
  end

  // ---------------------------------------------------------------- decode
  logic d_valid, d_go, d_joined, d_jumped, d_conflict;
  logic [15:0] d_row;
  logic [LANES-1:0][63:0] d_slots;
  logic [LANES-1:0] d_limit;
  logic [LANES-1:0] d_reads_left, d_reads_right, d_is_load, d_is_call, d_is_named;
  logic [LANES-1:0][3:0] d_left, d_right;
  logic [LANES-1:0][63:0] left_value, right_value;
  logic [LANES-1:0][7:0] d_helper;
  logic [LANES-1:0][15:0] d_offset, d_target;
  logic [LANES-1:0][31:0] d_immediate, d_verdict;
  logic [LANES-1:0] d_is_risk, d_takes, d_unknown, d_may_exit, d_to_next, d_late, d_done, d_last;
  logic d_taken, d_is_unknown;

  // ---------------------------------------------------------------- execute
  logic x_valid, x_finish, x_leaves, x_decided, x_taken, x_is_unknown;
  logic [15:0] x_row;
  logic [LANES-1:0] x_limit, x_done, x_last;
  logic [LANES-1:0] x_writes, x_is_load, x_is_speculative, x_is_store, x_is_atomic, x_is_long;
  logic [LANES-1:0] x_is_map_value, x_is_call, x_is_invalid, x_is_function, x_is_return;
  logic [LANES-1:0] x_to_exit, x_to_next, x_takes, x_unknown, x_is_wide, x_is_signed_long;
  logic [LANES-1:0][3:0] x_destination, x_code;
  logic [LANES-1:0][63:0] x_result, x_left, x_right;
  logic [LANES-1:0][15:0] x_target, x_map;
  logic [LANES-1:0][31:0] x_verdict;
  logic [LANES-1:0] slow_done, slow_missed;
  logic [LANES-1:0][63:0] slow_result;

  for (genvar l = 0; l < LANES; l++) begin : lanes
    localparam bit HAS_SECOND = l + 1 < LANES;
    wire [31:0] second = HAS_SECOND ? d_slots[(l + 1) % LANES][63:32] : 32'd0;
    lane unit (
        .clk(clk), .slot(d_slots[l]), .has_second(HAS_SECOND), .second(second), .row(d_row),
        .reads_left(d_reads_left[l]), .reads_right(d_reads_right[l]), .left(d_left[l]),
        .right(d_right[l]), .left_value(left_value[l]), .right_value(right_value[l]),
        .is_load(d_is_load[l]), .is_call(d_is_call[l]), .is_named(d_is_named[l]),
        .helper(d_helper[l]), .offset(d_offset[l]),
        .immediate(d_immediate[l]), .is_risk(d_is_risk[l]), .address(load_address[l]),
        .bytes(load_bytes[l]), .takes(d_takes[l]), .unknown(d_unknown[l]),
        .exits(d_may_exit[l]), .to_next(d_to_next[l]), .target(d_target[l]),
        .verdict(d_verdict[l]), .late(d_late[l]),
        .in_function(frame != 3'd0), .packet_data(packet_data), .packet_end(packet_end),
        .packet_arrived(packet_arrived), .packet_complete(packet_complete), .take(d_go),
        .x_valid(x_valid), .x_done(x_done[l]),
        .x_writes(x_writes[l]), .x_destination(x_destination[l]), .x_result(x_result[l]),
        .x_is_load(x_is_load[l]), .x_is_speculative(x_is_speculative[l]),
        .x_is_store(x_is_store[l]), .x_is_atomic(x_is_atomic[l]), .x_is_long(x_is_long[l]),
        .x_is_map_value(x_is_map_value[l]), .x_is_call(x_is_call[l]),
        .x_is_invalid(x_is_invalid[l]), .x_is_function(x_is_function[l]),
        .x_is_return(x_is_return[l]), .x_to_exit(x_to_exit[l]), .x_to_next(x_to_next[l]),
        .x_target(x_target[l]), .x_verdict(x_verdict[l]), .x_takes(x_takes[l]),
        .x_unknown(x_unknown[l]), .x_left(x_left[l]), .x_right(x_right[l]),
        .x_address(store_address[l]), .x_bytes(store_bytes[l]), .x_code(x_code[l]),
        .x_is_wide(x_is_wide[l]), .x_is_signed_long(x_is_signed_long[l]), .x_map(x_map[l]),
        .map_base(map_base), .load_data(load_data[l]), .x_has_slow(slow_done[l]),
        .x_slow(slow_result[l]), .call_result(call_result)
    );
  end
  assign store_data = x_right;
  assign store_slot = packet_slot;

  // Registers, calls' arguments and frames.
  logic clear_registers, restore;
  logic [63:0] result_register;
  logic [4:0][63:0] argument_registers, d_arguments;
  logic [3:0][63:0] kept, restored;
  logic [7:0] d_call_helper;
  logic [15:0] return_row;
  wire [LANES-1:0] x_written = x_writes & x_done & {LANES{x_valid}};

  register_file #(.LANES(LANES)) file (
      .clk(clk), .clear(clear_registers), .frame(frame), .packet_data(packet_data),
      .left(d_left), .right(d_right), .left_value(left_value), .right_value(right_value),
      .result(result_register), .arguments(argument_registers), .kept(kept),
      .write(x_written & {LANES{x_finish}}),
      .destination(x_destination), .value(x_result), .restore(restore), .restored(restored)
  );
  call_arguments #(.LANES(LANES)) given (
      .is_call(d_is_call & d_limit), .is_named(d_is_named), .helpers(d_helper),
      .offsets(d_offset), .immediates(d_immediate), .registers(argument_registers),
      .frame(frame), .writes(x_written), .destination(x_destination), .result(x_result),
      .helper(d_call_helper), .arguments(d_arguments)
  );

  // ------------------------------------------------------- decode: control, and waits
  control_unit #(.LANES(LANES)) decode_control (
      .alive(d_limit), .takes(d_takes), .unknown(d_unknown), .taken(d_taken),
      .taken_lane(d_last), .done(d_done), .is_unknown(d_is_unknown)
  );
  // Registers that the row in execute writes in another lane. Consecutive rows have no such pair;
  // rows after a jump that was followed early may have one.
  always_comb begin
    d_conflict = |(d_late & d_limit);
    for (int lane = 0; lane < LANES; lane++) begin
      for (int other = 0; other < LANES; other++) begin
        if (lane != other && d_limit[lane] && x_writes[other]) begin
          if (d_reads_left[lane] && d_left[lane] == x_destination[other]) d_conflict = 1'b1;
          if (d_reads_right[lane] && d_right[lane] == x_destination[other]) d_conflict = 1'b1;
          if (d_joined && d_is_call[lane] && x_destination[other] >= 4'd1
              && x_destination[other] <= 4'd5)
            d_conflict = 1'b1;
        end
      end
    end
    if (d_joined && |(d_limit & (d_is_load | d_is_call))
        && |(x_is_store | x_is_atomic)) d_conflict = 1'b1;
    if (!x_valid) d_conflict = 1'b0;
  end
  assign load_valid = d_is_load & d_limit & {LANES{d_valid && !d_conflict}};
  assign load_hold = x_valid && !x_finish;
  wire x_free = !x_valid || x_finish;
  // Nothing in execute can keep the next row from being reached.
  wire x_clear = !x_valid || (x_finish && !x_leaves);
  wire d_waits = |load_valid && load_wait;
  assign d_go = d_valid && x_clear && !d_conflict && !d_waits;

  logic [15:0] d_next;
  logic [31:0] d_taken_verdict;
  always_comb begin
    d_next = 16'd0;
    d_taken_verdict = 32'd0;
    for (int lane = 0; lane < LANES; lane++) begin
      if (d_last[lane]) begin
        d_next = d_target[lane];
        d_taken_verdict = d_verdict[lane];
      end
    end
  end
  wire d_exits = |(d_last & d_may_exit);
  wire d_skips = |(d_last & d_to_next);
  wire d_knows = !d_is_unknown && !d_conflict && !(d_taken && d_exits);
  // A jump that fetch has followed is complete.
  wire d_redirects = d_go && d_knows && d_taken && !d_skips && !d_jumped;
  wire d_at_risk = |(d_done & d_is_risk);
  wire d_ends = d_valid && !d_is_unknown && !d_conflict && d_taken && d_exits && !d_at_risk
      && x_clear;
  wire d_clear = !d_valid || (d_knows && !d_at_risk && (!d_taken || d_skips || d_jumped));
  wire f_ends_now = f_valid && f_ends && d_clear && x_clear;
  assign f_go = f_valid && !f_ends && (!d_valid || d_go);

  // ---------------------------------------------------------------- execute: effects
  control_unit #(.LANES(LANES)) execute_control (
      .alive(x_limit), .takes(x_takes & {LANES{!x_decided}}),
      .unknown(x_unknown & {LANES{!x_decided}}), .taken(x_taken), .taken_lane(x_last),
      .done(x_done), .is_unknown(x_is_unknown)
  );
  wire x_ready = x_valid && !x_is_unknown;

  // Stops of the program, and of later lanes. A store that misses is detected when it is tried.
  logic called;
  logic [LANES-1:0] stored, store_missed, stores, left_over, store_stops, stops_before;
  logic [LANES-1:0] behind_stop, stops, behind, wrong, slow, pending;
  logic [LANES-1:0] working, first_map_value;
  logic store_accepted, call_now, call_ends, slow_last;

  function automatic logic [LANES-1:0] after(input logic [LANES-1:0] set);
    after = '0;
    for (int lane = 1; lane < LANES; lane++) after[lane] = after[lane - 1] | set[lane - 1];
  endfunction
  function automatic logic [LANES-1:0] lowest(input logic [LANES-1:0] set);
    lowest = set & ~after(set);
  endfunction

  wire too_deep = x_ready && x_taken && |(x_last & x_is_function)
      && frame == 3'(sephirot_pkg::FRAMES - 1);
  assign wrong = x_done & x_is_load & ~x_is_speculative & load_miss;
  assign stops_before = wrong | (x_done & (x_is_invalid | slow_missed));
  assign behind_stop = after(stops_before);
  // A store after an atomic operation waits for it, so each lane knows that the earlier ones
  // succeeded.
  assign stores = x_done & x_is_store & ~stored & ~behind_stop;
  assign store_valid = stores & {LANES{x_ready}}
      & ~after(x_done & x_is_atomic & ~slow_done & ~slow_missed);
  assign store_stops = store_missed | (store_valid & store_miss);
  assign left_over = stores & ~after(store_stops);
  assign store_accepted = left_over == '0 || ((left_over & ~store_valid) == '0 && !store_wait);
  assign stops = stops_before | store_stops;
  assign behind = after(stops);

  // Operations that are done one lane at a time: multiplication, division, atomic operations, and
  // constants with addresses of map values after the first one in a row.
  assign first_map_value = lowest(x_is_map_value & x_done);
  assign slow = x_is_long | x_is_atomic | (x_is_map_value & ~first_map_value);
  assign pending = slow & x_done & ~slow_done & ~slow_missed & ~behind;
  assign working = lowest(pending);
  wire works = x_ready && pending != '0
      && ((left_over & ~working & ~after(working)) == '0 || !store_wait);
  logic [63:0] work_left, work_right;
  logic [3:0] work_code;
  logic work_wide, work_signed, work_writes;
  always_comb begin
    work_left = 64'd0;
    work_right = 64'd0;
    work_code = 4'd0;
    work_wide = 1'b0;
    work_signed = 1'b0;
    work_writes = 1'b0;
    atomic_address = 64'd0;
    map_base_index = 16'd0;
    for (int lane = 0; lane < LANES; lane++) begin
      if (working[lane]) begin
        work_left = x_left[lane];
        work_right = x_right[lane];
        work_code = x_code[lane];
        work_wide = x_is_wide[lane];
        work_signed = x_is_signed_long[lane];
        work_writes = x_writes[lane];
        atomic_address = store_address[lane];
      end
    end
    for (int lane = 0; lane < LANES; lane++) begin
      if (first_map_value[lane]) map_base_index = x_map[lane];
    end
    for (int lane = 0; lane < LANES; lane++) begin
      if (working[lane] && x_is_map_value[lane]) map_base_index = x_map[lane];
    end
  end
  logic long_done;
  logic [63:0] long_result;
  wire long_valid = works && |(working & x_is_long);
  long_arithmetic long_unit (
      .clk(clk), .rst(rst), .valid(long_valid), .code(work_code), .is_wide(work_wide),
      .is_signed(work_signed), .left(work_left), .right(work_right), .done(long_done),
      .result(long_result)
  );
  assign atomic_valid = works && |(working & x_is_atomic);
  assign atomic_wide = work_wide;
  assign atomic_operation = {work_code, 3'd0, work_writes};
  assign atomic_operand = work_right;
  wire atomic_ends = atomic_valid && atomic_done;
  wire map_ends = works && |(working & x_is_map_value);
  wire work_ends = (long_valid && long_done) || atomic_ends || map_ends;
  // The last atomic operation is not waited for if its old value is unused.
  assign slow_last = atomic_ends && !atomic_miss && !work_writes && working == pending;
  wire slow_over = pending == '0 || slow_last;

  // Helpers: after all other operations of the row. Those that move the packet delay the next row
  // by a cycle, those that may write memory only delay a row that loads.
  wire [LANES-1:0] x_calls = lowest(x_is_call & x_done & ~behind);
  wire calls = x_calls != '0;
  assign call_valid = x_ready && calls && !called && store_accepted && pending == '0;
  assign call_now = call_valid && call_done;
  logic call_is_quick;
  always_comb begin
    case (call_helper)
      8'd1, 8'd5, 8'd7, 8'd8, 8'd12, 8'd23, 8'd28, 8'd51: call_is_quick = 1'b1;
      8'd44, 8'd54, 8'd65: call_is_quick = 1'b0;
      default: call_is_quick = !d_valid || (d_is_load & d_limit) == '0;
    endcase
  end
  assign call_ends = !calls || called
      || (call_now && (call_is_quick || call_unknown || call_jump));
  assign x_finish = x_ready && store_accepted && slow_over && call_ends;

  // ---------------------------------------------------------------- execute: control
  wire jumps_far = call_now && call_jump && !call_unknown;
  wire no_helper = call_now && call_unknown;
  wire x_stops = |stops || no_helper || (too_deep && !jumps_far);
  logic [2:0] x_reason;
  always_comb begin
    x_reason = sephirot_pkg::STOP_DEPTH;
    for (int lane = LANES - 1; lane >= 0; lane--) begin
      if (stops[lane])
        x_reason = x_is_invalid[lane] ? sephirot_pkg::STOP_INSTRUCTION : sephirot_pkg::STOP_MEMORY;
      if (no_helper && x_calls[lane]) x_reason = sephirot_pkg::STOP_HELPER;
    end
  end

  logic [15:0] x_taken_target;
  logic [31:0] x_taken_verdict;
  always_comb begin
    x_taken_target = 16'd0;
    x_taken_verdict = 32'd0;
    for (int lane = 0; lane < LANES; lane++) begin
      if (x_last[lane]) begin
        x_taken_target = x_target[lane];
        x_taken_verdict = x_is_return[lane] ? x_left[lane][31:0] : x_verdict[lane];
      end
    end
  end
  wire x_returns = x_taken && |(x_last & x_is_return);
  wire x_calls_function = x_taken && |(x_last & x_is_function);
  wire x_exits = x_taken && (|(x_last & x_to_exit & ~x_is_return & ~x_is_function)
      || (x_returns && frame == 3'd0));
  wire x_skips = |(x_last & x_to_next & ~x_is_return & ~x_is_function);
  wire x_ends = x_finish && !jumps_far && (x_stops || x_exits);
  wire x_redirects = x_finish && !x_ends && (jumps_far || (x_taken && !x_skips));
  assign x_leaves = x_ends || x_redirects;
  wire enters = x_redirects && !jumps_far && x_calls_function;
  wire leaves = x_redirects && !jumps_far && x_returns;
  wire [15:0] x_next = jumps_far ? call_row : x_returns ? return_row : x_taken_target;

  // ---------------------------------------------------------------- packets
  logic [31:0] cycles;
  wire expired = watchdog != 32'd0 && cycles >= watchdog;
  // Operations that other units have begun are completed.
  wire can_stop = !(call_valid || atomic_valid) || x_finish;
  wire ends = x_ends || d_ends || f_ends_now;
  assign packet_done = active && (ends || (expired && can_stop));
  always_comb begin
    packet_verdict = sephirot_pkg::XDP_ABORTED;
    packet_stop = sephirot_pkg::STOP_NONE;
    if (x_ends) begin
      if (x_stops) packet_stop = x_reason;
      else packet_verdict = x_taken_verdict;
    end else if (d_ends) packet_verdict = d_taken_verdict;
    else if (f_ends_now) begin
      if (f_beyond) packet_stop = sephirot_pkg::STOP_ROW;
      else packet_verdict = f_verdict;
    end else packet_stop = sephirot_pkg::STOP_WATCHDOG;
  end
  assign packet_begin = running && packet_ready && !rst && (!active || packet_done);
  assign busy = active;
  assign clear_registers = rst || packet_begin || (x_redirects && jumps_far);

  always_comb begin
    fetch = 1'b1;
    fetch_row = entry;
    if (packet_begin) fetch_row = entry;
    else if (packet_done) fetch = 1'b0;
    else if (x_redirects) fetch_row = x_next;
    else if (d_redirects) fetch_row = d_next;
    else if (f_go) fetch_row = f_jumps ? f_target : f_row + 16'd1;
    else fetch = 1'b0;
  end

  always_ff @(posedge clk) begin
    if (fetch) begin
      f_row <= fetch_row;
      f_joined <= !packet_begin && !x_redirects && (d_redirects || f_jumps);
    end
    if (f_go) begin
      d_slots <= f_slots;
      d_row <= f_row;
      d_limit <= f_leaves ? f_alive : {LANES{1'b1}};
      d_joined <= f_joined;
      d_jumped <= f_jumps;
    end
    if (d_go) begin
      x_row <= d_row;
      x_limit <= d_knows ? d_done : d_limit;
      x_decided <= d_knows;
      call_helper <= d_call_helper;
      call_arguments <= d_arguments;
      atomic_expected <= result_register;
      for (int lane = 0; lane < LANES; lane++) begin
        if (x_written[lane] && x_destination[lane] == 4'd0) atomic_expected <= x_result[lane];
      end
    end

    active <= packet_begin || (active && !packet_done);
    f_valid <= fetch || (f_valid && !packet_done);
    if (packet_done || x_redirects) d_valid <= 1'b0;
    else if (d_redirects) d_valid <= 1'b0;
    else if (f_go) d_valid <= 1'b1;
    else if (d_go) d_valid <= 1'b0;
    if (packet_done || x_redirects) x_valid <= 1'b0;
    else if (d_go) x_valid <= 1'b1;
    else if (x_finish) x_valid <= 1'b0;

    // Parts of multi-cycle operations that a row has completed.
    if (x_finish || packet_done || !x_valid) begin
      stored <= '0;
      store_missed <= '0;
      called <= 1'b0;
      slow_done <= '0;
      slow_missed <= '0;
    end else begin
      if (store_valid != '0 && !store_wait) begin
        stored <= stored | store_valid;
        store_missed <= store_missed | (store_valid & store_miss);
      end
      if (work_ends) begin
        if (atomic_ends && atomic_miss) slow_missed <= slow_missed | working;
        else slow_done <= slow_done | working;
      end
      if (call_now) begin
        called <= 1'b1;
        slow_done <= slow_done | x_calls;
      end
    end
    for (int lane = 0; lane < LANES; lane++) begin
      if (work_ends && working[lane])
        slow_result[lane] <= |(working & x_is_long) ? long_result
            : |(working & x_is_atomic) ? atomic_old : x_result[lane];
      if (call_now && x_calls[lane]) slow_result[lane] <= call_result;
    end

    cycles <= packet_begin ? 32'd0 : cycles + 32'd1;

    // Frames: the registers to be saved are read a cycle after the call, when its row has written.
    stack_clear <= packet_begin || (x_redirects && jumps_far);
    frame_clear <= enters && !packet_done;
    restore <= leaves && !packet_done;
    if (packet_begin || packet_done || (x_redirects && jumps_far)) frame <= 3'd0;
    else if (enters) frame <= frame + 3'd1;
    else if (leaves) frame <= frame - 3'd1;
    return_to <= x_row + 16'd1;

    if (rst) begin
      active <= 1'b0;
      f_valid <= 1'b0;
      d_valid <= 1'b0;
      x_valid <= 1'b0;
      frame <= 3'd0;
      stack_clear <= 1'b0;
      frame_clear <= 1'b0;
      restore <= 1'b0;
    end
  end

  // The caller's entry has the caller's number; it is read in the cycle in which the frame number
  // is still that of the function, and again in the next one.
  logic [15:0] return_to;
  wire [2:0] caller = restore ? frame : frame - 3'd1;
  return_stack returns (
      .clk(clk), .write(frame_clear), .write_frame(frame - 3'd1), .write_row(return_to),
      .write_kept(kept), .read_frame(caller), .read_row(return_row), .read_kept(restored)
  );

  // ---------------------------------------------------------------- counters
  // Rows that end the program before execute are counted too, in a cycle without another count.
  logic [2:0] uncounted;
  wire [2:0] rows_done = {2'd0, x_finish}
      + (x_ends || !packet_done ? 3'd0
         : d_ends ? 3'd1 : f_ends_now ? {2'd0, d_valid} + {2'd0, !f_beyond} : 3'd0);
  assign event_row = rows_done != 3'd0 || uncounted != 3'd0;
  always_ff @(posedge clk)
    uncounted <= rst ? 3'd0 : uncounted + rows_done - {2'd0, event_row};
  assign event_wait_memory = (d_valid && x_free && d_waits)
      || (x_valid && (x_is_unknown || (|store_valid && store_wait)));
  assign event_wait_helper = call_valid && !x_finish;
  assign event_wait_long = works && !x_finish;
  assign event_jump = !packet_done && (x_redirects || d_redirects);

  // ---------------------------------------------------------------- observation
  // The row in each stage, and what happens to it in this cycle: a simulator reads these signals to
  // attribute cycles. They have no other reader, so no hardware is made of them.
  wire [47:0] stage_rows  /* verilator public_flat_rd */ = {x_row, d_row, f_row};
  wire [17:0] stage_events  /* verilator public_flat_rd */ = {
      f_go, f_beyond, f_ends_now, d_ends, x_ends, x_redirects, d_redirects,
      event_wait_long, event_wait_helper, event_wait_memory, d_conflict, d_waits,
      d_go, x_finish, x_valid, d_valid, f_valid, active};

  /* verilator lint_off UNUSEDSIGNAL */
  wire unused = &{1'b0, packet_meta, f_has_control};
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
