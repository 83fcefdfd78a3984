// SPDX-License-Identifier: Apache-2.0 OR MIT
// Buffers stores on their way to banked memories: they are bytes with enables, so no word of memory
// has to be read, modified and written. (hXDP, section 4.1.2, the difference buffer.)
//
// Stores of a row are written in the cycle in which they arrive, so the row after the next one
// reads them without waiting. Only if two of them need different rows of one bank, the later one
// waits here. A word's number also selects the memory; an entry for a bank of one memory blocks
// that bank of the others. The next stores are accepted in the cycle in which the last entry is
// written. A store is never overtaken by a store of a later lane to the same bank.
//
// A store is a word, 16 enables (bytes of that word, and of the next one) and rotated data: byte p
// goes to byte p of either word.

module difference_buffer #(
    parameter int LANES = 4,
    parameter int WORD_BITS = 11
) (
    input  logic                            clk,
    input  logic                            rst,
    // New stores: written or buffered if `take`, which must be 0 while `in_wait`.
    input  logic [LANES-1:0]                in_valid,
    input  logic [LANES-1:0][WORD_BITS-1:0] in_word,
    input  logic [LANES-1:0][15:0]          in_enable,
    input  logic [LANES-1:0][63:0]          in_data,
    input  logic                            take,
    output logic                            in_wait,
    // Nothing is written in this cycle: another core owns the memory.
    input  logic                            hold,
    // Stores to be dropped, among the new and the waiting ones
    input  logic [LANES-1:0]                forget_in,
    input  logic [LANES-1:0]                forget_pending,
    // Waiting stores, and the loads that overlap them.
    output logic [LANES-1:0]                pending_valid,
    output logic [LANES-1:0][WORD_BITS-1:0] pending_word,
    input  logic [LANES-1:0][WORD_BITS-1:0] load_word,
    input  logic [LANES-1:0]                load_two_words,
    output logic [LANES-1:0]                load_overlaps,
    // To memory, which always accepts.
    output logic                            write_busy,
    output logic [3:0][7:0]                 write_enable,
    output logic [3:0][WORD_BITS-3:0]       write_row,
    output logic [3:0][63:0]                write_data
);
  localparam int ROW_BITS = WORD_BITS - 2;

  logic [LANES-1:0][15:0] pending_enable;
  logic [LANES-1:0][63:0] pending_data;

  // Waiting stores go first; if there are none, new ones.
  logic waiting, all_go;
  logic [LANES-1:0] valid, goes, stays;
  logic [LANES-1:0][WORD_BITS-1:0] word;
  logic [LANES-1:0][15:0] enable;
  logic [LANES-1:0][63:0] data;
  assign waiting = |pending_valid;
  assign valid = waiting ? pending_valid : in_valid;
  assign word = waiting ? pending_word : in_word;
  assign enable = waiting ? pending_enable : in_enable;
  assign data = waiting ? pending_data : in_data;

  // Banks of each store. Bank 0 holds the second word of two in the next row.
  logic [LANES-1:0][3:0] low, high;
  logic [LANES-1:0][ROW_BITS-1:0] row, row0;
  always_comb
    for (int k = 0; k < LANES; k++) begin
      row[k] = word[k][WORD_BITS-1:2];
      row0[k] = row[k] + ROW_BITS'(word[k][1:0] == 2'd3);
      for (int b = 0; b < 4; b++) begin
        low[k][b] = word[k][1:0] == 2'(b) && enable[k][7:0] != 8'd0;
        high[k][b] = word[k][1:0] == 2'(b + 3) && enable[k][15:8] != 8'd0;
      end
    end

  // A store is written unless an earlier one needs another row of one of its banks, or waits and
  // shares a bank with it.
  logic [3:0] shared;
  always_comb begin
    goes = '0;
    shared = 4'd0;
    for (int k = 0; k < LANES; k++) begin
      goes[k] = valid[k];
      for (int j = 0; j < k; j++)
        if (valid[j]) begin
          shared = (low[j] | high[j]) & (low[k] | high[k]);
          if (shared != 4'd0 && !goes[j]) goes[k] = 1'b0;
          if (shared[3:1] != 3'd0 && row[j] != row[k]) goes[k] = 1'b0;
          if (shared[0] && (low[j][0] ? row[j] : row0[j]) != (low[k][0] ? row[k] : row0[k]))
            goes[k] = 1'b0;
        end
    end
    if (hold) goes = '0;
  end
  assign stays = valid & ~goes;
  assign all_go = stays == '0;
  assign in_wait = (hold || (waiting && !all_go)) && in_valid != '0;
  assign write_busy = waiting || in_valid != '0;

  always_comb begin
    write_enable = '0;
    write_row = '0;
    write_data = '0;
    for (int b = 0; b < 4; b++)
      for (int k = 0; k < LANES; k++)
        if (goes[k] && (waiting || take)) begin
          if (low[k][b]) write_row[b] = row[k];
          if (high[k][b]) write_row[b] = b == 0 ? row0[k] : row[k];
          for (int p = 0; p < 8; p++)
            if ((low[k][b] && enable[k][p]) || (high[k][b] && enable[k][8+p])) begin
              write_enable[b][p] = 1'b1;
              write_data[b][8*p+:8] = data[k][8*p+:8];
            end
        end
  end

  logic [LANES-1:0] next_valid;
  logic keep;
  assign keep = waiting && !all_go;
  always_comb
    if (waiting && (keep || !take)) next_valid = stays & ~forget_pending;
    else next_valid = take ? (waiting ? in_valid : stays) & ~forget_in : '0;
  always_ff @(posedge clk)
    if (rst) pending_valid <= '0;
    else pending_valid <= next_valid;
  always_ff @(posedge clk)
    if (!keep) begin
      pending_word <= in_word;
      pending_enable <= in_enable;
      pending_data <= in_data;
    end

  // Words that a load and a waiting store have in common: their first words are equal, or the first
  // word of one is the second of the other.
  always_comb begin
    load_overlaps = '0;
    for (int l = 0; l < LANES; l++)
      for (int k = 0; k < LANES; k++)
        if (pending_valid[k]) begin
          if (load_word[l] == pending_word[k]) load_overlaps[l] = 1'b1;
          if (pending_enable[k][15:8] != 8'd0 && load_word[l] == pending_word[k] + 1'b1)
            load_overlaps[l] = 1'b1;
          if (load_two_words[l] && load_word[l] + 1'b1 == pending_word[k])
            load_overlaps[l] = 1'b1;
        end
  end

`ifdef VERILATOR
  always_ff @(posedge clk) if (!rst && take && in_wait) $error("stores taken without room");
`endif
endmodule
