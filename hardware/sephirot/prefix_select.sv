// SPDX-License-Identifier: Apache-2.0 OR MIT
// Of the lengths of prefixes that a map has, the longest that is not longer than a limit: where a
// longest-prefix map is looked into next (helpers of hXDP, OSDI 2020, section 4.1). Also which
// bits of a key count for a length, and whether a length that is given fits keys of so many bytes,
// four of which are the length.

module prefix_select (
    input  logic [128:0] lengths,
    input  logic [7:0] limit,
    output logic found,
    output logic [7:0] longest,

    input  logic [7:0] length,
    // Bytes are in order, their highest bit first: bit 7 is the first.
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
