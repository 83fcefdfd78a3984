// SPDX-License-Identifier: Apache-2.0 OR MIT
// Queues and stacks, rings of values: which place is in question, and how the ring changes. How
// many values there are is kept as entries that were used, and where the first one is as the hand.

module map_line (
    input  logic is_stack,
    input  logic do_push,
    // What leaves next is in question.
    input  logic do_next,
    input  logic is_full,
    input  logic [31:0] used,
    input  logic [19:0] hand,
    output logic is_empty,
    // The first value is another one afterwards: it left, or gave way to one that came.
    output logic advances,
    // May be behind the ring's end, and less than once around it.
    output logic [20:0] place,
    // How many there are afterwards, if there was room or a value.
    output logic [31:0] left
);
  assign is_empty = used == 32'd0;
  assign advances = do_push ? is_full : !is_stack;
  assign place = {1'b0, hand}
      + (do_next && !is_stack ? 21'd0 : used[20:0]) - (do_next && is_stack ? 21'd1 : 21'd0);
  assign left = do_push ? used + 32'd1 : used - 32'd1;
endmodule
