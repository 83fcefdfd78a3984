// SPDX-License-Identifier: Apache-2.0 OR MIT
// Priority of the branches in a row: the first taken one decides, and annuls the later lanes (hXDP,
// OSDI 2020, section 4.2). Fetch, decode and execute have one instance each.

module control_unit #(
    parameter int LANES = 4
) (
    // Lanes that are alive, those that leave, and those for which that is unknown.
    input  logic [LANES-1:0] alive,
    input  logic [LANES-1:0] takes,
    input  logic [LANES-1:0] unknown,
    // A lane leaves and no earlier lane may; its bit; lanes up to it, or all that are alive.
    output logic             taken,
    output logic [LANES-1:0] taken_lane,
    output logic [LANES-1:0] done,
    // A lane may leave, but that is unknown, and no earlier lane leaves.
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
