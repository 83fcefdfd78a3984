// SPDX-License-Identifier: Apache-2.0 OR MIT
// The significant part of a key: its bytes, or the length of a prefix and that many bits. Computes
// the address of its bucket, and compares it with an entry's key.

module map_key (
    // The bytes after the key are zero.
    input  logic [511:0] key,
    input  logic [6:0] bytes,
    // The key is a prefix: the number of its bits that count, and a mask of these.
    input  logic is_prefix,
    input  logic [7:0] length,
    input  logic [127:0] mask,
    // Bytes of an entry's key: the first 32 for `same`, those after them for `same_rest`.
    input  logic [255:0] window,
    output logic [511:0] key_mask,
    output logic [31:0] hashed,
    output logic same,
    output logic same_rest
);
  always_comb for (int i = 0; i < 64; i++) key_mask[8 * i +: 8] = {8{7'(i) < bytes}};

  logic [511:0] wanted, kept;
  assign wanted = is_prefix ? {352'd0, key[159:32] & mask, 24'd0, length} : key;
  assign kept = is_prefix ? key_mask & {352'd0, mask, {32{1'b1}}} : key_mask;
  assign same = ((window ^ wanted[255:0]) & kept[255:0]) == '0;
  assign same_rest = ((window ^ wanted[511:256]) & kept[511:256]) == '0;

  key_hash hasher (.key(wanted), .hash(hashed));
endmodule
