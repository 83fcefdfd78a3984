// SPDX-License-Identifier: Apache-2.0 OR MIT
// The hash of keys up to 64 bytes, in a part of a cycle for any size (hXDP, OSDI 2020, section 5.2:
// map access takes as long for keys of 1 as of 16 bytes). It only uses exclusive or: each bit of
// the hash is a sum of up to 22 bits of each word of the key. The rotations were found by a search:
// keys that differ in some bits of some bytes, as addresses and ports do, fall into different
// buckets as far as there are enough. Trailing zeros do not change the hash.

module key_hash (
    input  logic [511:0] key,
    output logic [31:0] hash
);
  // Two rotations for each word, 5 bits each, the first word's in the lowest bits.
  localparam logic [159:0] TURNS = {
    {5'd17, 5'd22}, {5'd18, 5'd22}, {5'd27, 5'd1}, {5'd28, 5'd15},
    {5'd28, 5'd14}, {5'd24, 5'd11}, {5'd21, 5'd11}, {5'd19, 5'd13},
    {5'd4, 5'd8}, {5'd19, 5'd14}, {5'd22, 5'd18}, {5'd20, 5'd0},
    {5'd28, 5'd9}, {5'd10, 5'd1}, {5'd30, 5'd24}, {5'd21, 5'd29}
  };
  // Rotations of the sum.
  localparam logic [31:0] SPREAD = 32'h09e0_232a;

  function automatic logic [31:0] turn(input logic [31:0] word, input logic [4:0] by);
    turn = 32'(({word, word} << by) >> 32);
  endfunction

  logic [31:0] folded;
  always_comb begin
    folded = '0;
    for (int i = 0; i < 16; i++) begin
      folded ^= turn(key[32 * i +: 32], TURNS[10 * i +: 5]);
      folded ^= turn(key[32 * i +: 32], TURNS[10 * i + 5 +: 5]);
    end
    hash = '0;
    for (int i = 0; i < 32; i++) if (SPREAD[i]) hash ^= turn(folded, 5'(i));
  end
endmodule
