// SPDX-License-Identifier: Apache-2.0 OR MIT
// Rows of the program: a memory of 68 bits for each lane, read one row at a time (hXDP, OSDI 2020,
// section 4.1.3). Each slot has four predecoded bits, computed when it is written, so that fetch
// knows at once where control goes.

module instruction_memory #(
    parameter int LANES = 4,
    parameter int ROWS = 1024
) (
    input  logic                   clk,
    input  logic                   row_write,
    input  logic [15:0]            row_address,
    input  logic [2:0]             row_lane,
    input  logic [63:0]            row_data,

    input  logic                   read,
    input  logic [15:0]            address,
    // Valid in the cycle after `read`, until the next one.
    output logic [LANES-1:0][63:0] row,
    // Exits with a verdict, unconditional jumps, other control operations, operations that store,
    // call, or can stop the program.
    output logic [LANES-1:0]       is_exit,
    output logic [LANES-1:0]       is_goto,
    output logic [LANES-1:0]       is_control,
    output logic [LANES-1:0]       is_risk
);
  localparam int BITS = $clog2(ROWS);

  logic goto_found, to_exit, jump, bound, return_found, function_found;
  logic load, speculative, store, atomic, call, invalid;

  /* verilator lint_off PINCONNECTEMPTY */
  lane_decode decode (
      .slot(row_data), .has_second(32'(row_lane) + 1 < LANES), .second(32'd0), .row(16'd0),
      .reads_left(), .reads_right(), .left(), .right(), .immediate(), .writes(), .destination(),
      .code(), .is_wide(), .variant(), .is_long(), .swap_size(), .swap_reverse(), .is_map_value(),
      .is_load(load), .is_signed(), .is_speculative(speculative), .is_store(store),
      .is_atomic(atomic), .bytes(), .offset(),
      .is_jump(jump), .is_bound(bound), .is_goto(goto_found), .to_exit(to_exit), .verdict(),
      .target(), .to_next(), .is_return(return_found), .is_function(function_found),
      .is_call(call), .is_named(), .helper(), .is_invalid(invalid)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  wire [3:0] found = {
    invalid || (load && !speculative) || store || atomic || call,
    jump || bound || return_found || function_found,
    goto_found && !to_exit,
    goto_found && to_exit
  };

  for (genvar lane = 0; lane < LANES; lane++) begin : lanes
    logic [67:0] memory [0:ROWS-1];
    logic [67:0] answer;
    always_ff @(posedge clk) begin
      if (row_write && row_lane == 3'(lane)) memory[row_address[BITS-1:0]] <= {found, row_data};
      if (read) answer <= memory[address[BITS-1:0]];
    end
    assign row[lane] = answer[63:0];
    assign is_exit[lane] = answer[64];
    assign is_goto[lane] = answer[65];
    assign is_control[lane] = answer[66];
    assign is_risk[lane] = answer[67];
  end

  // The requester compares the upper bits of an address.
  /* verilator lint_off UNUSEDSIGNAL */
  wire [31:0] upper = {row_address, address};
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
