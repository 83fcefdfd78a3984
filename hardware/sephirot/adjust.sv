// SPDX-License-Identifier: Apache-2.0 OR MIT
// bpf_xdp_adjust_head, bpf_xdp_adjust_meta, bpf_xdp_adjust_tail: new bounds of the current packet,
// within the kernel's limits. The selector's scratch memory (hXDP, OSDI 2020, section 4.1) holds
// the bytes before the packet. Metadata moves with the head, and bytes after the old end are
// zeroed.

module adjust (
    input  logic clk,
    input  logic rst,
    // Held until `done`; the packet is complete. Selects one of the three, and the distance.
    input  logic start,
    input  logic is_head,
    input  logic is_meta,
    input  logic signed [31:0] by,
    input  logic packet_begin,
    input  logic [11:0] packet_data,
    input  logic [11:0] packet_end,
    input  logic [11:0] packet_meta,
    output logic done,
    output logic [63:0] result,

    output logic set_valid,
    output logic [11:0] set_data,
    output logic [11:0] set_end,
    output logic [11:0] set_meta,

    output logic copy_start,
    output logic [31:0] copy_source,
    output logic [31:0] copy_target,
    output logic [31:0] copy_bytes,
    output logic copy_fill,
    output logic copy_backward,
    input  logic copy_done
);
  // Bytes that the kernel reserves for itself at the start of a page (`xdp_frame`).
  localparam logic signed [33:0] FRAME = 34'sd40;
  localparam logic signed [33:0] ETHERNET = 34'sd14;
  localparam logic signed [33:0] METADATA_MAX = 34'sd252;
  localparam logic [63:0] EINVAL = -64'd22;
  localparam logic [63:0] EACCES = -64'd13;
  localparam logic [11:0] MOST = 12'(sephirot_pkg::PACKET_END);

  logic signed [33:0] data, last, meta, length, wide;
  assign data = signed'({22'd0, packet_data});
  assign last = signed'({22'd0, packet_end});
  assign meta = signed'({22'd0, packet_meta});
  assign length = data - meta;
  assign wide = 34'(by);

  // A packet that arrived with more than the maximum length may return to its length.
  logic [11:0] limit, first_limit, limit_now;
  logic limit_known;
  assign first_limit = packet_end > MOST ? packet_end : MOST;
  assign limit_now = limit_known ? limit : first_limit;
  always_ff @(posedge clk) begin
    if (rst || packet_begin) limit_known <= 1'b0;
    else if (start && !limit_known) begin
      limit_known <= 1'b1;
      limit <= first_limit;
    end
  end

  logic signed [33:0] new_data, new_meta, new_end, new_length;
  logic bad, moving;
  always_comb begin
    new_data = data;
    new_meta = meta;
    new_end = last;
    bad = 1'b0;
    result = EINVAL;
    if (is_head) begin
      new_data = data + wide;
      new_meta = meta + wide;
    end else if (is_meta) begin
      new_meta = meta + wide;
    end else begin
      new_end = last + wide;
    end
    new_length = data - new_meta;
    if (is_head) begin
      bad = new_meta < FRAME || new_data + ETHERNET > last;
    end else if (is_meta) begin
      bad = new_meta < FRAME || new_meta > data;
      if (!bad && (new_length[1:0] != 2'd0 || new_length > METADATA_MAX)) begin
        bad = 1'b1;
        result = EACCES;
      end
    end else begin
      bad = new_end > signed'({22'd0, limit_now}) || new_end < data + ETHERNET;
    end
    // Once bytes move, all checks have passed, and the bounds may already be the new ones.
    if (!bad || moving) result = 64'd0;
  end

  // If bytes are written where only the new bounds allow it, the bounds are set first; if bytes are
  // read where only the old bounds allow it, last. Bounds change in between, so the target is
  // latched.
  logic moves, first;
  logic [31:0] source, target, bytes;
  logic fill, backward;
  assign moves = is_head ? length != 34'sd0 && by != 0 : !is_meta && by > 0;
  assign first = !(is_head && by > 0);

  assign set_valid = start && (moving ? backward && copy_done : !bad && (!moves || first));
  assign set_data = new_data[11:0];
  assign set_end = new_end[11:0];
  assign set_meta = new_meta[11:0];

  assign copy_start = moving;
  assign copy_source = source;
  assign copy_target = target;
  assign copy_bytes = bytes;
  assign copy_fill = fill;
  assign copy_backward = backward;
  assign done = start && (moving ? copy_done : bad || !moves);

  always_ff @(posedge clk) begin
    if (rst || !start || done) begin
      moving <= 1'b0;
    end else if (!moving) begin
      moving <= 1'b1;
      source <= {sephirot_pkg::REGION_PACKET, 16'd0, packet_meta};
      target <= {sephirot_pkg::REGION_PACKET, 16'd0, is_head ? new_meta[11:0] : packet_end};
      bytes <= is_head ? length[31:0] : {{20{1'b0}}, 12'(new_end - last)};
      fill <= !is_head;
      backward <= is_head && by > 0;
    end
  end
endmodule
