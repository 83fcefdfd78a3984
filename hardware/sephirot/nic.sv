// SPDX-License-Identifier: Apache-2.0 OR MIT
// The card: all modules of the small processor and the wires between them (hXDP, OSDI 2020, section
// 4, its figure of the architecture). A network's ports on one side, a host's bus on the other.
// docs/sephirot.md says what each signal means. Beside wires there is one thing here: who has the
// service port of the data memory, helpers or the host.

module nic #(
    parameter int LANES = 4,
    parameter int ROWS = 1024,
    parameter int MAP_BYTES = 65536,
    parameter int MAPS = 32
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

  // Settings of the host.
  wire running, emit_all;
  wire [15:0] entry, rows;
  wire [31:0] watchdog;
  wire [63:0] time_now, random_wdata, random_state;
  wire random_write;

  // The packet in work. Simulators look at its beginning and its end, to say when they were.
  wire packet_ready;
  wire packet_begin  /* verilator public_flat_rd */;
  wire packet_done  /* verilator public_flat_rd */;
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

  // What is counted.
  wire event_packet, event_done, event_oversize;
  wire [31:0] event_verdict;
  wire [2:0] event_stop;
  wire event_call;
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
  wire call_valid, call_done, call_unknown, call_jump;
  wire [7:0] call_helper;
  wire [4:0][63:0] call_arguments;
  wire [63:0] call_result;
  wire [15:0] call_row;
  wire [15:0] map_base_index;
  wire [31:0] map_base;

  wire row_write;
  wire [15:0] row_address;
  wire [2:0] row_lane;
  wire [63:0] row_data;
  wire busy, event_row, event_wait_memory, event_wait_helper, event_wait_long, event_jump;

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

  // The service port: the host has it for single accesses, while no helper is at work, so that
  // what a helper has read holds until it reads again. A call that comes in between waits.
  wire helper_service_valid, helper_service_write, helper_service_ready;
  wire [31:0] helper_service_address, helper_service_enable;
  wire [255:0] helper_service_wdata;
  wire map_valid, map_write;
  wire [27:0] map_address;
  wire [63:0] map_wdata;
  wire command_valid;
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

  data_memory #(
      .LANES(LANES),
      .MAP_BYTES(MAP_BYTES)
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
      .emit_valid, .emit_slot, .emit_offset, .emit_ready, .emit_data, .stores_pending
  );

  wire table_valid, table_write;
  wire [15:0] table_map;
  wire [2:0] table_word;
  wire [63:0] table_wdata, table_rdata;
  wire [15:0] command_helper;
  wire [4:0][63:0] command_arguments;
  wire command_done;
  wire [63:0] command_result;

  helper_unit #(
      .MAPS(MAPS)
  ) helper_unit (
      .clk, .rst,
      .call_valid, .call_helper, .call_arguments, .call_done, .call_result, .call_unknown,
      .call_jump, .call_row, .packet_begin,
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
      .time_now, .random_write, .random_wdata, .random_state, .event_call
  );

  control_registers #(
      .LANES(LANES),
      .ROWS(ROWS),
      .MAP_BYTES(MAP_BYTES)
  ) control_registers (
      .clk, .rst,
      .host_valid, .host_write, .host_address, .host_wdata, .host_ready, .host_rdata,
      .running, .emit_all, .entry, .rows, .watchdog, .time_now,
      .random_write, .random_wdata, .random_state,
      .row_write, .row_address, .row_lane, .row_data,
      .table_valid, .table_write, .table_map, .table_word, .table_wdata, .table_rdata,
      .command_valid, .command_helper, .command_arguments, .command_done, .command_result,
      .map_valid, .map_write, .map_address, .map_wdata,
      .map_ready(host_serves && service_ready), .map_rdata(service_rdata[63:0]),
      .idle(selector_idle && !beat_valid && !busy), .busy,
      .event_packet, .event_done, .event_verdict, .event_stop, .event_oversize,
      .event_row, .event_wait_memory, .event_wait_helper, .event_wait_long, .event_jump,
      .event_call, .event_rx_wait(rx_valid && !rx_ready)
  );
endmodule
