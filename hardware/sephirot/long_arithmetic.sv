// SPDX-License-Identifier: Apache-2.0 OR MIT
// Multiplication in registered steps, which map to DSP slices, and division one bit per cycle, for
// all lanes together (hXDP, OSDI 2020, section 4.1.3). Division by zero gives 0, and its remainder
// is the dividend; the least number divided by -1 is itself.

module long_arithmetic (
    input  logic        clk,
    input  logic        rst,
    // Held with all operands until `done`; deasserting it cancels the operation.
    input  logic        valid,
    // Bits 7 to 4 of eBPF's opcode: 2 multiplies, 3 divides, 9 is the remainder.
    input  logic [3:0]  code,
    input  logic        is_wide,
    input  logic        is_signed,
    input  logic [63:0] left,
    input  logic [63:0] right,
    output logic        done,
    output logic [63:0] result
);
  // Operands as unsigned numbers.
  wire sign_left = is_signed && (is_wide ? left[63] : left[31]);
  wire sign_right = is_signed && (is_wide ? right[63] : right[31]);
  wire [63:0] low_left = is_wide ? left : {{32{sign_left}}, left[31:0]};
  wire [63:0] low_right = is_wide ? right : {{32{sign_right}}, right[31:0]};
  wire [63:0] size_left = sign_left ? -low_left : low_left;
  wire [63:0] size_right = sign_right ? -low_right : low_right;
  wire is_product = code == 4'h2;

  logic [6:0] step;
  logic [63:0] a, b, quotient, rest;
  logic [63:0] low;
  logic [31:0] high, middle;

  // The next bit of the quotient.
  wire [64:0] shifted = {rest, quotient[63]};
  wire [64:0] difference = shifted - {1'b0, b};

  // The result, with its sign.
  wire is_zero = b == 64'd0;
  wire [63:0] signed_quotient = is_zero ? 64'd0 : sign_left != sign_right ? -quotient : quotient;
  wire [63:0] signed_rest = sign_left ? -rest : rest;
  wire [63:0] product = low + {high + middle, 32'd0};
  wire [63:0] found = is_product ? product : code == 4'h3 ? signed_quotient : signed_rest;
  wire [6:0] steps = is_product ? 7'd2 : is_wide ? 7'd65 : 7'd33;

  assign done = valid && step == steps + 7'd1;

  always_ff @(posedge clk) begin
    if (rst || !valid || done) step <= 7'd0;
    else step <= step + 7'd1;

    // Products: operands, four partial products, the sum.
    if (step == 7'd0) begin
      a <= low_left;
      b <= is_product ? low_right : size_right;
      quotient <= is_wide ? size_left : {size_left[31:0], 32'd0};
      rest <= 64'd0;
    end else if (!is_product && step < steps) begin
      quotient <= {quotient[62:0], !difference[64]};
      rest <= difference[64] ? shifted[63:0] : difference[63:0];
    end
    low <= a[31:0] * b[31:0];
    high <= a[63:32] * b[31:0];
    middle <= a[31:0] * b[63:32];
    result <= is_wide ? found : {32'd0, found[31:0]};
  end
endmodule
