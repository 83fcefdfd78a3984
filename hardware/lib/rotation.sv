// SPDX-License-Identifier: Apache-2.0 OR MIT
// Round-robin arbiter: selects the first requester from `turn` on, with wrap-around. The requester
// that was served has the lowest priority next time, if `turn` is set to `after`.

module rotation #(
    parameter int COUNT = 4,
    parameter int BITS = COUNT > 1 ? $clog2(COUNT) : 1
) (
    input  logic [COUNT-1:0] asks,
    input  logic [BITS-1:0]  turn,
    output logic [COUNT-1:0] first,
    output logic [BITS-1:0]  number,
    output logic [BITS-1:0]  after
);
  logic is_found;
  always_comb begin
    first = '0;
    number = '0;
    is_found = 1'b0;
    // Requesters from `turn` on, then those before it.
    for (int i = 0; i < 2 * COUNT; i++) begin
      if (!is_found && asks[i % COUNT] && (i >= COUNT || i >= int'(turn))) begin
        is_found = 1'b1;
        first[i % COUNT] = 1'b1;
        number = BITS'(i % COUNT);
      end
    end
  end
  assign after = int'(number) == COUNT - 1 ? '0 : number + 1'b1;
endmodule
