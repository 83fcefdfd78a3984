// SPDX-License-Identifier: Apache-2.0 OR MIT
// Atomic operations in memory, one at a time: read two words, compute, write. There are no other
// writes in between, since `busy` blocks the service port, and the core waits. (hXDP omits these
// operations; they are those of eBPF's instruction set.)

module atomic_unit (
    input  logic         clk,
    input  logic         rst,
    input  logic         atomic_valid,
    input  logic [2:0]   atomic_byte,      // low bits of the address
    input  logic         atomic_wide,
    input  logic [7:4]   atomic_operation, // the lower bits carry no further information
    input  logic [63:0]  atomic_operand,
    input  logic [63:0]  atomic_expected,
    input  logic         atomic_outside,   // no memory there, or none for atomic operations
    output logic         atomic_done,
    output logic         atomic_miss,
    output logic [63:0]  atomic_old,
    // Memory window
    output logic         busy,
    output logic         window_valid,
    output logic         window_write,
    output logic [31:0]  window_enable,
    output logic [255:0] window_wdata,
    input  logic         window_ready,
    input  logic [127:0] window_rdata
);
  typedef enum logic [1:0] {
    READ,
    TURN,
    WRITE
  } state_t;
  state_t state;

  logic there;
  logic [63:0] mixed, turned, old, computed, result;
  assign there = atomic_valid && !atomic_outside;
  assign busy = there;
  assign window_valid = there && state != TURN;
  assign window_write = state == WRITE;
  assign atomic_miss = atomic_valid && atomic_outside;
  assign atomic_done = atomic_miss || (there && state == WRITE && window_ready);

  always_ff @(posedge clk)
    if (rst) state <= READ;
    else
      case (state)
        READ: if (there && window_ready) state <= TURN;
        TURN: state <= WRITE;
        default: if (window_ready) state <= READ;
      endcase

  // Byte p of either word has address p mod 8; rotation puts the first one first.
  always_comb begin
    for (int p = 0; p < 8; p++)
      mixed[8*p+:8] = 3'(p) >= atomic_byte ? window_rdata[8*p+:8] : window_rdata[64+8*p+:8];
    turned = atomic_byte[0] ? {mixed[7:0], mixed[63:8]} : mixed;
    if (atomic_byte[1]) turned = {turned[15:0], turned[63:16]};
    if (atomic_byte[2]) turned = {turned[31:0], turned[63:32]};
  end
  always_ff @(posedge clk)
    if (state == TURN) old <= atomic_wide ? turned : {32'd0, turned[31:0]};
  assign atomic_old = atomic_outside ? 64'd0 : old;

  logic equal;
  assign equal = old[31:0] == atomic_expected[31:0] &&
                 (!atomic_wide || old[63:32] == atomic_expected[63:32]);
  always_comb begin
    computed = old + atomic_operand;
    case (atomic_operation[7:4])
      4'h4: computed = old | atomic_operand;
      4'h5: computed = old & atomic_operand;
      4'ha: computed = old ^ atomic_operand;
      4'he: computed = atomic_operand;
      4'hf: computed = equal ? atomic_operand : old;
      default: ;
    endcase
    result = atomic_byte[0] ? {computed[55:0], computed[63:56]} : computed;
    if (atomic_byte[1]) result = {result[47:0], result[63:48]};
    if (atomic_byte[2]) result = {result[31:0], result[63:32]};
    window_wdata = {4{result}};
    window_enable = {16'd0, 16'(atomic_wide ? 16'h00ff : 16'h000f) << atomic_byte};
  end
endmodule
