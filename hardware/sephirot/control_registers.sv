// SPDX-License-Identifier: Apache-2.0 OR MIT
// The host interface of the card: settings, counters, and access to the instruction memory, the
// table of maps, commands and map memory. In the publication (hXDP, OSDI 2020, section 4) these are
// the control registers of the APS block, and the access of user space to maps.
// docs/internals/sephirot.md has the table of addresses.
//
// An access is decoded in one cycle and answered in a later one, so that the host's bus is not part
// of a timing path between registers of the core. Host accesses are not time-critical.

module control_registers #(
    parameter int LANES = 4,
    parameter int ROWS = 1024,
    parameter int MAP_BYTES = 65536,
    parameter int CORES = 1
) (
    input clk,
    input rst,

    // The host's bus.
    input host_valid,
    input host_write,
    input [31:0] host_address,
    input [63:0] host_wdata,
    output host_ready,
    output [63:0] host_rdata,

    // Settings.
    output running,
    output emit_all,
    output [15:0] entry,
    output [15:0] rows,
    output [31:0] watchdog,
    output [63:0] time_now,
    output random_write,
    output [63:0] random_wdata,
    input [63:0] random_state,

    // The instruction memory.
    output row_write,
    output [15:0] row_address,
    output [2:0] row_lane,
    output [63:0] row_data,

    // The table of maps: read data is valid in the cycle of the address.
    output table_valid,
    output table_write,
    output [15:0] table_map,
    output [2:0] table_word,
    output [63:0] table_wdata,
    input [63:0] table_rdata,

    // Commands: helpers that the host calls.
    output logic command_valid,
    output logic [15:0] command_helper,
    output logic [4:0][63:0] command_arguments,
    input command_done,
    input [63:0] command_result,

    // Map memory; read data is valid in the cycle after `map_ready`.
    output map_valid,
    output map_write,
    output [27:0] map_address,
    output [63:0] map_wdata,
    input map_ready,
    input [63:0] map_rdata,

    // Requested number of cores; takes effect when the card has drained.
    output [3:0] cores_wanted,

    // Events to be counted, for each core.
    input idle,
    input [CORES-1:0] busy,
    input [CORES-1:0] event_packet,
    input [CORES-1:0] event_done,
    input [CORES-1:0][31:0] event_verdict,
    input [CORES-1:0][2:0] event_stop,
    input [CORES-1:0] event_oversize,
    input [CORES-1:0] event_row,
    input [CORES-1:0] event_wait_memory,
    input [CORES-1:0] event_wait_helper,
    input [CORES-1:0] event_wait_long,
    input [CORES-1:0] event_jump,
    input [CORES-1:0] event_call,
    input event_rx_wait
);
  // Regions, in bits 31 to 28 of an address.
  localparam logic [3:0] HOST_REGISTERS = 4'h0;
  localparam logic [3:0] HOST_ROWS = 4'h1;
  localparam logic [3:0] HOST_TABLE = 4'h2;
  localparam logic [3:0] HOST_COMMANDS = 4'h3;
  localparam logic [3:0] HOST_MAPS = 4'h4;

  // Registers, by bits 7 to 3 of their address.
  localparam logic [4:0] CONTROL = 5'd1;
  localparam logic [4:0] ENTRY = 5'd2;
  localparam logic [4:0] WATCHDOG = 5'd3;
  localparam logic [4:0] TIME = 5'd4;
  localparam logic [4:0] RANDOM = 5'd5;
  localparam logic [4:0] IDLE = 5'd6;
  localparam logic [4:0] CORES_USED = 5'd7;
  localparam logic [2:0] COMMAND_BEGIN = 3'd6;

  typedef enum logic [1:0] {
    WAITING,
    DECODED,
    READ,
    ANSWERED
  } state_t;
  state_t state;
  logic [63:0] answer;

  // The latched access: the bus is not read again.
  logic write;
  // Words have 8 bytes.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [31:0] address;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [63:0] wdata;
  wire [3:0] region = address[31:28];
  wire is_decoded = state == DECODED;
  wire is_write = is_decoded && write;

  // Settings.
  logic [2:0] control;
  logic [3:0] core_count;
  logic [15:0] first_row, row_count;
  logic [31:0] cycles_max;
  logic [63:0] now_ns;
  logic [2:0] fifth;
  wire writes_register = is_write && region == HOST_REGISTERS && address[27:8] == 0;
  wire [4:0] register_number = address[7:3];
  assign running = control[0];
  assign emit_all = control[1];
  assign entry = first_row;
  assign rows = row_count;
  assign watchdog = cycles_max;
  assign cores_wanted = core_count;
  assign time_now = now_ns;
  assign random_write = writes_register && register_number == RANDOM;
  assign random_wdata = wdata;

  always_ff @(posedge clk) begin
    if (rst) begin
      control <= 0;
      first_row <= 0;
      row_count <= 0;
      cycles_max <= '1;
      now_ns <= 0;
      core_count <= 4'(CORES);
      fifth <= 0;
    end else begin
      // 32 ns in five cycles of 6.4 ns.
      fifth <= fifth == 4 ? 0 : fifth + 1;
      if (control[2]) now_ns <= now_ns + (fifth[0] ? 64'd7 : 64'd6);
      if (writes_register) begin
        case (register_number)
          CONTROL: control <= wdata[2:0];
          ENTRY: {row_count, first_row} <= wdata[31:0];
          WATCHDOG: cycles_max <= wdata[31:0];
          TIME: now_ns <= wdata;
          CORES_USED: if (wdata >= 1 && wdata <= 64'(CORES)) core_count <= wdata[3:0];
          default: ;
        endcase
      end
    end
  end

  // The instruction memory: the row is the address divided by the number of lanes, computed as a
  // multiplication by the reciprocal, which is exact for all 16-bit numbers.
  localparam int RECIPROCAL = ((1 << 20) + LANES - 1) / LANES;
  wire [15:0] slot = address[18:3];
  wire [15:0] slot_row = 16'((36'(slot) * 36'(RECIPROCAL)) >> 20);
  wire [2:0] slot_lane = 3'(slot - slot_row * 16'(LANES));
  assign row_write = is_write && region == HOST_ROWS && address[27:19] == 0
      && slot_row < 16'(ROWS);
  assign row_address = slot_row;
  assign row_lane = slot_lane;
  assign row_data = wdata;

  assign table_valid = is_decoded && region == HOST_TABLE;
  assign table_write = write;
  assign table_map = address[21:6];
  assign table_word = address[5:3];
  assign table_wdata = wdata;

  assign map_valid = is_decoded && region == HOST_MAPS;
  assign map_write = write;
  assign map_address = {address[27:3], 3'd0};
  assign map_wdata = wdata;

  // Commands.
  logic [63:0] result;
  wire writes_command = is_write && region == HOST_COMMANDS;
  wire [2:0] command_number = address[5:3];
  always_ff @(posedge clk) begin
    if (rst) begin
      command_valid <= 0;
      command_helper <= 0;
      command_arguments <= 0;
      result <= 0;
    end else begin
      if (command_valid && command_done) begin
        command_valid <= 0;
        result <= command_result;
      end
      // Arguments of a running command are not overwritten.
      if (writes_command && !command_valid) begin
        if (command_number == 0) command_helper <= wdata[15:0];
        for (int i = 0; i < 5; i++) begin
          if (command_number == 3'(i + 1)) command_arguments[i] <= wdata;
        end
        if (command_number == COMMAND_BEGIN) command_valid <= 1;
      end
    end
  end

  // Counters have 48 bits: 20 days of cycles, and the width of a DSP slice. Several cores may have
  // an event in the same cycle. Packet counters by core come after the others.
  localparam int COUNTERS = 25;
  localparam int STEP_BITS = $clog2(CORES + 1);
  logic [COUNTERS-1:0][47:0] counters;
  logic [COUNTERS-1:0][CORES-1:0] steps;
  logic [COUNTERS-1:0][STEP_BITS-1:0] steps_sum, steps_taken;
  // Verdicts arrive late in their cycle, and are compared in the next one.
  logic [CORES-1:0] ended;
  logic [CORES-1:0][31:0] ended_verdict;
  logic [CORES-1:0][2:0] ended_stop;
  always_ff @(posedge clk) begin
    ended <= rst ? '0 : event_done;
    ended_verdict <= event_verdict;
    ended_stop <= event_stop;
  end
  always_comb begin
    steps = 0;
    steps[0][0] = 1;
    steps[1] = event_packet;
    for (int c = 0; c < CORES; c++) begin
      for (int i = 0; i < 5; i++) begin
        steps[2+i][c] = ended[c] && ended_verdict[c] == 32'(i);
      end
      steps[7][c] = ended[c] && ended_verdict[c] > 4;
      for (int i = 1; i < 7; i++) begin
        steps[7+i][c] = ended[c] && ended_stop[c] == 3'(i);
      end
    end
    steps[16] = busy;
    steps[17] = event_row;
    steps[18] = event_wait_memory;
    steps[19] = event_wait_helper;
    steps[20] = event_wait_long;
    steps[21] = event_jump;
    steps[22][0] = event_rx_wait;
    steps[23] = event_oversize;
    steps[24] = event_call;
    steps_sum = 0;
    for (int i = 0; i < COUNTERS; i++) begin
      for (int c = 0; c < CORES; c++) steps_sum[i] = steps_sum[i] + STEP_BITS'(steps[i][c]);
    end
  end
  always_ff @(posedge clk) begin
    // Events are added a cycle later: the adders are not in the timing path of the core.
    if (rst) begin
      counters <= 0;
      steps_taken <= 0;
    end else begin
      steps_taken <= steps_sum;
      for (int i = 0; i < COUNTERS; i++) begin
        if (steps_taken[i] != 0) counters[i] <= counters[i] + 48'(steps_taken[i]);
      end
    end
  end
  // With one core, all completed packets are its packets.
  logic [CORES-1:0][47:0] packets;
  always_ff @(posedge clk) begin
    for (int c = 0; c < CORES; c++) begin
      if (rst) packets[c] <= 0;
      else if (event_done[c]) packets[c] <= packets[c] + 1;
    end
  end

  // Read data.
  localparam logic [63:0] IDENTITY = {32'(MAP_BYTES), 16'(ROWS / 16), 8'(CORES), 8'(LANES)};
  logic [63:0] found;
  always_comb begin
    found = 0;
    case (region)
      HOST_REGISTERS: begin
        if (address[27:8] == 20'd1) begin
          if (address[7:3] < 5'(COUNTERS)) found = {16'd0, counters[address[7:3]]};
        end else if (address[27:8] == 20'd2) begin
          for (int c = 0; c < CORES; c++) begin
            if (address[7:3] == 5'(c)) found = {16'd0, packets[c]};
          end
        end else if (address[27:8] == 0) begin
          case (register_number)
            5'd0: found = IDENTITY;
            CONTROL: found = {61'd0, control};
            ENTRY: found = {32'd0, row_count, first_row};
            WATCHDOG: found = {32'd0, cycles_max};
            TIME: found = now_ns;
            RANDOM: found = random_state;
            IDLE: found = {63'd0, idle};
            CORES_USED: found = {60'd0, core_count};
            default: found = 0;
          endcase
        end
      end
      HOST_TABLE: found = table_rdata;
      HOST_COMMANDS: begin
        case (command_number)
          COMMAND_BEGIN: found = {63'd0, command_valid};
          3'd7: found = result;
          default: found = 0;
        endcase
      end
      default: found = 0;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= WAITING;
    end else begin
      case (state)
        WAITING: begin
          write <= host_write;
          address <= host_address;
          wdata <= host_wdata;
          if (host_valid) state <= DECODED;
        end
        DECODED: begin
          answer <= found;
          if (region != HOST_MAPS) state <= ANSWERED;
          else if (map_ready) state <= write ? ANSWERED : READ;
        end
        READ: begin
          answer <= map_rdata;
          state <= ANSWERED;
        end
        default: state <= WAITING;
      endcase
    end
  end
  assign host_ready = state == ANSWERED;
  assign host_rdata = answer;
endmodule
