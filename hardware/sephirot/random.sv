// SPDX-License-Identifier: Apache-2.0 OR MIT
// bpf_get_prandom_u32: 32 random bits, by SplitMix64 (Steele, Lea and Flood 2014), as in the
// interpreter, so that runs can be compared (a helper of hXDP, OSDI 2020, section 4.1). The next
// number is computed in advance: a 64-bit product is three 32-bit ones.

module random (
    input  logic clk,
    input  logic rst,
    // Sets the state; the next number is the one after it.
    input  logic random_write,
    input  logic [63:0] random_wdata,
    output logic [63:0] random_state,
    output logic ready,
    output logic [31:0] number,
    // The number was used.
    input  logic take
);
  localparam logic [63:0] GOLDEN = 64'h9e3779b97f4a7c15;
  localparam logic [63:0] FIRST = 64'hbf58476d1ce4e5b9;
  localparam logic [63:0] SECOND = 64'h94d049bb133111eb;

  // Steps 0 and 6 mix; 1 to 5 and 7 to 11 multiply; in 12 the number is ready.
  logic [3:0] step;
  logic [63:0] ahead, value, product, sum, times;
  logic [31:0] a, b;
  assign ahead = random_state + GOLDEN;
  assign times = step < 4'd6 ? FIRST : SECOND;
  assign ready = step == 4'd12;
  assign number = value[63:32] ^ {31'd0, value[63]};

  always_ff @(posedge clk) begin
    product <= 64'(a) * 64'(b);
    case (step)
      4'd0: begin
        value <= ahead ^ (ahead >> 30);
        step <= 4'd1;
      end
      4'd1, 4'd7: begin
        {a, b} <= {value[31:0], times[31:0]};
        step <= step + 4'd1;
      end
      4'd2, 4'd8: begin
        {a, b} <= {value[31:0], times[63:32]};
        step <= step + 4'd1;
      end
      4'd3, 4'd9: begin
        {a, b} <= {value[63:32], times[31:0]};
        sum <= product;
        step <= step + 4'd1;
      end
      4'd4, 4'd10: begin
        sum[63:32] <= sum[63:32] + product[31:0];
        step <= step + 4'd1;
      end
      4'd5: begin
        value <= {sum[63:32] + product[31:0], sum[31:0]};
        step <= 4'd6;
      end
      4'd6: begin
        value <= value ^ (value >> 27);
        step <= 4'd7;
      end
      4'd11: begin
        value <= {sum[63:32] + product[31:0], sum[31:0]};
        step <= 4'd12;
      end
      default: if (take) begin
        random_state <= ahead;
        step <= 4'd0;
      end
    endcase
    if (rst || random_write) begin
      random_state <= rst ? 64'd1 : random_wdata;
      step <= 4'd0;
    end
  end
endmodule
