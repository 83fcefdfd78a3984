// SPDX-License-Identifier: Apache-2.0 OR MIT
// Queue of arriving beats until a slot of packet memory is free. (hXDP, section 4.1.1, the
// programmable input queue; its policy is first come, first served.)

module input_queue #(
    parameter int DEPTH = 64
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         rx_valid,
    output logic         rx_ready,
    input  logic [255:0] rx_data,
    input  logic [5:0]   rx_bytes,
    input  logic         rx_last,
    input  logic [31:0]  rx_ifindex,
    input  logic [31:0]  rx_queue,
    output logic         beat_valid,
    input  logic         beat_ready,
    output logic [255:0] beat_data,
    output logic [5:0]   beat_bytes,
    output logic         beat_last,
    output logic [31:0]  beat_ifindex,
    output logic [31:0]  beat_queue
);
  localparam int BITS = $clog2(DEPTH);

  (* ram_style = "distributed" *) logic [326:0] memory[0:DEPTH-1];
  // One bit more than a position has, to distinguish full from empty.
  logic [BITS:0] written, read;
  assign rx_ready = written - read != (BITS + 1)'(DEPTH);
  assign beat_valid = written != read;
  assign {beat_queue, beat_ifindex, beat_last, beat_bytes, beat_data} = memory[read[BITS-1:0]];

  always_ff @(posedge clk)
    if (rx_valid && rx_ready)
      memory[written[BITS-1:0]] <= {rx_queue, rx_ifindex, rx_last, rx_bytes, rx_data};
  always_ff @(posedge clk)
    if (rst) begin
      written <= '0;
      read <= '0;
    end else begin
      if (rx_valid && rx_ready) written <= written + 1'b1;
      if (beat_valid && beat_ready) read <= read + 1'b1;
    end

`ifdef VERILATOR
  always_ff @(posedge clk)
    if (!rst && rx_valid && (rx_bytes > 6'd32 || (!rx_last && rx_bytes != 6'd32)))
      $error("a beat of %0d bytes", rx_bytes);
`endif
endmodule
