// SPDX-License-Identifier: Apache-2.0 OR MIT
// Decodes the slot of one lane: registers, constants, operation (hXDP, OSDI 2020, sections 3.2 and
// 4.1.3; the table of opcodes is in docs/internals/vliw.md). It is combinational: the instruction
// memory uses it for the bits that fetch needs, decode for the rest.

module lane_decode (
    input  logic [63:0] slot,
    // The upper half of a constant of two lanes.
    input  logic        has_second,
    input  logic [31:0] second,
    // The row that the slot is in.
    input  logic [15:0] row,

    output logic        reads_left,
    output logic        reads_right,
    output logic [3:0]  left,
    output logic [3:0]  right,
    // The right operand, if it is not a register.
    output logic [63:0] immediate,
    output logic        writes,
    output logic [3:0]  destination,

    // Arithmetic: the upper four bits of eBPF's opcode, 64 or 32 bits, and the variant: signed
    // division, or the bits from which a move extends (1: 8, 2: 16, 3: 32).
    output logic [3:0]  code,
    output logic        is_wide,
    output logic [1:0]  variant,
    // It takes more than a cycle.
    output logic        is_long,
    // Bytes whose order changes: 1: 16 bits, 2: 32, 3: 64; and whether it does change.
    output logic [1:0]  swap_size,
    output logic        swap_reverse,
    // The immediate is added to the start of the values of map `offset`.
    output logic        is_map_value,

    output logic        is_load,
    output logic        is_signed,
    output logic        is_speculative,
    output logic        is_store,
    output logic        is_atomic,
    output logic [3:0]  bytes,
    output logic [15:0] offset,

    // Control: a comparison (its code in `code`), a check of the packet's length (`reads_left`
    // selects its start), or unconditional.
    output logic        is_jump,
    output logic        is_bound,
    output logic        is_goto,
    // Target: an exit with a verdict, or a row; whether it is the next one.
    output logic        to_exit,
    output logic [31:0] verdict,
    output logic [15:0] target,
    output logic        to_next,
    // Exit with register 0.
    output logic        is_return,
    output logic        is_function,
    output logic        is_call,
    output logic        is_named,
    output logic [7:0]  helper,
    output logic        is_invalid
);
  wire [7:0] opcode = slot[7:0];
  wire [3:0] dst = slot[11:8];
  wire [3:0] src = slot[15:12];
  wire [15:0] off = slot[31:16];
  wire [31:0] imm = slot[63:32];

  // The code is in the offset.
  wire is_extended = opcode[7:4] == 4'he;
  wire is_register = opcode[3];
  // A 32-bit distance is in another field than a 16-bit one.
  wire is_far = opcode == 8'h06;
  wire [31:0] distance = is_far ? imm : {{16{off[15]}}, off};
  wire [31:0] sum = {16'd0, row} + 32'd1 + distance;

  always_comb begin
    reads_left = 1'b0;
    reads_right = 1'b0;
    left = dst;
    right = src;
    immediate = {{32{imm[31]}}, imm};
    writes = 1'b0;
    destination = dst;
    code = opcode[7:4];
    is_wide = opcode[2:0] == 3'd7 || opcode[2:0] == 3'd5;
    variant = 2'd0;
    is_long = 1'b0;
    swap_size = 2'd1;
    swap_reverse = 1'b0;
    is_map_value = 1'b0;
    is_load = 1'b0;
    is_signed = 1'b0;
    is_speculative = 1'b0;
    is_store = 1'b0;
    is_atomic = 1'b0;
    bytes = 4'd1;
    offset = off;
    is_jump = 1'b0;
    is_bound = 1'b0;
    is_goto = 1'b0;
    to_exit = 1'b0;
    verdict = {16'd0, off};
    // A target beyond 16 bits becomes a row that no program has.
    target = sum[31:16] == 16'd0 ? sum[15:0] : 16'hffff;
    to_next = distance == 32'd0;
    is_return = 1'b0;
    is_function = 1'b0;
    is_call = 1'b0;
    is_named = 1'b0;
    helper = 8'd0;
    is_invalid = 1'b0;

    case (opcode[4:3])
      2'd0: bytes = 4'd4;
      2'd1: bytes = 4'd2;
      2'd2: bytes = 4'd1;
      default: bytes = 4'd8;
    endcase

    case (opcode[2:0])
      3'd0: begin
        // Constants are 64-bit moves.
        code = 4'hb;
        is_wide = 1'b1;
        writes = opcode != 8'h00;
        case (opcode)
          8'h00: ;
          8'h08:
            case (src)
              4'd0: ;
              4'd1: immediate = {32'd0, sephirot_pkg::REGION_MAP_HANDLE, 12'd0, imm[15:0]};
              4'd2: begin
                is_map_value = 1'b1;
                immediate = {32'd0, imm};
              end
              4'd4: immediate = {32'd0, imm};
              default: is_invalid = 1'b1;
            endcase
          8'h18: begin
            immediate = {second, imm};
            is_invalid = !has_second;
          end
          default: is_invalid = 1'b1;
        endcase
      end

      3'd1: begin
        is_load = 1'b1;
        writes = 1'b1;
        reads_right = 1'b1;
        case (opcode[7:5])
          3'd0, 3'd1: begin
            bytes = 4'd6;
            is_speculative = opcode[5];
            is_invalid = opcode[4:3] != 2'd0;
          end
          3'd3: ;
          3'd5: is_speculative = 1'b1;
          3'd4: begin
            is_signed = 1'b1;
            is_invalid = opcode[4:3] == 2'd3;
          end
          3'd2: begin
            is_signed = 1'b1;
            is_speculative = 1'b1;
            is_invalid = opcode[4:3] == 2'd3;
          end
          default: is_invalid = 1'b1;
        endcase
      end

      3'd2, 3'd3: begin
        is_store = 1'b1;
        reads_left = 1'b1;
        reads_right = opcode[0];
        case (opcode[7:5])
          3'd0: begin
            bytes = 4'd6;
            is_invalid = opcode[4:3] != 2'd0;
          end
          3'd3: ;
          3'd6: begin
            is_store = 1'b0;
            is_atomic = 1'b1;
            // A fetching operation writes its source, or register 0 for compare-and-exchange.
            writes = imm[0];
            destination = imm[7:4] == 4'hf ? 4'd0 : src;
            case (imm)
              32'h00, 32'h01, 32'h40, 32'h41, 32'h50, 32'h51, 32'ha0, 32'ha1, 32'he1, 32'hf1: ;
              default: is_invalid = 1'b1;
            endcase
            if (!opcode[0] || opcode[4] != opcode[3]) is_invalid = 1'b1;
          end
          default: is_invalid = 1'b1;
        endcase
      end

      3'd4, 3'd7: begin
        writes = 1'b1;
        if (is_extended) begin
          code = off[7:4];
          left = src;
          right = off[3:0];
        end
        reads_left = code != 4'hb;
        reads_right = is_register;
        if (is_extended) is_invalid = |off[15:9] || off[7:4] == 4'hb;
        variant[0] = is_extended ? off[8] : off[0];
        case (code)
          4'h3, 4'h9: begin
            is_long = 1'b1;
            if (!is_extended && |off[15:1]) is_invalid = 1'b1;
          end
          4'h2: begin
            is_long = 1'b1;
            if (is_extended ? off[8] : |off) is_invalid = 1'b1;
          end
          4'hb: begin
            if (is_register) begin
              case (off)
                16'd0: variant = 2'd0;
                16'd8: variant = 2'd1;
                16'd16: variant = 2'd2;
                16'd32: begin
                  variant = 2'd3;
                  if (!is_wide) is_invalid = 1'b1;
                end
                default: is_invalid = 1'b1;
              endcase
            end else if (|off) is_invalid = 1'b1;
          end
          4'h8, 4'hd: begin
            reads_right = 1'b0;
            if (is_register && (code == 4'h8 || is_wide)) is_invalid = 1'b1;
            if (is_extended ? off[8] : |off) is_invalid = 1'b1;
            swap_reverse = is_register || is_wide;
            if (code == 4'hd) begin
              case (imm)
                32'd16: swap_size = 2'd1;
                32'd32: swap_size = 2'd2;
                32'd64: swap_size = 2'd3;
                default: is_invalid = 1'b1;
              endcase
            end
          end
          4'he, 4'hf: is_invalid = 1'b1;
          default: if (is_extended ? off[8] : |off) is_invalid = 1'b1;
        endcase
      end

      default: begin
        case (opcode[7:4])
          4'h0: begin
            is_goto = 1'b1;
            is_invalid = is_register;
          end
          4'h8: begin
            if (is_register) begin
              is_call = 1'b1;
              is_named = 1'b1;
              helper = {src, dst};
            end else if (src == 4'd1) begin
              is_function = 1'b1;
              target = imm[31:16] == 16'd0 ? imm[15:0] : 16'hffff;
              to_next = 1'b0;
            end else begin
              is_call = 1'b1;
              // There is no helper 0.
              helper = imm[31:8] == 24'd0 ? imm[7:0] : 8'd0;
              is_invalid = src != 4'd0;
            end
            writes = is_call;
            destination = 4'd0;
            if (opcode[2:0] == 3'd6) is_invalid = 1'b1;
          end
          4'h9: begin
            is_goto = is_register;
            to_exit = is_register;
            verdict = imm;
            is_return = !is_register;
            // Register 0 is read like any left operand.
            left = 4'd0;
            reads_left = !is_register;
            if (opcode[2:0] == 3'd6) is_invalid = 1'b1;
          end
          4'hf: begin
            is_bound = 1'b1;
            reads_left = opcode[2:0] == 3'd5;
            to_exit = is_register;
          end
          default: begin
            is_jump = 1'b1;
            reads_left = 1'b1;
            reads_right = is_register;
            if (is_extended) begin
              code = off[15:12];
              to_exit = 1'b1;
              verdict = {20'd0, off[11:0]};
            end
            if (code == 4'h0 || code == 4'h8 || code == 4'h9 || code >= 4'he) is_invalid = 1'b1;
          end
        endcase
      end
    endcase

    // An invalid operation only stops the program.
    if (is_invalid) begin
      reads_left = 1'b0;
      reads_right = 1'b0;
      writes = 1'b0;
      is_long = 1'b0;
      is_map_value = 1'b0;
      is_load = 1'b0;
      is_store = 1'b0;
      is_atomic = 1'b0;
      is_jump = 1'b0;
      is_bound = 1'b0;
      is_goto = 1'b0;
      is_return = 1'b0;
      is_function = 1'b0;
      is_call = 1'b0;
    end
  end
endmodule
