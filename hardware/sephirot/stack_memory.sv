// SPDX-License-Identifier: Apache-2.0 OR MIT
// The stack's eight frames of 512 bytes, which are zero when a packet begins or a function is entered,
// from one cycle to the next. (hXDP, section 4.2: the state of a program resets itself.)
//
// Each word has a bit that says whether it was written since then: reads of words that were
// not give zeros, and the first write to a word writes zeros to its other bytes. Ports are those of
// `banked_memory`. Reads of the cycle of a clear see zeros, writes of that cycle are lost.

module stack_memory #(
    parameter int LANES = 4
) (
    input  logic                  clk,
    input  logic                  clear_all,
    input  logic                  clear_frame,
    input  logic [2:0]            frame,
    input  logic                  lane_enable,
    input  logic [LANES-1:0][11:0] lane_address,
    output logic [LANES-1:0][63:0] lane_data,
    input  logic                  window_enable,
    input  logic [8:0]            window_word,
    output logic [255:0]          window_data,
    input  logic [3:0][7:0]       write_enable,
    input  logic [3:0][6:0]       write_row,
    input  logic [3:0][63:0]      write_data
);
  // A frame has 16 rows of each bank.
  logic [3:0][7:0][15:0] written;
  logic [7:0] cleared;
  always_comb
    for (int f = 0; f < 8; f++) cleared[f] = clear_all || (clear_frame && frame == 3'(f));
  always_ff @(posedge clk)
    for (int b = 0; b < 4; b++) begin
      if (write_enable[b] != 8'd0) written[b][write_row[b][6:4]][write_row[b][3:0]] <= 1'b1;
      for (int f = 0; f < 8; f++) if (cleared[f]) written[b][f] <= 16'd0;
    end

  logic [3:0][7:0] enable;
  logic [3:0][63:0] data;
  always_comb
    for (int b = 0; b < 4; b++) begin
      enable[b] = write_enable[b];
      if (write_enable[b] != 8'd0 && !written[b][write_row[b][6:4]][write_row[b][3:0]])
        enable[b] = 8'hff;
      for (int p = 0; p < 8; p++)
        data[b][8*p+:8] = write_enable[b][p] ? write_data[b][8*p+:8] : 8'd0;
    end

  logic [LANES-1:0][63:0] lane_words;
  logic [0:0][255:0] window_words;
  banked_memory #(
      .ROW_BITS(7),
      .LANES(LANES),
      .WINDOWS(1),
      .DISTRIBUTED(1'b1)
  ) memory (
      .clk,
      .lane_enable,
      .lane_address,
      .lane_data(lane_words),
      .window_enable,
      .window_word,
      .window_data(window_words),
      .write_enable(enable),
      .write_row,
      .write_data(data)
  );

  genvar lane, bank;
  generate
    for (lane = 0; lane < LANES; lane++) begin : g_lane
      logic [8:0] word, next;
      logic first, second;
      logic [2:0] byte_in_word;
      assign word = lane_address[lane][11:3];
      assign next = word + 9'd1;
      always_ff @(posedge clk)
        if (lane_enable) begin
          byte_in_word <= lane_address[lane][2:0];
          first <= written[word[1:0]][word[8:6]][word[5:2]] && !cleared[word[8:6]];
          second <= written[next[1:0]][next[8:6]][next[5:2]] && !cleared[next[8:6]];
        end
      always_comb
        for (int p = 0; p < 8; p++)
          lane_data[lane][8*p+:8] =
              (3'(p) >= byte_in_word ? first : second) ? lane_words[lane][8*p+:8] : 8'd0;
    end
    for (bank = 0; bank < 4; bank++) begin : g_window
      logic there;
      logic [6:0] row;
      assign row = window_word[8:2] + 7'(int'(window_word[1:0]) > bank);
      always_ff @(posedge clk)
        if (window_enable) there <= written[bank][row[6:4]][row[3:0]] && !cleared[row[6:4]];
      assign window_data[64*bank+:64] = there ? window_words[0][64*bank+:64] : 64'd0;
    end
  endgenerate
endmodule
