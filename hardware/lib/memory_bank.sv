// SPDX-License-Identifier: Apache-2.0 OR MIT
// A memory of 64-bit words with one write port with byte enables, and one clocked read port: a
// simple dual-port block RAM. A read in the same cycle as a write to the same word returns the old
// word. (hXDP, section 4.1: memories of the core.)

module memory_bank #(
    parameter int ROWS = 512,
    parameter int ROW_BITS = $clog2(ROWS)
) (
    input  logic                clk,
    input  logic                read_enable,
    input  logic [ROW_BITS-1:0] read_row,
    output logic [63:0]         read_data,
    input  logic [7:0]          write_enable,
    input  logic [ROW_BITS-1:0] write_row,
    input  logic [63:0]         write_data
);
  (* ram_style = "block" *) logic [63:0] memory[0:ROWS-1];
  always_ff @(posedge clk) begin
    for (int i = 0; i < 8; i++)
      if (write_enable[i]) memory[write_row][8*i+:8] <= write_data[8*i+:8];
    if (read_enable) read_data <= memory[read_row];
  end
endmodule
