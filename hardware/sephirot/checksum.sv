// SPDX-License-Identifier: Apache-2.0 OR MIT
// bpf_csum_diff: difference of an Internet checksum for changed bytes (RFC 1071, RFC 1624). The
// publication counts calls of this helper to show the benefit of parallel hardware (hXDP, OSDI
// 2020, sections 4.1 and 5.2). It adds 24 bytes per cycle.

module checksum (
    input  logic clk,
    input  logic rst,
    // Held, with the arguments, until `done`.
    input  logic start,
    input  logic [4:0][63:0] arguments,
    input  logic [11:0] packet_meta,
    input  logic [11:0] packet_end,
    input  logic [12:0] packet_arrived,
    input  logic packet_complete,
    output logic done,
    output logic [63:0] result,

    output logic request_valid,
    output logic [31:0] request_address,
    output logic [4:0] request_bytes,
    input  logic request_ready,
    input  logic request_miss,
    input  logic [191:0] chunk
);
  localparam logic [63:0] EINVAL = -64'd22;
  localparam logic [63:0] EFAULT = -64'd14;
  // Reads the old bytes, then the new ones; waits for the last addition; sums of 32 bits; their
  // difference; its halves. Or bytes do not exist.
  localparam logic [2:0] READ = 3'd0, LAST = 3'd1, ADD = 3'd2, SUMS = 3'd3, DIFFERENCE = 3'd4;
  localparam logic [2:0] FINISH = 3'd5, MISSED = 3'd6;

  logic [31:0] from_bytes, to_bytes, seed;
  assign from_bytes = arguments[1][31:0];
  assign to_bytes = arguments[3][31:0];
  assign seed = arguments[4][31:0];
  logic has_from, has_to;
  assign has_from = from_bytes != 32'd0;
  assign has_to = to_bytes != 32'd0;

  logic from_waits, from_fault, to_waits, to_fault;
  packet_bounds from_bounds (
      .address(arguments[0]), .bytes(from_bytes), .packet_meta, .packet_end, .packet_arrived,
      .packet_complete,
      .must_wait(from_waits), .fault(from_fault));
  packet_bounds to_bounds (
      .address(arguments[2]), .bytes(to_bytes), .packet_meta, .packet_end, .packet_arrived,
      .packet_complete,
      .must_wait(to_waits), .fault(to_fault));

  function automatic logic [31:0] add(input logic [31:0] a, input logic [31:0] b);
    logic [32:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    add = sum[31:0] + {31'd0, sum[32]};
  endfunction

  logic [2:0] state;
  // The new bytes are being read.
  logic second, comes;
  logic [31:0] offset, left, count;
  logic pending, pending_comes, loaded, loaded_comes;
  logic [4:0] pending_bytes;
  logic [5:0][31:0] words;
  logic [47:0] from_sum, to_sum;
  logic [31:0] gone, whole;

  assign comes = second || !has_from;
  assign left = (comes ? to_bytes : from_bytes) - offset;
  assign count = left < 32'd24 ? left : 32'd24;
  assign request_valid = start && state == READ && !waits && !odd && !faulty && left != 32'd0;
  assign request_address = (comes ? arguments[2][31:0] : arguments[0][31:0]) + offset;
  assign request_bytes = count[4:0];

  logic odd, faulty, waits;
  assign waits = (has_from && from_waits) || (has_to && to_waits);
  assign odd = from_bytes[1:0] != 2'd0 || to_bytes[1:0] != 2'd0;
  assign faulty = (has_from && from_fault) || (has_to && to_fault);

  logic [47:0] sum_of_words;
  always_comb begin
    sum_of_words = '0;
    for (int i = 0; i < 6; i++) sum_of_words += {16'd0, words[i]};
  end

  // Folds the upper half into the lower one, twice.
  logic [16:0] once, twice;
  assign once = {1'b0, whole[15:0]} + {1'b0, whole[31:16]};
  assign twice = {1'b0, once[15:0]} + {16'd0, once[16]};

  always_comb begin
    done = 1'b0;
    result = {48'd0, twice[15:0]};
    if (start && state == READ && !waits) begin
      if (odd || faulty || !(has_from || has_to)) done = 1'b1;
      result = odd ? EINVAL : faulty ? EFAULT : {32'd0, seed};
    end else if (start && state == FINISH) begin
      done = 1'b1;
    end else if (start && state == MISSED) begin
      done = 1'b1;
      result = EFAULT;
    end
  end

  always_ff @(posedge clk) begin
    pending <= request_valid && request_ready;
    pending_bytes <= request_bytes;
    pending_comes <= comes;
    loaded <= pending;
    loaded_comes <= pending_comes;
    for (int i = 0; i < 6; i++) begin
      words[i] <= 32'(i) * 32'd4 < {27'd0, pending_bytes} ? chunk[32 * i +: 32] : 32'd0;
    end
    if (loaded && !loaded_comes) from_sum <= from_sum + sum_of_words;
    if (loaded && loaded_comes) to_sum <= to_sum + sum_of_words;

    case (state)
      READ: if (request_valid && request_ready) begin
        offset <= left == count ? 32'd0 : offset + count;
        if (left == count) begin
          second <= 1'b1;
          if (comes || !has_to) state <= LAST;
        end
        if (request_miss) state <= MISSED;
      end
      LAST: state <= ADD;
      ADD: state <= SUMS;
      SUMS: begin
        gone <= ~add(from_sum[31:0], {16'd0, from_sum[47:32]});
        whole <= add(to_sum[31:0], {16'd0, to_sum[47:32]});
        state <= DIFFERENCE;
      end
      DIFFERENCE: begin
        if (has_from) whole <= has_to ? add(whole, gone) : gone;
        state <= FINISH;
      end
      default: ;
    endcase

    if (rst || done || !start) begin
      state <= READ;
      second <= 1'b0;
      offset <= 32'd0;
      pending <= 1'b0;
      loaded <= 1'b0;
    end
    // Without new bytes, the seed is combined with the old ones.
    if (state == READ && !loaded && !pending && !second && offset == 32'd0) begin
      from_sum <= {16'd0, has_to ? 32'd0 : ~seed};
      to_sum <= {16'd0, seed};
    end
  end

  /* verilator lint_off UNUSEDSIGNAL */
  // Sizes and the seed are 32-bit numbers; the upper halves of the registers are ignored.
  wire unused = ^{arguments[1][63:32], arguments[3][63:32], arguments[4][63:32], twice[16]};
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
