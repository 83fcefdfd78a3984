// SPDX-License-Identifier: Apache-2.0 OR MIT
// Memory with a port for each lane that reads 8 bytes at any byte address, and one port that reads
// windows of 32 bytes at multiples of 8. (hXDP, section 4.1: the data bus serves all lanes at
// once.)
//
// Words of 64 bits are interleaved over four banks, word w in bank w mod 4. Any 8 bytes are in two
// adjacent banks, any window in all four, so a port reads each bank once. Each port has its own
// copy of the banks. Writes go to all copies; each bank has its own row and enables, so stores to
// different banks are written together.
//
// A lane's answer is not rotated: its byte p is the one whose address is p mod 8. A window's answer
// is in the order of banks. A module that multiplexes several memories rotates once, after the
// multiplexer.

module banked_memory #(
    parameter int ROWS = 512,
    parameter int LANES = 4,
    parameter int ROW_BITS = $clog2(ROWS)
) (
    input  logic                             clk,
    // Answers are held while it is 0.
    input  logic                             lane_enable,
    input  logic [LANES-1:0][ROW_BITS+4:0]   lane_address,
    output logic [LANES-1:0][63:0]           lane_data,
    input  logic                             window_enable,
    input  logic [ROW_BITS+1:0]              window_word,
    output logic [255:0]                     window_data,
    input  logic [3:0][7:0]                  write_enable,
    input  logic [3:0][ROW_BITS-1:0]         write_row,
    input  logic [3:0][63:0]                 write_data
);
  genvar lane, bank;
  generate
    for (lane = 0; lane < LANES; lane++) begin : g_lane
      logic [255:0] words;
      logic [63:0] low, high;
      logic [1:0] first, second;
      logic [2:0] byte_in_word;
      logic [ROW_BITS-1:0] row, wrapped;
      assign row = lane_address[lane][ROW_BITS+4:5];
      // Only bank 0 can hold the second of two words in the next row.
      assign wrapped = row + ROW_BITS'(lane_address[lane][4:3] == 2'd3);
      always_ff @(posedge clk)
        if (lane_enable) begin
          first <= lane_address[lane][4:3];
          byte_in_word <= lane_address[lane][2:0];
        end
      assign second = first + 2'd1;
      for (bank = 0; bank < 4; bank++) begin : g_bank
        memory_bank #(
            .ROWS(ROWS)
        ) copy (
            .clk,
            .read_enable(lane_enable),
            .read_row(bank == 0 ? wrapped : row),
            .read_data(words[64*bank+:64]),
            .write_enable(write_enable[bank]),
            .write_row(write_row[bank]),
            .write_data(write_data[bank])
        );
      end
      assign low = words[64*first+:64];
      assign high = words[64*second+:64];
      always_comb
        for (int p = 0; p < 8; p++)
          lane_data[lane][8*p+:8] = 3'(p) >= byte_in_word ? low[8*p+:8] : high[8*p+:8];
    end
    for (bank = 0; bank < 4; bank++) begin : g_window
      memory_bank #(
          .ROWS(ROWS)
      ) copy (
          .clk,
          .read_enable(window_enable),
          .read_row(window_word[ROW_BITS+1:2] + ROW_BITS'(int'(window_word[1:0]) > bank)),
          .read_data(window_data[64*bank+:64]),
          .write_enable(write_enable[bank]),
          .write_row(write_row[bank]),
          .write_data(write_data[bank])
      );
    end
  endgenerate
endmodule
