// SPDX-License-Identifier: Apache-2.0 OR MIT
// Single-cycle arithmetic: all operations of eBPF except multiplication and division (hXDP, OSDI
// 2020, section 4.1.3). The right operand is a register or a constant, already selected.

module alu (
    input  logic [3:0]  code,
    input  logic        is_wide,
    input  logic [1:0]  variant,
    input  logic [1:0]  swap_size,
    input  logic        swap_reverse,
    input  logic [63:0] left,
    input  logic [63:0] right,
    output logic [63:0] result
);
  wire [5:0] amount = {is_wide & right[5], right[4:0]};
  // One right shifter for both kinds of shift, with the bit that is shifted in from the left.
  wire fill = code == 4'hc && (is_wide ? left[63] : left[31]);
  wire [63:0] shifted_left = left << amount;
  wire [63:0] extended = is_wide ? left : {{32{fill}}, left[31:0]};
  wire signed [64:0] filled = {fill, extended};
  /* verilator lint_off UNUSEDSIGNAL */
  wire signed [64:0] shifted_right = filled >>> amount;
  /* verilator lint_on UNUSEDSIGNAL */
  // One adder for addition, subtraction and negation.
  wire is_difference = code == 4'h1 || code == 4'h8;
  wire [63:0] first = code == 4'h8 ? 64'd0 : left;
  wire [63:0] other = code == 4'h8 ? left : right;
  wire [63:0] sum = first + (other ^ {64{is_difference}}) + {63'd0, is_difference};

  function automatic logic [63:0] reverse(input logic [63:0] value);
    for (int i = 0; i < 8; i++) reverse[i*8 +: 8] = value[(7 - i)*8 +: 8];
  endfunction

  wire [63:0] reversed = swap_reverse ? reverse(left) : left;
  logic [63:0] swapped;
  always_comb begin
    case (swap_size)
      2'd1: swapped = {48'd0, swap_reverse ? reversed[63:48] : reversed[15:0]};
      2'd2: swapped = {32'd0, swap_reverse ? reversed[63:32] : reversed[31:0]};
      default: swapped = reversed;
    endcase
  end

  logic [63:0] moved;
  always_comb begin
    case (variant)
      2'd1: moved = {{56{right[7]}}, right[7:0]};
      2'd2: moved = {{48{right[15]}}, right[15:0]};
      2'd3: moved = {{32{right[31]}}, right[31:0]};
      default: moved = right;
    endcase
  end

  logic [63:0] value;
  always_comb begin
    case (code)
      4'h0, 4'h1, 4'h8: value = sum;
      4'h4: value = left | right;
      4'h5: value = left & right;
      4'h6: value = shifted_left;
      4'h7, 4'hc: value = shifted_right[63:0];
      4'ha: value = left ^ right;
      4'hd: value = swapped;
      default: value = moved;
    endcase
    // A byte swap has its own size: 64 bits even with a 32-bit opcode.
    result = is_wide || code == 4'hd ? value : {32'd0, value[31:0]};
  end
endmodule
