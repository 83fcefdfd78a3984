// SPDX-License-Identifier: Apache-2.0 OR MIT
// Queues and stacks, as rings of values: selects the place, and the change of the ring. The number
// of values is stored as the number of used entries, and the first one's index as the hand.

module map_line (
    input  logic is_stack,
    input  logic do_push,
    // The operation concerns the next value to be removed.
    input  logic do_next,
    input  logic is_full,
    input  logic [31:0] used,
    input  logic [19:0] hand,
    output logic is_empty,
    // The first value changes: it was removed, or replaced by a new one.
    output logic advances,
    // May be beyond the ring's end, by less than one round.
    output logic [20:0] place,
    // Number of values afterwards, if there was room or a value.
    output logic [31:0] left
);
  assign is_empty = used == 32'd0;
  assign advances = do_push ? is_full : !is_stack;
  assign place = {1'b0, hand}
      + (do_next && !is_stack ? 21'd0 : used[20:0]) - (do_next && is_stack ? 21'd1 : 21'd0);
  assign left = do_push ? used + 32'd1 : used - 32'd1;
endmodule
