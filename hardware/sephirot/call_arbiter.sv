// SPDX-License-Identifier: Apache-2.0 OR MIT
// Arbitrates helper calls of several cores, each with its own helper unit (hXDP, OSDI 2020, section
// 4.1, has one helper unit for its one core). Calls that only read maps run concurrently; a call
// that changes a map, or a command of the host, runs only together with calls that do not use maps,
// so calls are atomic to each other. Waiting calls are served in turn.
//
// There is one lock for all values that contain one (`bpf_spin_lock`): requesters wait here. It is
// released by `bpf_spin_unlock`, when all earlier stores are in memory, or when the packet is done.

module call_arbiter #(
    parameter int CORES = 4
) (
    input  logic                  clk,
    input  logic                  rst,
    // A call is held until it is done; it begins in a cycle in which it is granted.
    input  logic [CORES-1:0]      call_valid,
    input  logic [CORES-1:0][7:0] call_helper,
    input  logic [CORES-1:0]      call_done,
    output logic [CORES-1:0]      call_go,
    input  logic                  command_valid,
    input  logic                  command_done,
    output logic                  command_go,
    input  logic [CORES-1:0]      packet_done,
    input  logic [CORES-1:0]      stores_waiting
);
  // The host has the last index.
  localparam int MANY = CORES + 1;
  localparam int BITS = $clog2(MANY);

  // Requests: to read maps, to change maps, or for the lock.
  logic [MANY-1:0] asks, changes, at_work, ends, goes, wanted, first;
  logic [CORES-1:0] lock_asks, lock_leaves, lock_go;
  always_comb begin
    changes = {1'b1, {CORES{1'b0}}};
    asks = {command_valid, {CORES{1'b0}}};
    for (int c = 0; c < CORES; c++) begin
      case (call_helper[c])
        8'd1, 8'd12, 8'd28, 8'd51, 8'd89, 8'd190: asks[c] = call_valid[c];
        // Packet bytes may be copied to a map.
        8'd2, 8'd3, 8'd87, 8'd88, 8'd189: begin
          asks[c] = call_valid[c];
          changes[c] = 1'b1;
        end
        default: ;
      endcase
      lock_asks[c] = call_valid[c] && call_helper[c] == 8'd93;
      lock_leaves[c] = call_valid[c] && call_helper[c] == 8'd94;
    end
  end
  assign ends = {command_done, call_done};

  // The waiting call whose turn it is decides: all calls that only read begin together.
  logic alone, free;
  logic [BITS-1:0] turn, number, after;
  assign wanted = asks & ~at_work;
  assign alone = (at_work & changes) != '0;
  assign free = at_work == '0;
  rotation #(.COUNT(MANY)) waiting (.asks(wanted), .turn, .first, .number, .after);
  assign goes = at_work | ((first & changes) != '0 ? (free ? first : '0)
                           : alone ? '0 : wanted & ~changes);
  always_ff @(posedge clk)
    if (rst) begin
      at_work <= '0;
      turn <= '0;
    end else begin
      at_work <= goes & asks & ~ends;
      if ((goes & wanted) != '0) turn <= after;
    end

  // The lock.
  logic [CORES-1:0] holder, next_holder;
  localparam int CORE_BITS = CORES > 1 ? $clog2(CORES) : 1;
  logic [CORE_BITS-1:0] lock_turn, lock_number, lock_after;
  rotation #(.COUNT(CORES)) locking (
      .asks(lock_asks), .turn(lock_turn), .first(next_holder), .number(lock_number),
      .after(lock_after)
  );
  assign lock_go = holder == '0 ? next_holder : holder;
  always_ff @(posedge clk)
    if (rst) begin
      holder <= '0;
      lock_turn <= '0;
    end else begin
      // The holder may complete its packet, or release the lock, in the cycle of the grant.
      holder <= (holder | (lock_go & lock_asks & call_done)) & ~packet_done &
                ~(lock_leaves & call_done);
      if (holder == '0 && next_holder != '0) lock_turn <= lock_after;
    end

  assign command_go = goes[CORES];
  always_comb
    for (int c = 0; c < CORES; c++)
      case (call_helper[c])
        8'd1, 8'd2, 8'd3, 8'd12, 8'd28, 8'd51, 8'd87, 8'd88, 8'd89, 8'd189, 8'd190:
        call_go[c] = goes[c];
        8'd93: call_go[c] = lock_go[c];
        8'd94: call_go[c] = !stores_waiting[c];
        default: call_go[c] = 1'b1;
      endcase

  /* verilator lint_off UNUSEDSIGNAL */
  wire unused = ^{number, lock_number};
  /* verilator lint_on UNUSEDSIGNAL */
endmodule
