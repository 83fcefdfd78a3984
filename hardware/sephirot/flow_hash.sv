// SPDX-License-Identifier: Apache-2.0 OR MIT
// Hashes the flow of a packet, from its first 96 bytes, such that both directions of a flow have
// the same hash. (The publication, hXDP, leaves the destination of packets to the selector's
// policy, OSDI 2020, section 4.1.1; it has one core.)
//
// A flow is defined by these fields, as far as they exist:
// - TCP, UDP and SCTP over IPv4, with any options, or over IPv6 without extension headers:
//   addresses, ports, protocol;
// - fragments of IPv4 (all of a packet's, including the first one), and packets too short for
//   ports: addresses;
// - other protocols, and IPv6 with extension headers: addresses and protocol;
// - all of these after at most one VLAN tag (0x8100 or 0x88a8);
// - packets that are not IP, or truncated: the two MAC addresses; less than 14 bytes: nothing.
//
// Each end, an address with a port, is hashed separately, and the flow's hash is made of their sum.
// There are two pipeline stages, so that neither is long.

module flow_hash (
    input  logic         clk,
    // The first bytes, byte 0 in bits 7 to 0, and their number.
    /* verilator lint_off UNUSEDSIGNAL */
    input  logic [767:0] header,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [6:0]   bytes,
    // Valid in the second cycle after the input.
    output logic [15:0]  hash
);
  function automatic logic [15:0] big_endian(input logic [15:0] pair);
    big_endian = {pair[7:0], pair[15:8]};
  endfunction

  // Offset of the network header: 14 bytes, or 18.
  logic [15:0] outer_type, type_is;
  logic has_tag;
  logic [623:0] network;
  logic [6:0] network_bytes;
  assign outer_type = big_endian(header[8*12+:16]);
  assign has_tag = (outer_type == 16'h8100 || outer_type == 16'h88a8) && bytes >= 7'd18;
  assign type_is = has_tag ? big_endian(header[8*16+:16]) : outer_type;
  assign network = has_tag ? header[767:144] : 624'(header >> 112);
  assign network_bytes = bytes < 7'd14 ? 7'd0 : bytes - (has_tag ? 7'd18 : 7'd14);

  logic is_v4, is_v6, is_fragment, has_ports;
  logic [7:0] protocol;
  logic [6:0] ports_at;
  logic [31:0] ports;
  assign is_v4 = type_is == 16'h0800 && network[7:4] == 4'd4 && network[3:0] >= 4'd5 &&
                 network_bytes >= 7'd20;
  assign is_v6 = type_is == 16'h86dd && network[7:4] == 4'd6 && network_bytes >= 7'd40;
  // More fragments follow, or it is not the first one.
  assign is_fragment = is_v4 && (network[8*6+5] || network[8*6+:5] != 5'd0 ||
                                 network[8*7+:8] != 8'd0);
  assign protocol = is_v4 ? network[8*9+:8] : network[8*6+:8];
  assign ports_at = is_v4 ? {1'b0, network[3:0], 2'd0} : 7'd40;
  assign has_ports = (is_v4 || is_v6) && !is_fragment && network_bytes >= ports_at + 7'd4 &&
                     (protocol == 8'd6 || protocol == 8'd17 || protocol == 8'd132);
  assign ports = 32'(network >> {ports_at, 3'd0});

  // The two ends, and their common fields.
  logic [143:0] source, destination;
  logic [7:0] common;
  always_ff @(posedge clk) begin
    source <= '0;
    destination <= '0;
    common <= '0;
    if (is_v4 || is_v6) begin
      source[127:0] <= is_v4 ? {96'd0, network[8*12+:32]} : network[8*8+:128];
      destination[127:0] <= is_v4 ? {96'd0, network[8*16+:32]} : network[8*24+:128];
      if (has_ports) begin
        source[143:128] <= ports[15:0];
        destination[143:128] <= ports[31:16];
      end
      if (!is_fragment && (has_ports ||
                           !(protocol == 8'd6 || protocol == 8'd17 || protocol == 8'd132)))
        common <= protocol;
    end else if (bytes >= 7'd14) begin
      destination[47:0] <= header[47:0];
      source[47:0] <= header[95:48];
    end
  end

  logic [31:0] source_hash, destination_hash, sum;
  key_hash of_source (.key(512'(source)), .hash(source_hash));
  key_hash of_destination (.key(512'(destination)), .hash(destination_hash));
  assign sum = source_hash + destination_hash + {16'd0, common, 8'd0};
  always_ff @(posedge clk) hash <= sum[31:16] ^ sum[15:0];
endmodule
