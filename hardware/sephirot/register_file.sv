// SPDX-License-Identifier: Apache-2.0 OR MIT
// Registers of the running program: each lane reads two and writes one (hXDP, OSDI 2020, sections
// 4.1.3 and 4.2). All are zero when a packet begins, except those that no program writes, which are
// not stored here: 10 is derived from the frame, 11 from the packet.

module register_file #(
    parameter int LANES = 4
) (
    input  logic                   clk,
    // Clears all registers except 1; has priority over all writes.
    input  logic                   clear,
    input  logic [2:0]             frame,
    input  logic [11:0]            packet_data,

    input  logic [LANES-1:0][3:0]  left,
    input  logic [LANES-1:0][3:0]  right,
    output logic [LANES-1:0][63:0] left_value,
    output logic [LANES-1:0][63:0] right_value,
    // Registers 0 to 5 and 6 to 9 in parallel, for calls and exchanges.
    output logic [63:0]            result,
    output logic [4:0][63:0]       arguments,
    output logic [3:0][63:0]       kept,
  
    input  logic [LANES-1:0]       write,
    input  logic [LANES-1:0][3:0]  destination,
    input  logic [LANES-1:0][63:0] value,
    // Registers 6 to 9 are restored when a function returns.
    input  logic                   restore,
    input  logic [3:0][63:0]       restored
);
  logic [15:0][63:0] registers;
  logic [15:0][63:0] next;
  logic [15:0][63:0] visible;

  always_comb begin
    visible = registers;
    visible[10] = {32'd0, sephirot_pkg::REGION_STACK, 15'd0, {1'b0, frame} + 4'd1, 9'd0};
    visible[11] = {32'd0, sephirot_pkg::REGION_PACKET, 16'd0, packet_data};
    result = registers[0];
    arguments = registers[5:1];
    kept = registers[9:6];
    for (int lane = 0; lane < LANES; lane++) begin
      left_value[lane] = visible[left[lane]];
      right_value[lane] = visible[right[lane]];
    end
  end

  // No two lanes of a row write the same register, so their results are combined by or.
  logic [15:0] written;
  always_comb begin
    written = '0;
    next = '0;
    for (int lane = 0; lane < LANES; lane++) begin
      for (int number = 0; number < 16; number++) begin
        if (write[lane] && destination[lane] == 4'(number)) begin
          written[number] = 1'b1;
          next[number] = next[number] | value[lane];
        end
      end
    end
    if (restore) begin
      written[9:6] = '1;
      next[9:6] = next[9:6] | restored;
    end
    // These are never written.
    written[11:10] = '0;
  end

  always_ff @(posedge clk) begin
    for (int number = 0; number < 16; number++) begin
      if (clear)
        registers[number] <= number == 1 ? {32'd0, sephirot_pkg::REGION_CONTEXT, 28'd0} : 64'd0;
      else if (written[number]) registers[number] <= next[number];
    end
  end
endmodule
