// SPDX-License-Identifier: Apache-2.0 OR MIT
// Moves bytes from any address to any other, 24 in two cycles, or writes zeros: values of maps,
// metadata before a packet whose start moves, bytes after its end (helpers of hXDP, OSDI 2020,
// section 4.1).

module memory_copy (
    input  logic clk,
    input  logic rst,
    // Held, with its inputs, until `done`.
    input  logic start,
    input  logic [31:0] source,
    input  logic [31:0] target,
    input  logic [31:0] bytes,
    // Write zeros; nothing is read.
    input  logic fill,
    // Starts with the last bytes, for overlapping moves to higher addresses.
    input  logic backward,
    output logic done,
    // With `done`: some of the memory does not exist.
    output logic miss,

    output logic request_valid,
    output logic request_write,
    output logic [31:0] request_address,
    output logic [4:0] request_bytes,
    output logic [191:0] request_data,
    input  logic request_ready,
    input  logic request_miss,
    input  logic [191:0] chunk
);
  localparam logic [31:0] STEP = 32'd24;

  logic busy, writing;
  // The last request was accepted; a request missed. Both are reported a cycle later, so that the
  // end of the call does not depend on addresses of the same cycle.
  logic finished, missed;
  // Bytes that are done, from either side.
  logic [31:0] moved;
  logic [31:0] left, at, count;
  assign left = bytes - (busy ? moved : 32'd0);
  assign count = left < STEP ? left : STEP;
  assign at = backward ? left - count : bytes - left;

  assign request_valid = start && left != 32'd0 && !finished;
  assign request_write = fill || writing;
  assign request_address = (request_write ? target : source) + at;
  assign request_bytes = count[4:0];
  assign request_data = fill ? '0 : chunk;

  assign miss = missed;
  assign done = start && (bytes == 32'd0 || finished);

  always_ff @(posedge clk) begin
    if (rst || done || !start) begin
      busy <= 1'b0;
      writing <= 1'b0;
      finished <= 1'b0;
      missed <= 1'b0;
      moved <= 32'd0;
    end else if (request_ready) begin
      busy <= 1'b1;
      missed <= request_miss;
      finished <= request_miss || (request_write && left == count);
      writing <= !request_write;
      if (request_write) moved <= moved + count;
    end
  end
endmodule
