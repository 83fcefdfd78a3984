// SPDX-License-Identifier: Apache-2.0 OR MIT
// The card: one core or several, each with its private resources (`station`), the paths of packets
// to and from them, and their shared resources (hXDP, OSDI 2020, section 4, its figure of the
// architecture, which has one core). A network's ports on one side, a host's bus on the other.
// docs/internals/sephirot.md defines each signal.

module nic #(
    parameter int LANES = 4,
    parameter int ROWS = 1024,
    parameter int MAP_BYTES = 65536,
    parameter int MAPS = 32,
    // 1 to 8
    parameter int CORES = 1
) (
    input clk,
    input rst,

    input rx_valid,
    output rx_ready,
    input [255:0] rx_data,
    input [5:0] rx_bytes,
    input rx_last,
    input [31:0] rx_ifindex,
    input [31:0] rx_queue,

    output tx_valid,
    input tx_ready,
    output [255:0] tx_data,
    output [5:0] tx_bytes,
    output tx_last,
    output [31:0] tx_verdict,
    output [2:0] tx_stop,
    output [7:0] tx_meta,
    output [31:0] tx_map,
    output [31:0] tx_key,
    output [31:0] tx_ifindex,

    input host_valid,
    input host_write,
    input [31:0] host_address,
    input [63:0] host_wdata,
    output host_ready,
    output [63:0] host_rdata
);
  localparam int MAP_ROW_BITS = $clog2(MAP_BYTES) - 5;

  // Settings of the host, and its access to the card's memories.
  wire running, emit_all;
  wire [15:0] entry, rows;
  wire [31:0] watchdog;
  wire [63:0] time_now, random_wdata;
  wire random_write;
  wire row_write;
  wire [15:0] row_address;
  wire [2:0] row_lane;
  wire [63:0] row_data;
  wire table_valid, table_write;
  wire [15:0] table_map;
  wire [2:0] table_word;
  wire [63:0] table_wdata;
  wire command_valid, command_go;
  wire [15:0] command_helper;
  wire [4:0][63:0] command_arguments;
  wire map_valid, map_write;
  wire [27:0] map_address;
  wire [63:0] map_wdata;

  // For each core: beats of its packets, their flow control, and events to be counted. Simulators
  // observe to which core a packet goes, when it begins and when it is done.
  wire [CORES-1:0] in_valid, in_ready;
  wire [255:0] in_data;
  wire [5:0] in_bytes;
  wire in_last;
  wire [31:0] in_ifindex, in_queue;
  wire [CORES-1:0] packet_enters  /* verilator public_flat_rd */;
  wire [CORES-1:0] packet_begin  /* verilator public_flat_rd */;
  wire [CORES-1:0] packet_done  /* verilator public_flat_rd */;
  wire [CORES-1:0] out_valid, out_ready, out_last;
  wire [CORES-1:0][400:0] out_beat;
  wire [CORES-1:0] core_idle, busy;
  wire [CORES-1:0] event_packet, event_done, event_oversize, event_row, event_wait_memory;
  wire [CORES-1:0] event_wait_helper, event_wait_long, event_jump, event_call;
  wire [CORES-1:0][31:0] event_verdict;
  wire [CORES-1:0][2:0] event_stop;

  // Shared resources.
  wire [CORES-1:0] call_valid, call_go, call_done;
  wire [CORES-1:0][7:0] call_helper;
  wire [CORES-1:0] map_store, map_store_go, map_window, map_window_go, map_window_write;
  wire [CORES-1:0] map_window_done, map_busy, stores_waiting;
  wire [CORES-1:0][3:0][7:0] map_in_enable, map_out_enable;
  wire [CORES-1:0][3:0][MAP_ROW_BITS-1:0] map_in_row, map_out_row;
  wire [CORES-1:0][3:0][63:0] map_in_data, map_out_data;
  wire [CORES-1:0][241:0] commit_out;
  logic [241:0] commit_in;

  // Answers to the host, which only accesses the first core.
  /* verilator lint_off UNUSEDSIGNAL */
  wire [CORES-1:0] command_done, map_ready;
  wire [CORES-1:0][63:0] random_state, table_rdata, command_result, map_rdata;
  /* verilator lint_on UNUSEDSIGNAL */

  genvar core;
  generate
    for (core = 0; core < CORES; core++) begin : g_core
      station #(
          .LANES(LANES), .ROWS(ROWS), .MAP_BYTES(MAP_BYTES), .MAPS(MAPS), .CORES(CORES),
          .CORE(core)
      ) station (
          .clk, .rst,
          .rx_valid(in_valid[core]), .rx_ready(in_ready[core]), .rx_data(in_data),
          .rx_bytes(in_bytes), .rx_last(in_last), .rx_ifindex(in_ifindex), .rx_queue(in_queue),
          .tx_valid(out_valid[core]), .tx_ready(out_ready[core]),
          .tx_data(out_beat[core][255:0]), .tx_bytes(out_beat[core][261:256]),
          .tx_last(out_last[core]), .tx_verdict(out_beat[core][293:262]),
          .tx_stop(out_beat[core][296:294]), .tx_meta(out_beat[core][304:297]),
          .tx_map(out_beat[core][336:305]), .tx_key(out_beat[core][368:337]),
          .tx_ifindex(out_beat[core][400:369]),
          .running, .emit_all, .entry, .rows, .watchdog, .time_now, .random_write,
          // Each core has its own random numbers.
          .random_wdata(random_wdata ^ (64'(core) << 56)), .random_state(random_state[core]),
          .row_write, .row_address, .row_lane, .row_data,
          .table_valid, .table_write, .table_map, .table_word, .table_wdata,
          .table_rdata(table_rdata[core]),
          .command_valid(core == 0 && command_valid && command_go), .command_helper,
          .command_arguments, .command_done(command_done[core]),
          .command_result(command_result[core]),
          .map_valid(core == 0 && map_valid), .map_write, .map_address, .map_wdata,
          .map_ready(map_ready[core]), .map_rdata(map_rdata[core]),
          .call_valid(call_valid[core]), .call_helper(call_helper[core]),
          .call_go(call_go[core]), .call_done(call_done[core]),
          .map_store(map_store[core]), .map_store_go(map_store_go[core]),
          .map_window(map_window[core]), .map_window_go(map_window_go[core]),
          .map_window_write(map_window_write[core]), .map_window_done(map_window_done[core]),
          .map_busy(map_busy[core]), .map_in_enable(map_in_enable[core]),
          .map_in_row(map_in_row[core]), .map_in_data(map_in_data[core]),
          .map_out_enable(map_out_enable[core]), .map_out_row(map_out_row[core]),
          .map_out_data(map_out_data[core]), .stores_waiting(stores_waiting[core]),
          .commit_out(commit_out[core]), .commit_in,
          .packet_begin(packet_begin[core]), .packet_done(packet_done[core]),
          .idle(core_idle[core]), .busy(busy[core]),
          .event_packet(event_packet[core]), .event_done(event_done[core]),
          .event_verdict(event_verdict[core]), .event_stop(event_stop[core]),
          .event_oversize(event_oversize[core]), .event_row(event_row[core]),
          .event_wait_memory(event_wait_memory[core]),
          .event_wait_helper(event_wait_helper[core]), .event_wait_long(event_wait_long[core]),
          .event_jump(event_jump[core]), .event_call(event_call[core])
      );
    end
  endgenerate

  wire [3:0] cores_wanted;
  wire nothing_waits;
  generate
    if (CORES == 1) begin : g_alone
      assign in_valid = rx_valid;
      assign rx_ready = in_ready;
      assign {in_data, in_bytes, in_last} = {rx_data, rx_bytes, rx_last};
      assign {in_ifindex, in_queue} = {rx_ifindex, rx_queue};
      logic in_packet;
      always_ff @(posedge clk)
        if (rst) in_packet <= 1'b0;
        else if (rx_valid && rx_ready) in_packet <= !rx_last;
      assign packet_enters = rx_valid && rx_ready && !in_packet;
      assign nothing_waits = 1'b1;

      assign {tx_valid, tx_last} = {out_valid, out_last};
      assign {tx_ifindex, tx_key, tx_map, tx_meta, tx_stop, tx_verdict, tx_bytes, tx_data} =
          out_beat;
      assign out_ready = tx_ready;

      assign call_go = 1'b1;
      assign command_go = 1'b1;
      assign {map_store_go, map_window_go, map_busy} = 3'b110;
      assign {map_in_enable, map_in_row, map_in_data} = '0;
      assign commit_in = '0;
      /* verilator lint_off UNUSEDSIGNAL */
      wire unused = ^{call_valid, call_helper, call_done, map_store, map_window,
          map_window_write, map_window_done, map_out_enable, map_out_row, map_out_data,
          commit_out, stores_waiting, cores_wanted};
      /* verilator lint_on UNUSEDSIGNAL */
    end else begin : g_many
      // The number of cores in use changes when the card has drained: until then no packet begins.
      logic [3:0] cores;
      wire hold = cores != cores_wanted;
      wire dispatcher_idle, in_first;
      always_ff @(posedge clk)
        if (rst) cores <= 4'(CORES);
        else if (hold && dispatcher_idle && core_idle == '1) cores <= cores_wanted;

      dispatcher #(
          .CORES(CORES)
      ) dispatcher (
          .clk, .rst, .cores, .hold, .idle(dispatcher_idle), .empty(nothing_waits),
          .rx_valid, .rx_ready, .rx_data, .rx_bytes, .rx_last, .rx_ifindex, .rx_queue,
          .out_valid(in_valid), .out_ready(in_ready), .out_data(in_data), .out_bytes(in_bytes),
          .out_last(in_last), .out_ifindex(in_ifindex), .out_queue(in_queue),
          .out_first(in_first)
      );
      assign packet_enters = in_first ? in_valid & in_ready : '0;
      transmit_arbiter #(
          .CORES(CORES)
      ) transmit_arbiter (
          .clk, .rst, .in_valid(out_valid), .in_ready(out_ready), .in_last(out_last),
          .in_beat(out_beat), .out_valid(tx_valid), .out_ready(tx_ready), .out_last(tx_last),
          .out_beat({tx_ifindex, tx_key, tx_map, tx_meta, tx_stop, tx_verdict, tx_bytes, tx_data})
      );
      call_arbiter #(
          .CORES(CORES)
      ) call_arbiter (
          .clk, .rst, .call_valid, .call_helper, .call_done, .call_go, .command_valid,
          .command_done(command_done[0]), .command_go, .packet_done, .stores_waiting
      );
      map_port #(
          .CORES(CORES), .ROW_BITS(MAP_ROW_BITS)
      ) map_port (
          .clk, .rst, .map_store, .map_store_go, .map_window, .map_window_go, .map_window_write,
          .map_window_done, .map_busy, .map_out_enable, .map_out_row, .map_out_data,
          .map_in_enable, .map_in_row, .map_in_data
      );
      // At most one core changes the table of maps in a cycle.
      always_comb begin
        commit_in = '0;
        for (int c = 0; c < CORES; c++) commit_in = commit_in | commit_out[c];
      end
    end
  endgenerate

  control_registers #(
      .LANES(LANES),
      .ROWS(ROWS),
      .MAP_BYTES(MAP_BYTES),
      .CORES(CORES)
  ) control_registers (
      .clk, .rst,
      .host_valid, .host_write, .host_address, .host_wdata, .host_ready, .host_rdata,
      .running, .emit_all, .entry, .rows, .watchdog, .time_now,
      .random_write, .random_wdata, .random_state(random_state[0]),
      .row_write, .row_address, .row_lane, .row_data,
      .table_valid, .table_write, .table_map, .table_word, .table_wdata,
      .table_rdata(table_rdata[0]),
      .command_valid, .command_helper, .command_arguments, .command_done(command_done[0]),
      .command_result(command_result[0]),
      .map_valid, .map_write, .map_address, .map_wdata,
      .map_ready(map_ready[0]), .map_rdata(map_rdata[0]), .cores_wanted,
      .idle(nothing_waits && core_idle == '1), .busy,
      .event_packet, .event_done, .event_verdict, .event_stop, .event_oversize,
      .event_row, .event_wait_memory, .event_wait_helper, .event_wait_long, .event_jump,
      .event_call, .event_rx_wait(rx_valid && !rx_ready)
  );
endmodule
