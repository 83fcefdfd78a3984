// SPDX-License-Identifier: Apache-2.0 OR MIT
// Branches of a row by the priority of their lanes: the first one that is taken decides, and annuls
// what stands in the lanes behind it (hXDP, OSDI 2020, section 4.2). Fetch, decode and
// execute have one each.

module control_unit #(
    parameter int LANES = 4
) (
    // Lanes that are alive at all, those that leave, and those of which that is not known.
    input  logic [LANES-1:0] alive,
    input  logic [LANES-1:0] takes,
    input  logic [LANES-1:0] unknown,
    // A lane leaves and none before it may; its bit; lanes up to it, or all that are alive.
    output logic             taken,
    output logic [LANES-1:0] taken_lane,
    output logic [LANES-1:0] done,
    // A lane may leave of which that is not known, and none before it does.
    output logic             is_unknown
);
  logic open;
  always_comb begin
    open = 1'b1;
    taken = 1'b0;
    is_unknown = 1'b0;
    taken_lane = '0;
    done = '0;
    for (int lane = 0; lane < LANES; lane++) begin
      if (open && alive[lane]) begin
        done[lane] = 1'b1;
        if (unknown[lane]) begin
          is_unknown = 1'b1;
          open = 1'b0;
        end else if (takes[lane]) begin
          taken = 1'b1;
          taken_lane[lane] = 1'b1;
          open = 1'b0;
        end
      end
    end
  end
endmodule
