// SPDX-License-Identifier: Apache-2.0 OR MIT
// Registers of the program that runs: two are read in each lane, one is written in each lane (hXDP,
// OSDI 2020, sections 4.1.3 and 4.2). All are zero when a packet begins, but for those that no
// program writes, which are no memory here: 10 follows from the frame, 11 from the packet.

module register_file #(
    parameter int LANES = 4
) (
    input  logic                   clk,
    // All zero, but for 1; goes before all writes.
    input  logic                   clear,
    input  logic [2:0]             frame,
    input  logic [11:0]            packet_data,

    input  logic [LANES-1:0][3:0]  left,
    input  logic [LANES-1:0][3:0]  right,
    output logic [LANES-1:0][63:0] left_value,
    output logic [LANES-1:0][63:0] right_value,
    // Registers 0 to 5 and 6 to 9 as they are, for calls and exchanges.
    output logic [63:0]            result,
    output logic [4:0][63:0]       arguments,
    output logic [3:0][63:0]       kept,
    output logic [63:0]            frame_end,

    input  logic [LANES-1:0]       write,
    input  logic [LANES-1:0][3:0]  destination,
    input  logic [LANES-1:0][63:0] value,
    // Registers 6 to 9 come back when a function returns.
    input  logic                   restore,
    input  logic [3:0][63:0]       restored
);
  logic [15:0][63:0] registers;
  logic [15:0][63:0] next;
  logic [15:0][63:0] visible;

  assign frame_end = {32'd0, sephirot_pkg::REGION_STACK, 15'd0, {1'b0, frame} + 4'd1, 9'd0};

  always_comb begin
    visible = registers;
    visible[10] = frame_end;
    visible[11] = {32'd0, sephirot_pkg::REGION_PACKET, 16'd0, packet_data};
    result = registers[0];
    arguments = registers[5:1];
    kept = registers[9:6];
    for (int lane = 0; lane < LANES; lane++) begin
      left_value[lane] = visible[left[lane]];
      right_value[lane] = visible[right[lane]];
    end
  end

  always_comb begin
    next = registers;
    if (restore) next[9:6] = restored;
    for (int lane = 0; lane < LANES; lane++) begin
      if (write[lane]) next[destination[lane]] = value[lane];
    end
    if (clear) begin
      next = '0;
      next[1] = {32'd0, sephirot_pkg::REGION_CONTEXT, 28'd0};
    end
    next[10] = 64'd0;
    next[11] = 64'd0;
  end

  always_ff @(posedge clk) registers <= next;
endmodule
