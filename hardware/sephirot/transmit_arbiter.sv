// SPDX-License-Identifier: Apache-2.0 OR MIT
// Merges the output of several cores onto one bus: packets in turn, each as a whole. (hXDP, OSDI
// 2020, section 4.1.2, has one core, whose selector emits.) Packets of one core keep their order.

module transmit_arbiter #(
    parameter int CORES = 4,
    // Bits of a beat, except for the mark of the last one.
    parameter int BEAT_BITS = 401
) (
    input  logic                            clk,
    input  logic                            rst,
    input  logic [CORES-1:0]                in_valid,
    output logic [CORES-1:0]                in_ready,
    input  logic [CORES-1:0]                in_last,
    input  logic [CORES-1:0][BEAT_BITS-1:0] in_beat,
    output logic                            out_valid,
    input  logic                            out_ready,
    output logic                            out_last,
    output logic [BEAT_BITS-1:0]            out_beat
);
  localparam int BITS = CORES > 1 ? $clog2(CORES) : 1;
  logic [BITS-1:0] turn, number, after;
  logic [CORES-1:0] first, current, kept;
  logic is_kept;
  rotation #(.COUNT(CORES)) next (.asks(in_valid), .turn, .first, .number, .after);
  assign current = is_kept ? kept : first;
  assign out_valid = (current & in_valid) != '0;
  assign out_last = (current & in_last) != '0;
  assign in_ready = out_ready ? current : '0;
  always_comb begin
    out_beat = '0;
    for (int c = 0; c < CORES; c++) if (current[c]) out_beat = out_beat | in_beat[c];
  end

  // The offered beat and the selected core are held, up to the packet's last beat.
  always_ff @(posedge clk)
    if (rst) begin
      is_kept <= 1'b0;
      turn <= '0;
    end else begin
      if (!is_kept && out_valid) turn <= after;
      if (is_kept || out_valid) is_kept <= !(out_valid && out_ready && out_last);
    end
  always_ff @(posedge clk) if (!is_kept) kept <= first;

  /* verilator lint_off UNUSEDSIGNAL */
  wire unused = ^number;
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
