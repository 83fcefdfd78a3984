// SPDX-License-Identifier: Apache-2.0 OR MIT
// Dispatches each packet to one of several cores. Packets of a flow, in both directions, go to the
// same core (`flow_hash` defines flows), so that they keep their order. (hXDP, OSDI 2020, section
// 4.1.1, has a queue with a replaceable policy before its one core.)
//
// Beats wait here until a packet's first three, or all of it, have arrived and its flow is known;
// the throughput is still one beat per cycle. All beats of a packet go to its core before those of
// the next one go anywhere: if that core's queue is full, packets for other cores wait behind it,
// and none is lost.

module dispatcher #(
    parameter int CORES = 4,
    parameter int DEPTH = 16
) (
    input  logic             clk,
    input  logic             rst,
    // Number of cores in use, 1 to CORES. It may change while `idle` and `hold`.
    input  logic [3:0]       cores,
    // No packet begins to leave.
    input  logic             hold,
    // No packet is leaving; and no packet is here at all.
    output logic             idle,
    output logic             empty,
    input  logic             rx_valid,
    output logic             rx_ready,
    input  logic [255:0]     rx_data,
    input  logic [5:0]       rx_bytes,
    input  logic             rx_last,
    input  logic [31:0]      rx_ifindex,
    input  logic [31:0]      rx_queue,
    // To the queues of cores: the same beat, valid for one of them
    output logic [CORES-1:0] out_valid,
    input  logic [CORES-1:0] out_ready,
    output logic [255:0]     out_data,
    output logic [5:0]       out_bytes,
    output logic             out_last,
    output logic [31:0]      out_ifindex,
    output logic [31:0]      out_queue,
    // With the first beat of a packet that leaves
    output logic             out_first
);
  localparam int BITS = $clog2(DEPTH);

  // Waiting beats. Positions have an additional bit, to distinguish full from empty.
  (* ram_style = "distributed" *) logic [326:0] beats[0:DEPTH-1];
  logic [BITS:0] beats_in, beats_out;
  logic rx_taken, out_taken;
  assign rx_ready = beats_in - beats_out != (BITS + 1)'(DEPTH);
  assign rx_taken = rx_valid && rx_ready;
  assign {out_queue, out_ifindex, out_last, out_bytes, out_data} = beats[beats_out[BITS-1:0]];
  always_ff @(posedge clk)
    if (rx_taken) beats[beats_in[BITS-1:0]] <= {rx_queue, rx_ifindex, rx_last, rx_bytes, rx_data};

  // Input of the flow hash: the earlier beats, and the current one.
  logic [1:0] beat;  // 0, 1, 2, or 3: its hash is computed already
  logic [255:0] first_beat, second_beat;
  logic [767:0] header;
  logic [6:0] header_bytes;
  logic asks, asked, answered;
  logic [15:0] hash;
  assign asks = rx_taken && (beat == 2'd2 || (beat != 2'd3 && rx_last));
  always_comb begin
    header = {rx_data, second_beat, first_beat};
    if (beat == 2'd0) header[255:0] = rx_data;
    if (beat == 2'd1) header[511:256] = rx_data;
  end
  assign header_bytes = {beat, 5'd0} + {1'b0, rx_bytes};
  always_ff @(posedge clk) begin
    if (rx_taken && beat == 2'd0) first_beat <= rx_data;
    if (rx_taken && beat == 2'd1) second_beat <= rx_data;
  end
  flow_hash flow (.clk, .header, .bytes(header_bytes), .hash);

  // Flows of packets with beats here: at most one for each beat.
  (* ram_style = "distributed" *) logic [15:0] flows[0:DEPTH-1];
  logic [BITS:0] flows_in, flows_out;
  always_ff @(posedge clk) if (answered) flows[flows_in[BITS-1:0]] <= hash;

  // The core of the next packet: multiplied, so that each bit of the hash counts, and scaled to the
  // number of cores in use. It is held until the packet's last beat has left.
  logic [15:0] spread;
  logic [3:0] next_core, kept_core, core;
  logic is_kept, begins;
  assign spread = flows[flows_out[BITS-1:0]] * 16'h9e3b;
  assign next_core = 4'((20'(spread) * 20'(cores)) >> 16);
  assign core = is_kept ? kept_core : next_core;
  assign begins = !is_kept && flows_in != flows_out && !hold;
  always_comb
    for (int c = 0; c < CORES; c++)
      out_valid[c] = core == 4'(c) && (begins || (is_kept && beats_in != beats_out));
  assign out_taken = (out_valid & out_ready) != '0;
  assign out_first = !is_kept;
  assign idle = !is_kept;
  assign empty = beats_in == beats_out;

  always_ff @(posedge clk) if (!is_kept) kept_core <= next_core;
  always_ff @(posedge clk)
    if (rst) begin
      beats_in <= '0;
      beats_out <= '0;
      flows_in <= '0;
      flows_out <= '0;
      beat <= 2'd0;
      asked <= 1'b0;
      answered <= 1'b0;
      is_kept <= 1'b0;
    end else begin
      if (rx_taken) begin
        beats_in <= beats_in + 1'b1;
        beat <= rx_last ? 2'd0 : beat == 2'd3 ? 2'd3 : beat + 2'd1;
      end
      asked <= asks;
      answered <= asked;
      if (answered) flows_in <= flows_in + 1'b1;
      if (out_taken) begin
        beats_out <= beats_out + 1'b1;
        is_kept <= !out_last;
        if (!is_kept) flows_out <= flows_out + 1'b1;
      end
    end

`ifdef VERILATOR
  always_ff @(posedge clk)
    if (!rst) begin
      if (rx_valid && (rx_bytes > 6'd32 || (!rx_last && rx_bytes != 6'd32)))
        $error("a beat of %0d bytes", rx_bytes);
      if (begins && beats_in == beats_out) $error("a flow without a packet");
    end
`endif
endmodule
