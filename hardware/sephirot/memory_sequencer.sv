// SPDX-License-Identifier: Apache-2.0 OR MIT
// Extends the service port of `data_memory`, whose windows of 32 bytes begin at multiples of 8, to
// accesses of up to 24 bytes at any address: the direct link of the helpers to the maps (hXDP, OSDI
// 2020, section 4.1).

module memory_sequencer (
    input  logic clk,
    // A request is held until `request_ready`.
    input  logic request_valid,
    input  logic request_write,
    input  logic [31:0] request_address,
    // Number of bytes that are written or needed, at most 24.
    input  logic [4:0] request_bytes,
    input  logic [191:0] request_data,
    output logic request_ready,
    // With `request_ready`: the memory does not exist.
    output logic request_miss,
    // Bytes from the address of the last accepted read on, valid from the next cycle on, and the
    // whole window for reads at multiples of 8.
    output logic [191:0] chunk,
    output logic [255:0] window,

    output logic service_valid,
    output logic service_write,
    output logic [31:0] service_address,
    output logic [31:0] service_enable,
    output logic [255:0] service_wdata,
    input  logic service_ready,
    input  logic [255:0] service_rdata,
    input  logic service_miss
);
  logic [2:0] shift;
  logic [31:0] wanted;
  assign wanted = 32'((64'd1 << request_bytes) - 64'd1);

  assign service_valid = request_valid;
  assign service_write = request_write;
  assign service_address = {request_address[31:3], 3'd0};
  assign service_enable = wanted << request_address[2:0];
  assign service_wdata = {64'd0, request_data} << {request_address[2:0], 3'd0};
  assign request_ready = service_ready;
  // Requesters check the packet's bounds (`packet_bounds`). A window may begin before them, which
  // is not a miss of the requested bytes.
  assign request_miss = service_miss
      && request_address[31:28] != sephirot_pkg::REGION_PACKET;

  always_ff @(posedge clk) if (request_valid && service_ready && !request_write) begin
    shift <= request_address[2:0];
  end

  // Bits beyond 24 bytes are incomplete for some shifts.
  assign chunk = 192'(service_rdata >> {shift, 3'd0});
  assign window = service_rdata;
endmodule
