// SPDX-License-Identifier: Apache-2.0 OR MIT
// The table of maps: the publication's configurator of the maps subsystem (hXDP, OSDI 2020, section
// 4.1). All maps share one memory; a row has a map's place in it and the format of its entries. The
// host writes rows when a program is loaded, `map_engine` reads the row of its current map, and the
// core reads the start of entries (for constants that are addresses of values).

module map_table #(
    parameter int MAPS = 32
) (
    input  logic clk,
    input  logic rst,
    // The host's access. `table_rdata` is combinational: it is valid in the cycle of `table_valid`.
    input  logic table_valid,
    input  logic table_write,
    input  logic [15:0] table_map,
    input  logic [2:0] table_word,
    input  logic [63:0] table_wdata,
    output logic [63:0] table_rdata,
    // The core's lookup, combinational.
    input  logic [15:0] map_base_index,
    output logic [31:0] map_base,
    // The engine's current row, combinational.
    input  logic [15:0] row_map,
    output logic [7:0] row_kind,
    output logic row_holds_devices,
    output logic row_holds_maps,
    output logic [15:0] row_key_bytes,
    output logic [31:0] row_value_bytes,
    output logic [31:0] row_entries,
    output logic [31:0] row_base,
    output logic [31:0] row_stride,
    output logic [31:0] row_mask,
    output logic [31:0] row_heads,
    output logic [31:0] row_links,
    output logic [31:0] row_used,
    output logic [31:0] row_free,
    output logic [31:0] row_hand,
    output logic [128:0] row_lengths,
    // Whether each core has separate values.
    output logic row_by_core,
    // Changes of an engine to its row: this core's engine, or that of another core's copy.
    input  logic commit_valid,
    input  logic [15:0] commit_map,
    input  logic [31:0] commit_used,
    input  logic [31:0] commit_free,
    input  logic [31:0] commit_hand,
    input  logic [128:0] commit_lengths
);
  localparam int INDEX = MAPS > 1 ? $clog2(MAPS) : 1;

  // LUT RAM: several words of a row are read in one cycle.
  logic [56:0] shape [0:MAPS-1];
  logic [31:0] entries [0:MAPS-1];
  logic [31:0] base [0:MAPS-1];
  logic [31:0] stride [0:MAPS-1];
  logic [31:0] mask [0:MAPS-1];
  logic [31:0] heads [0:MAPS-1];
  logic [31:0] links [0:MAPS-1];
  // Number of entries ever used, first free entry + 1, entry to be evicted next, existing prefix
  // lengths.
  logic [31:0] used [0:MAPS-1];
  logic [31:0] free [0:MAPS-1];
  logic [31:0] hand [0:MAPS-1];
  logic [128:0] lengths [0:MAPS-1];
  // Memory cannot be reset: rows that were never written have no kind.
  logic [MAPS-1:0] is_there;

  function automatic logic known(input logic [15:0] map);
    known = 32'(map) < MAPS;
  endfunction

  logic [INDEX-1:0] host_row, core_row, engine_row;
  assign host_row = table_map[INDEX-1:0];
  assign core_row = map_base_index[INDEX-1:0];
  assign engine_row = row_map[INDEX-1:0];

  logic write, begins;
  assign write = table_valid && table_write && known(table_map);
  // Writing a map's kind empties it.
  assign begins = write && table_word == 3'd0;

  always_ff @(posedge clk) begin
    if (rst) is_there <= '0;
    else if (begins) is_there[host_row] <= 1'b1;
    if (begins) shape[host_row] <= table_wdata[56:0];
    if (write && table_word == 3'd1) entries[host_row] <= table_wdata[31:0];
    if (write && table_word == 3'd2) base[host_row] <= table_wdata[31:0];
    if (write && table_word == 3'd3) stride[host_row] <= table_wdata[31:0];
    if (write && table_word == 3'd4) mask[host_row] <= table_wdata[31:0];
    if (write && table_word == 3'd5) heads[host_row] <= table_wdata[31:0];
    if (write && table_word == 3'd6) links[host_row] <= table_wdata[31:0];
  end

  logic state_write;
  logic [INDEX-1:0] state_row;
  assign state_write = begins || commit_valid;
  assign state_row = begins ? host_row : commit_map[INDEX-1:0];
  always_ff @(posedge clk) begin
    if (state_write) begin
      used[state_row] <= begins ? 32'd0 : commit_used;
      free[state_row] <= begins ? 32'd0 : commit_free;
      hand[state_row] <= begins ? 32'd0 : commit_hand;
      lengths[state_row] <= begins ? 129'd0 : commit_lengths;
    end
  end

  always_comb begin
    case (table_word)
      3'd0: table_rdata = is_there[host_row] ? {7'd0, shape[host_row]} : 64'd0;
      3'd1: table_rdata = {32'd0, entries[host_row]};
      3'd2: table_rdata = {32'd0, base[host_row]};
      3'd3: table_rdata = {32'd0, stride[host_row]};
      3'd4: table_rdata = {32'd0, mask[host_row]};
      3'd5: table_rdata = {32'd0, heads[host_row]};
      3'd6: table_rdata = {32'd0, links[host_row]};
      default: table_rdata = {free[host_row], used[host_row]};
    endcase
    if (!known(table_map)) table_rdata = '0;
  end

  assign map_base = base[core_row];

  assign row_kind = known(row_map) && is_there[engine_row] ? {2'd0, shape[engine_row][5:0]}
      : sephirot_pkg::MAP_NONE;
  assign {row_holds_maps, row_holds_devices} = shape[engine_row][7:6];
  assign row_key_bytes = shape[engine_row][23:8];
  assign row_value_bytes = shape[engine_row][55:24];
  assign row_by_core = shape[engine_row][56];
  assign row_entries = entries[engine_row];
  assign row_base = base[engine_row];
  assign row_stride = stride[engine_row];
  assign row_mask = mask[engine_row];
  assign row_heads = heads[engine_row];
  assign row_links = links[engine_row];
  assign row_used = used[engine_row];
  assign row_free = free[engine_row];
  assign row_hand = hand[engine_row];
  assign row_lengths = lengths[engine_row];

  // Map numbers have 16 bits wherever they come from; the lower ones select a row. Bits 63 to 57 of
  // word 0 are unused.
  /* verilator lint_off UNUSEDSIGNAL */
  wire unused = ^{map_base_index, row_map, commit_map, table_wdata[63:57]};
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
