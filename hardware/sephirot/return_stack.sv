// SPDX-License-Identifier: Apache-2.0 OR MIT
// Return addresses of functions, and registers 6 to 9 of their callers. hXDP (OSDI 2020) inlines
// functions; here they are called, up to seven deep.

module return_stack (
    input  logic              clk,
    input  logic              write,
    input  logic [2:0]        write_frame,
    input  logic [15:0]       write_row,
    input  logic [3:0][63:0]  write_kept,
    input  logic [2:0]        read_frame,
    output logic [15:0]       read_row,
    output logic [3:0][63:0]  read_kept
);
  logic [271:0] memory [0:7];
  always_ff @(posedge clk) begin
    if (write) memory[write_frame] <= {write_row, write_kept};
  end
  assign {read_row, read_kept} = memory[read_frame];
endmodule
