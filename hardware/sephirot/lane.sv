// SPDX-License-Identifier: Apache-2.0 OR MIT
// One lane from decode to execute: its operands with the previous row's result forwarded, its
// memory address, its comparison, and its result (hXDP, OSDI 2020, sections 4.1.3 and 4.2). The
// core decides whether a row advances.

module lane (
    input  logic        clk,

    // Decode: the slot, and the registers that it names.
    input  logic [63:0] slot,
    input  logic        has_second,
    input  logic [31:0] second,
    input  logic [15:0] row,
    output logic        reads_left,
    output logic        reads_right,
    output logic [3:0]  left,
    output logic [3:0]  right,
    input  logic [63:0] left_value,
    input  logic [63:0] right_value,
    output logic        is_load,
    output logic        is_call,
    output logic        is_named,
      output logic [7:0]  helper,
    output logic [15:0] offset,
    output logic [31:0] immediate,
    output logic        is_risk,
    output logic [63:0] address,
    output logic [3:0]  bytes,
    // Control as known in decode: leaves for certain, or may leave and decode cannot tell.
    output logic        takes,
    output logic        unknown,
    // An exit of the program, with a verdict or register 0.
    output logic        exits,
    output logic        to_next,
    output logic [15:0] target,
    output logic [31:0] verdict,
    // The operation needs a value that is loaded now for its address: it must wait a cycle.
    output logic        late,

    // A called function is running: exits with register 0 return.
    input  logic        in_function,
    input  logic [11:0] packet_data,
    input  logic [11:0] packet_end,
    input  logic [12:0] packet_arrived,
    input  logic        packet_complete,

    // The row in decode advances to execute.
    input  logic        take,
    // Execute holds a row, and this lane's operation is executed (not annulled).
    input  logic        x_valid,
    input  logic        x_done,

    // Execute.
    output logic        x_writes,
    output logic [3:0]  x_destination,
    output logic [63:0] x_result,
    output logic        x_is_load,
    output logic        x_is_speculative,
    output logic        x_is_store,
    output logic        x_is_atomic,
    output logic        x_is_long,
    output logic        x_is_map_value,
    output logic        x_is_call,
    output logic        x_is_invalid,
    output logic        x_is_function,
    output logic        x_is_return,
    output logic        x_to_exit,
    output logic        x_to_next,
    output logic [15:0] x_target,
    output logic [31:0] x_verdict,
    output logic        x_takes,
    output logic        x_unknown,
    output logic [63:0] x_left,
    output logic [63:0] x_right,
    output logic [63:0] x_address,
    output logic [3:0]  x_bytes,
    output logic [3:0]  x_code,
    output logic        x_is_wide,
    output logic        x_is_signed_long,
    output logic [15:0] x_map,
    input  logic [31:0] map_base,
    input  logic [63:0] load_data,
    // The result of a multi-cycle operation, or a helper.
    input  logic        x_has_slow,
    input  logic [63:0] x_slow,
    input  logic [63:0] call_result
);
  // Decode.
  logic writes, is_wide, is_long, swap_reverse, is_map_value, is_signed, is_speculative, is_store;
  logic is_atomic, is_jump, is_bound, is_goto, is_return, is_function, is_invalid;
  logic [1:0] variant, swap_size;
  logic [3:0] destination, code;
  logic [63:0] constant;
  logic [31:0] named_verdict;
  logic to_exit;

  lane_decode decode (
      .slot(slot), .has_second(has_second), .second(second), .row(row),
      .reads_left(reads_left), .reads_right(reads_right), .left(left), .right(right),
      .immediate(constant), .writes(writes), .destination(destination),
      .code(code), .is_wide(is_wide), .variant(variant), .is_long(is_long),
      .swap_size(swap_size), .swap_reverse(swap_reverse), .is_map_value(is_map_value),
      .is_load(is_load), .is_signed(is_signed), .is_speculative(is_speculative),
      .is_store(is_store), .is_atomic(is_atomic), .bytes(bytes), .offset(offset),
      .is_jump(is_jump), .is_bound(is_bound), .is_goto(is_goto), .to_exit(to_exit),
      .verdict(named_verdict), .target(target), .to_next(to_next), .is_return(is_return),
      .is_function(is_function), .is_call(is_call), .is_named(is_named), .helper(helper),
      .is_invalid(is_invalid)
  );

  assign immediate = slot[63:32];
  assign is_risk = is_invalid || (is_load && !is_speculative) || is_store || is_atomic || is_call;

  wire forward_left = x_valid && x_writes && reads_left && x_destination == left;
  wire forward_right = x_valid && x_writes && reads_right && x_destination == right;
  wire [63:0] operand_left = forward_left && x_done ? x_result : left_value;
  wire [63:0] operand_right =
      !reads_right ? constant : forward_right && x_done ? x_result : right_value;
  // Results of loads and helpers arrive too late in their cycle to be part of an address.
  assign late = (is_load ? forward_right : (is_store || is_atomic) && forward_left)
      && (x_is_load || x_is_call);
  wire forward_base = (is_load ? forward_right : forward_left) && x_done;
  wire [63:0] base = forward_base ? x_early : is_load ? right_value : left_value;
  assign address = base + {{48{offset[15]}}, offset};

  // Comparisons that need no forwarding.
  logic holds, undecided;
  condition early (
      .is_jump(is_jump), .code(code), .is_wide(is_wide), .is_bound(is_bound),
      .from_left(reads_left), .left(left_value), .right(reads_right ? right_value : constant),
      .packet_data(packet_data), .packet_end(packet_end), .packet_arrived(packet_arrived),
      .packet_complete(packet_complete), .holds(holds), .undecided(undecided)
  );
  assign takes = holds || is_goto || is_return;
  assign exits = to_exit || is_return;
  assign verdict = is_return ? operand_left[31:0] : named_verdict;
  assign unknown = (is_return && in_function) || is_function || undecided
      || ((is_jump || is_bound) && (forward_left || forward_right));

  // Execute.
  logic x_is_jump, x_is_bound, x_is_goto, x_from_left, x_swap_reverse, x_is_signed;
  logic [1:0] x_variant, x_swap_size;
  always_ff @(posedge clk) begin
    if (take) begin
      x_writes <= writes;
      x_destination <= destination;
      x_is_load <= is_load;
      x_is_speculative <= is_speculative;
      x_is_signed <= is_signed;
      x_is_store <= is_store;
      x_is_atomic <= is_atomic;
      x_is_long <= is_long;
      x_is_map_value <= is_map_value;
      x_is_call <= is_call;
      x_is_invalid <= is_invalid;
      x_is_function <= is_function;
      x_is_return <= is_return;
      x_to_exit <= to_exit;
      x_to_next <= to_next;
      x_target <= target;
      x_verdict <= named_verdict;
      x_is_jump <= is_jump;
      x_is_bound <= is_bound;
      x_is_goto <= is_goto;
      x_from_left <= reads_left;
      x_left <= operand_left;
      x_right <= operand_right;
      x_address <= address;
      x_bytes <= bytes;
      x_code <= is_atomic ? slot[39:36] : code;
      // The width of an atomic operation, 32 or 64 bits, follows from its size.
      x_is_wide <= is_atomic ? bytes[3] : is_wide;
      x_variant <= variant;
      x_swap_size <= swap_size;
      x_swap_reverse <= swap_reverse;
      x_map <= offset;
    end
  end
  assign x_is_signed_long = x_variant[0];

  logic x_holds;
  condition late_condition (
      .is_jump(x_is_jump), .code(x_code), .is_wide(x_is_wide), .is_bound(x_is_bound),
      .from_left(x_from_left), .left(x_left), .right(x_right),
      .packet_data(packet_data), .packet_end(packet_end), .packet_arrived(packet_arrived),
      .packet_complete(packet_complete), .holds(x_holds), .undecided(x_unknown)
  );
  assign x_takes = x_holds || x_is_goto || x_is_return || x_is_function;

  logic [63:0] computed;
  alu arithmetic (
      .code(x_code), .is_wide(x_is_wide), .variant(x_variant), .swap_size(x_swap_size),
      .swap_reverse(x_swap_reverse), .left(x_left), .right(x_right), .result(computed)
  );

  logic [63:0] loaded;
  always_comb begin
    loaded = load_data;
    if (x_is_signed) begin
      case (x_bytes)
        4'd1: loaded[63:8] = {56{load_data[7]}};
        4'd2: loaded[63:16] = {48{load_data[15]}};
        default: loaded[63:32] = {32{load_data[31]}};
      endcase
    end
  end
  wire [63:0] map_value = {32'd0, sephirot_pkg::REGION_MAPS, 28'd0} + {32'd0, map_base}
      + {32'd0, x_right[31:0]};

  wire [63:0] x_early = x_has_slow ? x_slow : x_is_map_value ? map_value : computed;
  always_comb begin
    x_result = x_early;
    if (!x_has_slow && x_is_load) x_result = loaded;
    if (!x_has_slow && x_is_call) x_result = call_result;
  end
endmodule
