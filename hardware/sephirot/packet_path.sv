// SPDX-License-Identifier: Apache-2.0 OR MIT
// The path of packets, for a bench that models core, helpers and network: input queue, selector and
// memory. (hXDP, section 4.1, without the processor.)

module packet_path #(
    parameter int LANES = 4
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic                   emit_all,
    input  logic                   rx_valid,
    output logic                   rx_ready,
    input  logic [255:0]           rx_data,
    input  logic [5:0]             rx_bytes,
    input  logic                   rx_last,
    input  logic [31:0]            rx_ifindex,
    input  logic [31:0]            rx_queue,
    output logic                   tx_valid,
    input  logic                   tx_ready,
    output logic [255:0]           tx_data,
    output logic [5:0]             tx_bytes,
    output logic                   tx_last,
    output logic [31:0]            tx_verdict,
    output logic [2:0]             tx_stop,
    output logic [7:0]             tx_meta,
    output logic [31:0]            tx_map,
    output logic [31:0]            tx_key,
    output logic [31:0]            tx_ifindex,
    output logic                   packet_ready,
    input  logic                   packet_begin,
    input  logic                   packet_done,
    input  logic [31:0]            packet_verdict,
    input  logic [2:0]             packet_stop,
    output logic [1:0]             packet_slot,
    output logic [11:0]            packet_data,
    output logic [11:0]            packet_end,
    output logic [11:0]            packet_meta,
    output logic [12:0]            packet_arrived,
    output logic                   packet_complete,
    output logic [31:0]            packet_ifindex,
    output logic [31:0]            packet_queue,
    input  logic                   set_valid,
    input  logic [11:0]            set_data,
    input  logic [11:0]            set_end,
    input  logic [11:0]            set_meta,
    input  logic                   redirect_valid,
    input  logic [31:0]            redirect_map,
    input  logic [31:0]            redirect_key,
    input  logic [LANES-1:0]       load_valid,
    input  logic [LANES-1:0][63:0] load_address,
    input  logic [LANES-1:0][3:0]  load_bytes,
    output logic                   load_wait,
    output logic [LANES-1:0][63:0] load_data,
    output logic [LANES-1:0]       load_miss,
    input  logic [LANES-1:0]       store_valid,
    input  logic [LANES-1:0][63:0] store_address,
    input  logic [LANES-1:0][3:0]  store_bytes,
    input  logic [LANES-1:0][63:0] store_data,
    input  logic [1:0]             store_slot,
    output logic                   store_wait,
    output logic [LANES-1:0]       store_miss,
    input  logic                   service_valid,
    input  logic                   service_write,
    input  logic [31:0]            service_address,
    input  logic [31:0]            service_enable,
    input  logic [255:0]           service_wdata,
    output logic                   service_ready,
    output logic [255:0]           service_rdata,
    output logic                   service_miss,
    output logic                   event_packet,
    output logic                   event_done,
    output logic [31:0]            event_verdict,
    output logic [2:0]             event_stop,
    output logic                   event_oversize,
    output logic                   idle,
    output logic                   atomic_done,
    output logic                   atomic_miss,
    output logic [63:0]            atomic_old
);
  logic beat_valid, beat_ready, beat_last, fill_valid, fill_ready, emit_valid, emit_ready;
  logic [255:0] beat_data, fill_data, emit_data;
  logic [5:0] beat_bytes;
  logic [31:0] beat_ifindex, beat_queue;
  logic [1:0] fill_slot, emit_slot;
  logic [11:0] fill_offset, emit_offset;
  logic [sephirot_pkg::SLOTS-1:0] stores_pending;
  input_queue arriving (.*);
  packet_selector selector (.*);
  data_memory #(
      .LANES(LANES)
  ) memory (
      .*,
      .load_hold(1'b0),
      .atomic_valid(1'b0),
      .atomic_address(64'd0),
      .atomic_wide(1'b0),
      .atomic_operation(8'd0),
      .atomic_operand(64'd0),
      .atomic_expected(64'd0),
      .frame(3'd0),
      .frame_clear(1'b0),
      .stack_clear(1'b0),
      // No other core shares the maps.
      /* verilator lint_off PINCONNECTEMPTY */
      .map_store(),
      .map_store_go(1'b1),
      .map_window(),
      .map_window_go(1'b1),
      .map_window_write(),
      .map_window_done(),
      .map_busy(1'b0),
      .map_in_enable('0),
      .map_in_row('0),
      .map_in_data('0),
      .map_out_enable(),
      .map_out_row(),
      .map_out_data(),
      .stores_waiting()
      /* verilator lint_on PINCONNECTEMPTY */
  );
endmodule
