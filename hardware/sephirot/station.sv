// SPDX-License-Identifier: Apache-2.0 OR MIT
// A core with its private resources: its queue, packets, stack, copy of the maps, and helpers
// (hXDP, OSDI 2020, section 4.1, the whole figure except for the network's ports; it has one core).
// `nic` has one instance for each core. The only logic here other than wires is the arbitration of
// the data memory's service port between helpers and host.

module station #(
    parameter int LANES = 4,
    parameter int ROWS = 1024,
    parameter int MAP_BYTES = 65536,
    parameter int MAPS = 32,
    parameter int CORES = 1,
    parameter int CORE = 0,
    parameter int MAP_ROW_BITS = $clog2(MAP_BYTES) - 5
) (
    input clk,
    input rst,

    // Beats of this core's packets, arriving and leaving.
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

    // Settings, and rows of the instruction memory.
    input running,
    input emit_all,
    input [15:0] entry,
    input [15:0] rows,
    input [31:0] watchdog,
    input [63:0] time_now,
    input random_write,
    input [63:0] random_wdata,
    output [63:0] random_state,
    input row_write,
    input [15:0] row_address,
    input [2:0] row_lane,
    input [63:0] row_data,

    // The host's access to maps: only the first core is accessed, except for writes of the table.
    input table_valid,
    input table_write,
    input [15:0] table_map,
    input [2:0] table_word,
    input [63:0] table_wdata,
    output [63:0] table_rdata,
    input command_valid,
    input [15:0] command_helper,
    input [4:0][63:0] command_arguments,
    output command_done,
    output [63:0] command_result,
    input map_valid,
    input map_write,
    input [27:0] map_address,
    input [63:0] map_wdata,
    output map_ready,
    output [63:0] map_rdata,

    // Calls: `call_arbiter` grants them.
    output call_valid,
    output [7:0] call_helper,
    input call_go,
    output call_done,
    // Shared by cores: `map_port`, and changes of the table of maps.
    output map_store,
    input map_store_go,
    output map_window,
    input map_window_go,
    output map_window_write,
    output map_window_done,
    input map_busy,
    input [3:0][7:0] map_in_enable,
    input [3:0][MAP_ROW_BITS-1:0] map_in_row,
    input [3:0][63:0] map_in_data,
    output [3:0][7:0] map_out_enable,
    output [3:0][MAP_ROW_BITS-1:0] map_out_row,
    output [3:0][63:0] map_out_data,
    output stores_waiting,
    output [241:0] commit_out,
    input [241:0] commit_in,

    // Events to be counted.
    output packet_begin,
    output packet_done,
    output idle,
    output busy,
    output event_packet,
    output event_done,
    output [31:0] event_verdict,
    output [2:0] event_stop,
    output event_oversize,
    output event_row,
    output event_wait_memory,
    output event_wait_helper,
    output event_wait_long,
    output event_jump,
    output event_call
);
  // Arriving beats.
  wire beat_valid, beat_ready, beat_last;
  wire [255:0] beat_data;
  wire [5:0] beat_bytes;
  wire [31:0] beat_ifindex, beat_queue;

  input_queue input_queue (
      .clk, .rst,
      .rx_valid, .rx_ready, .rx_data, .rx_bytes, .rx_last, .rx_ifindex, .rx_queue,
      .beat_valid, .beat_ready, .beat_data, .beat_bytes, .beat_last, .beat_ifindex, .beat_queue
  );

  // The current packet.
  wire packet_ready;
  wire [31:0] packet_verdict;
  wire [2:0] packet_stop;
  wire [1:0] packet_slot, store_slot;
  wire [11:0] packet_data, packet_end, packet_meta;
  wire [12:0] packet_arrived;
  wire packet_complete;
  wire [31:0] packet_ifindex, packet_queue;
  wire set_valid;
  wire [11:0] set_data, set_end, set_meta;
  wire redirect_valid;
  wire [31:0] redirect_map, redirect_key;
  wire fill_valid, fill_ready;
  wire [1:0] fill_slot;
  wire [11:0] fill_offset;
  wire [255:0] fill_data;
  wire emit_valid, emit_ready;
  wire [1:0] emit_slot;
  wire [11:0] emit_offset;
  wire [255:0] emit_data;
  wire [3:0] stores_pending;

  wire selector_idle;

  packet_selector packet_selector (
      .clk, .rst, .emit_all,
      .beat_valid, .beat_ready, .beat_data, .beat_bytes, .beat_last, .beat_ifindex, .beat_queue,
      .packet_ready, .packet_begin, .packet_done, .packet_verdict, .packet_stop,
      .packet_slot, .packet_data, .packet_end, .packet_meta, .packet_arrived, .packet_complete,
      .packet_ifindex, .packet_queue,
      .set_valid, .set_data, .set_end, .set_meta,
      .redirect_valid, .redirect_map, .redirect_key,
      .fill_valid, .fill_slot, .fill_offset, .fill_data, .fill_ready,
      .emit_valid, .emit_slot, .emit_offset, .emit_ready, .emit_data, .stores_pending,
      .tx_valid, .tx_ready, .tx_data, .tx_bytes, .tx_last, .tx_verdict, .tx_stop, .tx_meta,
      .tx_map, .tx_key, .tx_ifindex,
      .event_packet, .event_done, .event_verdict, .event_stop, .event_oversize,
      .idle(selector_idle)
  );

  // The core's loads, stores, atomic operations and calls.
  wire [LANES-1:0] load_valid, load_miss;
  wire [LANES-1:0][63:0] load_address, load_data;
  wire [LANES-1:0][3:0] load_bytes;
  wire load_hold, load_wait;
  wire [LANES-1:0] store_valid, store_miss;
  wire [LANES-1:0][63:0] store_address, store_data;
  wire [LANES-1:0][3:0] store_bytes;
  wire store_wait;
  wire atomic_valid, atomic_wide, atomic_done, atomic_miss;
  wire [63:0] atomic_address, atomic_operand, atomic_expected, atomic_old;
  wire [7:0] atomic_operation;
  wire [2:0] frame;
  wire frame_clear, stack_clear;
  wire call_unknown, call_jump;
  wire [4:0][63:0] call_arguments;
  wire [63:0] call_result;
  wire [15:0] call_row;
  wire [15:0] map_base_index;
  wire [31:0] map_base;

  core #(
      .LANES(LANES),
      .ROWS(ROWS)
  ) core (
      .clk, .rst, .running, .entry, .rows, .watchdog,
      .row_write, .row_address, .row_lane, .row_data,
      .packet_ready, .packet_begin, .packet_done, .packet_verdict, .packet_stop, .packet_slot,
      .packet_data, .packet_end, .packet_meta, .packet_arrived, .packet_complete, .store_slot,
      .load_valid, .load_address, .load_bytes, .load_hold, .load_wait, .load_data, .load_miss,
      .store_valid, .store_address, .store_bytes, .store_data, .store_wait, .store_miss,
      .atomic_valid, .atomic_address, .atomic_wide, .atomic_operation, .atomic_operand,
      .atomic_expected, .atomic_done, .atomic_miss, .atomic_old,
      .frame, .frame_clear, .stack_clear,
      .call_valid, .call_helper, .call_arguments, .call_done, .call_result, .call_unknown,
      .call_jump, .call_row,
      .map_base_index, .map_base,
      .busy, .event_row, .event_wait_memory, .event_wait_helper, .event_wait_long, .event_jump
  );

  // The service port: the host uses it for single accesses while no helper is running, so that data
  // which a helper has read stays valid until it reads again. A call that arrives in between waits.
  wire helper_service_valid, helper_service_write, helper_service_ready;
  wire [31:0] helper_service_address, helper_service_enable;
  wire [255:0] helper_service_wdata;
  wire host_serves = map_valid && !call_valid && !command_valid && !helper_service_valid;
  wire service_ready, service_miss;
  wire [255:0] service_rdata;
  wire service_valid = host_serves || helper_service_valid;
  wire service_write = host_serves ? map_write : helper_service_write;
  wire [31:0] service_address =
      host_serves ? {sephirot_pkg::REGION_MAPS, map_address} : helper_service_address;
  wire [31:0] service_enable = host_serves ? 32'hff : helper_service_enable;
  wire [255:0] service_wdata = host_serves ? {192'd0, map_wdata} : helper_service_wdata;
  assign helper_service_ready = service_ready && !host_serves;
  assign map_ready = host_serves && service_ready;
  assign map_rdata = service_rdata[63:0];

  data_memory #(
      .LANES(LANES),
      .MAP_BYTES(MAP_BYTES),
      .CORES(CORES)
  ) data_memory (
      .clk, .rst,
      .load_valid, .load_address, .load_bytes, .load_hold, .load_wait, .load_data, .load_miss,
      .store_valid, .store_address, .store_bytes, .store_data, .store_slot, .store_wait,
      .store_miss,
      .atomic_valid, .atomic_address, .atomic_wide, .atomic_operation, .atomic_operand,
      .atomic_expected, .atomic_done, .atomic_miss, .atomic_old,
      .frame, .frame_clear, .stack_clear,
      .service_valid, .service_write, .service_address, .service_enable, .service_wdata,
      .service_ready, .service_rdata, .service_miss,
      .packet_slot, .packet_data, .packet_end, .packet_meta, .packet_arrived, .packet_complete,
      .packet_ifindex, .packet_queue,
      .fill_valid, .fill_slot, .fill_offset, .fill_data, .fill_ready,
      .emit_valid, .emit_slot, .emit_offset, .emit_ready, .emit_data, .stores_pending,
      .map_store, .map_store_go, .map_window, .map_window_go, .map_window_write, .map_window_done,
      .map_busy, .map_in_enable, .map_in_row, .map_in_data, .map_out_enable, .map_out_row,
      .map_out_data, .stores_waiting
  );

  helper_unit #(
      .MAPS(MAPS),
      .CORES(CORES),
      .CPU(CORE)
  ) helper_unit (
      .clk, .rst,
      .call_valid(call_valid && call_go), .call_helper, .call_arguments, .call_done, .call_result,
      .call_unknown, .call_jump, .call_row, .packet_begin,
      .service_valid(helper_service_valid), .service_write(helper_service_write),
      .service_address(helper_service_address), .service_enable(helper_service_enable),
      .service_wdata(helper_service_wdata), .service_ready(helper_service_ready),
      .service_rdata, .service_miss,
      .packet_data, .packet_end, .packet_meta, .packet_arrived, .packet_complete,
      .set_valid, .set_data, .set_end, .set_meta,
      .redirect_valid, .redirect_map, .redirect_key,
      .map_base_index, .map_base,
      .table_valid, .table_write, .table_map, .table_word, .table_wdata, .table_rdata,
      .command_valid, .command_helper, .command_arguments, .command_done, .command_result,
      .time_now, .random_write, .random_wdata, .random_state, .event_call,
      .commit_out, .commit_in
  );

  assign idle = selector_idle && !beat_valid && !busy;
endmodule
