// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sends packets out of packet memory, from any byte on, as beats of 32 bytes. (hXDP, section 4.1.2:
// the selector emits packet, scratch memory and difference buffer, merged. Here all three are
// already one memory.)
//
// It reads a window per cycle while there is room in its output queue, so that it never has to hold
// an answer of the memory. A packet at an unaligned offset takes one more window than beats.

module emitter #(
    parameter int INFO_BITS = 139,
    parameter int DEPTH = 16
) (
    input  logic                 clk,
    input  logic                 rst,
    input  logic                 start_valid,
    output logic                 start_ready,
    input  logic [1:0]           start_slot,
    input  logic [11:0]          start_offset,
    input  logic [11:0]          start_length,
    input  logic [INFO_BITS-1:0] start_info,
    // The last window of `emit_slot` is read in this cycle.
    output logic                 finish,
    output logic                 idle,
    output logic                 emit_valid,
    output logic [1:0]           emit_slot,
    output logic [11:0]          emit_offset,
    input  logic                 emit_ready,
    input  logic [255:0]         emit_data,
    output logic                 tx_valid,
    input  logic                 tx_ready,
    output logic [255:0]         tx_data,
    output logic [5:0]           tx_bytes,
    output logic                 tx_last,
    output logic [INFO_BITS-1:0] tx_info
);
  localparam int BITS = $clog2(DEPTH);
  localparam int ENTRY = INFO_BITS + 1 + 6 + 256;

  // Reading
  logic active, first, yields, read;
  logic [2:0] shift;
  logic [11:0] left;
  logic [8:0] window;  // in words
  logic [INFO_BITS-1:0] info;
  logic [BITS:0] written, taken, used;
  logic room;
  assign emit_offset = {window, 3'd0};
  assign emit_valid = active && room;
  assign read = emit_valid && emit_ready;
  // The first window of an unaligned packet does not complete a beat.
  assign yields = shift == 3'd0 || !first;
  assign finish = read && yields && left <= 12'd32;
  assign start_ready = !active || finish;
  always_ff @(posedge clk)
    if (rst) active <= 1'b0;
    else active <= (active && !finish) || start_valid;
  always_ff @(posedge clk)
    if (start_ready) begin
      emit_slot <= start_slot;
      shift <= start_length == 12'd0 ? 3'd0 : start_offset[2:0];
      window <= start_offset[11:3];
      left <= start_length;
      info <= start_info;
      first <= 1'b1;
    end else if (read) begin
      first <= 1'b0;
      window <= window + 9'd4;
      if (yields) left <= left - 12'd32;
    end

  // The answer, a cycle later
  logic push;
  logic [2:0] answer_shift;
  logic [5:0] answer_bytes;
  logic answer_last, answered;
  logic [INFO_BITS-1:0] answer_info;
  logic [255:0] earlier, beat;
  always_ff @(posedge clk)
    if (rst) begin
      push <= 1'b0;
      answered <= 1'b0;
    end else begin
      push <= read && yields;
      answered <= read;
    end
  always_ff @(posedge clk) begin
    answer_shift <= shift;
    answer_bytes <= left < 12'd32 ? left[5:0] : 6'd32;
    answer_last <= left <= 12'd32;
    answer_info <= info;
    if (answered) earlier <= emit_data;
  end
  // Bytes of the previous window from `shift` on, then those of this one.
  assign beat = answer_shift == 3'd0 ? emit_data
                                     : 256'({emit_data, earlier} >> {answer_shift, 3'd0});

  (* ram_style = "distributed" *) logic [ENTRY-1:0] queue[0:DEPTH-1];
  always_ff @(posedge clk)
    if (push) queue[written[BITS-1:0]] <= {answer_info, answer_last, answer_bytes, beat};
  assign {tx_info, tx_last, tx_bytes, tx_data} = queue[taken[BITS-1:0]];
  assign used = written - taken;
  assign tx_valid = used != '0;
  // There is room for the pending answer and the next one.
  assign room = used < (BITS + 1)'(DEPTH - 1);
  assign idle = !active && !answered && !tx_valid;
  always_ff @(posedge clk)
    if (rst) begin
      written <= '0;
      taken <= '0;
    end else begin
      if (push) written <= written + 1'b1;
      if (tx_valid && tx_ready) taken <= taken + 1'b1;
    end
endmodule
