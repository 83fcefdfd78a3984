// SPDX-License-Identifier: Apache-2.0 OR MIT
// Where functions return to, and registers 6 to 9 of their callers: eBPF's calls of functions,
// which hXDP (OSDI 2020) inlines; here they are calls, seven deep.

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
