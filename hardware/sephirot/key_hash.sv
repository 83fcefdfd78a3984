// SPDX-License-Identifier: Apache-2.0 OR MIT
// The hash of keys up to 64 bytes, without multiplications and in one cycle whatever their size (hXDP,
// OSDI 2020, section 5.2.2: map access takes as long for keys of 1 as of 16 bytes). Words are turned by
// different distances and added without carry; then carries spread them over all bits, as in
// Jenkins' one-at-a-time hash. Zeros behind a key change nothing.

module key_hash (
    input  logic [511:0] key,
    output logic [31:0] hash
);
  function automatic logic [31:0] turn(input logic [31:0] word, input int unsigned by);
    turn = (word << by) | (word >> (32 - by));
  endfunction

  logic [31:0] folded, a, b, c, d;
  always_comb begin
    folded = key[31:0];
    for (int unsigned i = 1; i < 16; i++) folded ^= turn(key[32 * i +: 32], (13 * i) % 32);
  end

  assign a = folded ^ (folded >> 16);
  assign b = a + (a << 10);
  assign c = b ^ (b >> 6);
  assign d = c + (c << 3);
  assign hash = d ^ (d >> 11);
endmodule
