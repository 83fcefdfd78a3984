// SPDX-License-Identifier: Apache-2.0 OR MIT
// Condition of a jump of one lane: a comparison of eBPF, or a check that the packet is too short
// (hXDP, OSDI 2020, sections 3.1 and 4.2). Decode and execute have one instance for each lane.

module condition (
    input  logic        is_jump,
    input  logic [3:0]  code,
    input  logic        is_wide,
    input  logic        is_bound,
    // A length check counts from the left operand, otherwise from the packet's first byte.
    input  logic        from_left,
    input  logic [63:0] left,
    input  logic [63:0] right,
    // Extent of the packet.
    input  logic [11:0] packet_data,
    input  logic [11:0] packet_end,
    input  logic [12:0] packet_arrived,
    input  logic        packet_complete,

    output logic        holds,
    // The outcome is unknown until more of the packet has arrived.
    output logic        undecided
);
  wire sign_left = is_wide ? left[63] : left[31];
  wire sign_right = is_wide ? right[63] : right[31];
  wire [63:0] a = is_wide ? left : {32'd0, left[31:0]};
  wire [63:0] b = is_wide ? right : {32'd0, right[31:0]};
  wire equal = a == b;
  wire below = a < b;
  wire below_signed = sign_left != sign_right ? sign_left : below;

  wire [63:0] start = {32'd0, sephirot_pkg::REGION_PACKET, 16'd0, packet_data};
  wire [63:0] needed = (from_left ? left : start) + right;
  wire [12:0] there = packet_complete ? {1'b0, packet_end} : packet_arrived;
  wire is_beyond = needed > {32'd0, sephirot_pkg::REGION_PACKET, 15'd0, there};

  logic compared;
  always_comb begin
    case (code)
      4'h1: compared = equal;
      4'h2: compared = !below && !equal;
      4'h3: compared = !below;
      4'h4: compared = |(a & b);
      4'h5: compared = !equal;
      4'h6: compared = !below_signed && !equal;
      4'h7: compared = !below_signed;
      4'ha: compared = below;
      4'hb: compared = below || equal;
      4'hc: compared = below_signed;
      default: compared = below_signed || equal;
    endcase
  end

  assign holds = (is_jump && compared) || (is_bound && is_beyond);
  assign undecided = is_bound && is_beyond && !packet_complete;
endmodule
