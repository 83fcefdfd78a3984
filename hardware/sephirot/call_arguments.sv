// SPDX-License-Identifier: Apache-2.0 OR MIT
// Arguments of a helper: registers 1 to 5, or the explicit arguments of the call. At most one lane
// of a row calls, so there is one instance (hXDP, OSDI 2020, sections 3.2 and 4.1.4).

module call_arguments #(
    parameter int LANES = 4
) (
    input  logic [LANES-1:0]       is_call,
    input  logic [LANES-1:0]       is_named,
    input  logic [LANES-1:0][7:0]  helpers,
    input  logic [LANES-1:0][15:0] offsets,
    input  logic [LANES-1:0][31:0] immediates,
    input  logic [4:0][63:0]       registers,
    input  logic [2:0]             frame,
    // Writes of the previous row in each lane; a result is only forwarded to the same lane.
    input  logic [LANES-1:0]       writes,
    input  logic [LANES-1:0][3:0]  destination,
    input  logic [LANES-1:0][63:0] result,

    output logic [7:0]             helper,
    output logic [4:0][63:0]       arguments
);
  logic named;
  logic [15:0] offset;
  logic [31:0] immediate;
  logic [4:0][63:0] current;

  logic [4:0] forwarded;

  // At most one lane calls: the outputs of lanes are combined by or.
  always_comb begin
    helper = 8'd0;
    named = 1'b0;
    offset = 16'd0;
    immediate = 32'd0;
    forwarded = '0;
    current = '0;
    for (int lane = 0; lane < LANES; lane++) begin
      if (is_call[lane]) begin
        helper = helper | helpers[lane];
        named = named || is_named[lane];
        offset = offset | offsets[lane];
        immediate = immediate | immediates[lane];
        for (int argument = 0; argument < 5; argument++) begin
          if (writes[lane] && destination[lane] == 4'(argument + 1)) begin
            forwarded[argument] = 1'b1;
            current[argument] = current[argument] | result[lane];
          end
        end
      end
    end
    for (int argument = 0; argument < 5; argument++) begin
      if (!forwarded[argument]) current[argument] = registers[argument];
    end

    arguments = current;
    if (named) begin
      if (offset == 16'd1) arguments[0] = {32'd0, sephirot_pkg::REGION_CONTEXT, 28'd0};
      else if (offset != 16'd0)
        arguments[0] = {32'd0, sephirot_pkg::REGION_MAP_HANDLE, 12'd0, offset - 16'd2};
      for (int argument = 1; argument < 5; argument++) begin
        // 0x80 + k is the address 4 (k + 1) bytes below the frame's end; frames have 512 bytes.
        if (immediate[argument*8 - 1])
          arguments[argument] = {32'd0, sephirot_pkg::REGION_STACK, 16'd0, frame,
                                 ~immediate[(argument - 1)*8 +: 7], 2'b00};
        else if (immediate[argument*8 - 2])
          arguments[argument] = {58'd0, immediate[(argument - 1)*8 +: 6]};
      end
    end
  end
endmodule
