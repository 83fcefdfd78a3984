// SPDX-License-Identifier: Apache-2.0 OR MIT
// Checks that bytes which a helper reads or writes lie between metadata and end of the current
// packet, if they are packet bytes (hXDP, OSDI 2020, section 3.1: hardware checks bounds). The
// memory checks other regions.

module packet_bounds (
    input  logic [63:0] address,
    input  logic [31:0] bytes,
    input  logic [11:0] packet_meta,
    input  logic [11:0] packet_end,
    input  logic [12:0] packet_arrived,
    input  logic packet_complete,
    // The bytes have not arrived yet, and still may.
    output logic must_wait,
    // The bytes do not exist.
    output logic fault
);
  logic is_packet, is_memory;
  logic [32:0] behind;
  assign is_memory = address[63:32] == 32'd0
      && (is_packet || address[31:28] == sephirot_pkg::REGION_STACK
          || address[31:28] == sephirot_pkg::REGION_MAPS);
  assign is_packet = address[31:28] == sephirot_pkg::REGION_PACKET;
  assign behind = {5'd0, address[27:0]} + {1'b0, bytes};
  assign must_wait = is_memory && is_packet && !packet_complete
      && behind > {20'd0, packet_arrived};
  assign fault = !is_memory || (is_packet && (address[27:0] < {16'd0, packet_meta}
      || (packet_complete && behind > {21'd0, packet_end})));
endmodule
