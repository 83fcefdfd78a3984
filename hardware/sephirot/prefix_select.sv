// SPDX-License-Identifier: Apache-2.0 OR MIT
// Selects the longest existing prefix length of a map within a limit: the next one to be searched
// in a longest-prefix map (helpers of hXDP, OSDI 2020, section 4.1). Also computes the mask of a
// length, and whether a given length fits keys of a given size, four bytes of which are the length.

module prefix_select (
    input  logic [128:0] lengths,
    input  logic [7:0] limit,
    output logic found,
    output logic [7:0] longest,

    input  logic [7:0] length,
    // Bytes are in order, with the highest bit first: bit 7 is the first.
    output logic [127:0] mask,

    input  logic [31:0] given,
    input  logic [6:0] key_bytes,
    output logic is_too_long
);
  logic [128:0] below;
  always_comb begin
    for (int i = 0; i < 129; i++) below[i] = lengths[i] && 32'(limit) >= i;
    longest = 8'd0;
    for (int i = 0; i < 129; i++) if (below[i]) longest = 8'(i);
    for (int i = 0; i < 128; i++) mask[(i / 8) * 8 + 7 - i % 8] = 32'(length) > i;
  end
  assign found = below != '0;
  assign is_too_long = given > {22'd0, key_bytes - 7'd4, 3'd0};
endmodule
