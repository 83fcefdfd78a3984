// SPDX-License-Identifier: Apache-2.0 OR MIT
// Records the words of the stack that were written since its frame was cleared: the others are
// zero. All frames, or one, are therefore cleared in one cycle. (hXDP, section 4.2: the state of a
// program resets itself.) The words themselves are in a banked memory, for whose stack part this
// module keeps the same rows, four banks, and the same timing.
//
// Lookups in the cycle of a clear see nothing written; writes in that cycle are lost.

module stack_words #(
    parameter int LANES = 4
) (
    input  logic                  clk,
    input  logic                  clear_all,
    input  logic                  clear_frame,
    input  logic [2:0]            frame,
    // Written words, and whether they were written before: if not, the whole word must be written.
    input  logic [3:0]            write,
    input  logic [3:0][6:0]       write_row,
    output logic [3:0]            write_again,
    // For loads: byte p of the answer, before rotation, is valid
    input  logic                  lane_enable,
    input  logic [LANES-1:0][11:0] lane_address,
    output logic [LANES-1:0][7:0] lane_written,
    // For windows, in order of banks
    input  logic                  window_enable,
    input  logic [8:0]            window_word,
    output logic [3:0]            window_written
);
  // A frame has 16 rows of each bank.
  logic [127:0] kept;
  genvar lane, bank, row;
  generate
    for (row = 0; row < 128; row++) begin : g_row
      assign kept[row] = !clear_all && !(clear_frame && int'(frame) == row / 16);
    end
    for (bank = 0; bank < 4; bank++) begin : g_bank
      logic [127:0] written, seen;
      logic [6:0] window_row;
      assign seen = written & kept;
      for (row = 0; row < 128; row++) begin : g_row
        always_ff @(posedge clk)
          written[row] <= kept[row] &&
                          (written[row] || (write[bank] && int'(write_row[bank]) == row));
      end
      assign write_again[bank] = written[write_row[bank]];
      assign window_row = window_word[8:2] + 7'(int'(window_word[1:0]) > bank);
      always_ff @(posedge clk) if (window_enable) window_written[bank] <= seen[window_row];
    end
    for (lane = 0; lane < LANES; lane++) begin : g_lane
      logic [3:0] there;
      logic [6:0] first_row, wrapped;
      logic [1:0] low;
      logic first, second;
      logic [2:0] byte_in_word;
      assign low = lane_address[lane][4:3];
      assign first_row = lane_address[lane][11:5];
      assign wrapped = first_row + 7'(low == 2'd3);
      assign there = {g_bank[3].seen[first_row], g_bank[2].seen[first_row],
                      g_bank[1].seen[first_row], g_bank[0].seen[wrapped]};
      always_ff @(posedge clk)
        if (lane_enable) begin
          byte_in_word <= lane_address[lane][2:0];
          first <= there[low];
          second <= there[low+2'd1];
        end
      always_comb
        for (int p = 0; p < 8; p++)
          lane_written[lane][p] = 3'(p) >= byte_in_word ? first : second;
    end
  endgenerate
endmodule
