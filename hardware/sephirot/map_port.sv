// SPDX-License-Identifier: Apache-2.0 OR MIT
// Arbitrates writes to maps among several cores, each of which has a copy of them (the publication,
// hXDP, has one core; its map memory, OSDI 2020, section 4.1, is shared here). A write of one core
// goes to all copies in the same cycle, so all cores see the same order of writes, and loads never
// wait.
//
// Stores take turns, one row of them per cycle. Atomic operations and helpers request a cycle ahead
// and own the maps until they have written: stores of other cores do not change maps in that time.
// Between two owners there is a cycle for stores, so that no core starves. Packet accesses of cores
// are independent of this; writes to their stacks, which share a memory with their copy of the
// maps, wait only for the cycles in which other cores write.

module map_port #(
    parameter int CORES = 4,
    parameter int ROW_BITS = 8
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [CORES-1:0]                    map_store,
    output logic [CORES-1:0]                    map_store_go,
    input  logic [CORES-1:0]                    map_window,
    output logic [CORES-1:0]                    map_window_go,
    input  logic [CORES-1:0]                    map_window_write,
    input  logic [CORES-1:0]                    map_window_done,
    output logic [CORES-1:0]                    map_busy,
    // Writes of each core, at any time.
    input  logic [CORES-1:0][3:0][7:0]          map_out_enable,
    input  logic [CORES-1:0][3:0][ROW_BITS-1:0] map_out_row,
    input  logic [CORES-1:0][3:0][63:0]         map_out_data,
    output logic [CORES-1:0][3:0][7:0]          map_in_enable,
    output logic [CORES-1:0][3:0][ROW_BITS-1:0] map_in_row,
    output logic [CORES-1:0][3:0][63:0]         map_in_data
);
  localparam int BITS = CORES > 1 ? $clog2(CORES) : 1;

  logic [CORES-1:0] owner, stores, next_owner;
  logic [BITS-1:0] store_turn, owner_turn, store_number, owner_number, after_store, after_owner;
  assign stores = owner == '0 ? map_store : map_store & owner;
  rotation #(.COUNT(CORES)) storing (
      .asks(stores), .turn(store_turn), .first(map_store_go), .number(store_number),
      .after(after_store)
  );
  rotation #(.COUNT(CORES)) owning (
      .asks(map_window), .turn(owner_turn), .first(next_owner), .number(owner_number),
      .after(after_owner)
  );
  assign map_window_go = owner;
  always_ff @(posedge clk)
    if (rst) begin
      owner <= '0;
      store_turn <= '0;
      owner_turn <= '0;
    end else begin
      if (map_store_go != '0) store_turn <= after_store;
      if (owner == '0) begin
        owner <= next_owner;
        if (next_owner != '0) owner_turn <= after_owner;
      end else if ((owner & (map_window_done | ~map_window)) != '0) owner <= '0;
    end

  // An owner's own stores go before the operation for which it owns the maps.
  logic [CORES-1:0] writes;
  assign writes = map_store_go | map_window_write;
  genvar core;
  generate
    for (core = 0; core < CORES; core++) begin : g_core
      assign map_busy[core] = (writes & ~(CORES'(1) << core)) != '0;
    end
  endgenerate

  // At most one core writes, and its own copy has the write already.
  logic [3:0][7:0] enable;
  logic [3:0][ROW_BITS-1:0] row;
  logic [3:0][63:0] data;
  always_comb begin
    enable = '0;
    row = '0;
    data = '0;
    for (int c = 0; c < CORES; c++)
      if (writes[c]) begin
        enable = enable | map_out_enable[c];
        row = row | map_out_row[c];
        data = data | map_out_data[c];
      end
  end
  assign map_in_enable = {CORES{enable}};
  assign map_in_row = {CORES{row}};
  assign map_in_data = {CORES{data}};

  /* verilator lint_off UNUSEDSIGNAL */
  wire unused = ^{store_number, owner_number};
  /* verilator lint_on UNUSEDSIGNAL */
`ifdef VERILATOR
  always_ff @(posedge clk)
    if (!rst && $countones(writes) > 1) $error("two cores write to maps");
`endif
endmodule
