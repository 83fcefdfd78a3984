// SPDX-License-Identifier: Apache-2.0 OR MIT
// Selects the current packet, keeps its bounds, and carries out its verdict. (hXDP, section 4.1.2,
// the active packet selector; section 4.2, early start: a program begins with the first beat.)
//
// There are four slots of packet memory, so that packets can arrive while one is processed and
// another one is emitted. Packets begin, end and are emitted in the order of arrival, but the slot
// of a dropped packet is free at once, even while an earlier one is being emitted.

module packet_selector (
    input  logic             clk,
    input  logic             rst,
    input  logic             emit_all,
    // From the input queue
    input  logic             beat_valid,
    output logic             beat_ready,
    input  logic [255:0]     beat_data,
    input  logic [5:0]       beat_bytes,
    input  logic             beat_last,
    input  logic [31:0]      beat_ifindex,
    input  logic [31:0]      beat_queue,
    // The current packet
    output logic             packet_ready,
    input  logic             packet_begin,
    input  logic             packet_done,
    input  logic [31:0]      packet_verdict,
    input  logic [2:0]       packet_stop,
    output logic [1:0]       packet_slot,
    output logic [11:0]      packet_data,
    output logic [11:0]      packet_end,
    output logic [11:0]      packet_meta,
    output logic [12:0]      packet_arrived,
    output logic             packet_complete,
    output logic [31:0]      packet_ifindex,
    output logic [31:0]      packet_queue,
    input  logic             set_valid,
    input  logic [11:0]      set_data,
    input  logic [11:0]      set_end,
    input  logic [11:0]      set_meta,
    input  logic             redirect_valid,
    input  logic [31:0]      redirect_map,
    input  logic [31:0]      redirect_key,
    // Packet memory
    output logic             fill_valid,
    output logic [1:0]       fill_slot,
    output logic [11:0]      fill_offset,
    output logic [255:0]     fill_data,
    input  logic             fill_ready,
    output logic             emit_valid,
    output logic [1:0]       emit_slot,
    output logic [11:0]      emit_offset,
    input  logic             emit_ready,
    input  logic [255:0]     emit_data,
    input  logic [sephirot_pkg::SLOTS-1:0] stores_pending,
    // To the network
    output logic             tx_valid,
    input  logic             tx_ready,
    output logic [255:0]     tx_data,
    output logic [5:0]       tx_bytes,
    output logic             tx_last,
    output logic [31:0]      tx_verdict,
    output logic [2:0]       tx_stop,
    output logic [7:0]       tx_meta,
    output logic [31:0]      tx_map,
    output logic [31:0]      tx_key,
    output logic [31:0]      tx_ifindex,
    // Events
    output logic             event_packet,
    output logic             event_done,
    output logic [31:0]      event_verdict,
    output logic [2:0]       event_stop,
    output logic             event_oversize,
    output logic             idle
);
  // State of each slot
  logic [sephirot_pkg::SLOTS-1:0] busy, complete, quiet, redirected;
  logic [sephirot_pkg::SLOTS-1:0][11:0] data, meta, limit;
  logic [sephirot_pkg::SLOTS-1:0][12:0] arrived;
  (* ram_style = "distributed" *) logic [63:0] origin[0:sephirot_pkg::SLOTS-1];
  (* ram_style = "distributed" *) logic [63:0] target[0:sephirot_pkg::SLOTS-1];
  (* ram_style = "distributed" *) logic [34:0] outcome[0:sephirot_pkg::SLOTS-1];

  // Slots in the order of their packets: `came` counts arrivals, then packets begin and are done.
  // Those to be emitted are in a separate queue.
  logic [sephirot_pkg::SLOTS-1:0][1:0] order, leaving;
  logic [2:0] came, begun, done, left, sent;

  // A slot is not reused for two cycles after its packet is done: rows in decode and execute may
  // still store to it.
  logic [sephirot_pkg::SLOTS-1:0] settling, settling_more;
  logic [sephirot_pkg::SLOTS-1:0] usable;
  assign usable = ~busy & ~settling & ~settling_more & ~stores_pending;

  // -------------------------------------------------------------------------------- arriving

  logic filling, swallowing, oversize, accepted, first_beat;
  logic [1:0] filled_slot, free_slot;
  logic [11:0] next_offset;
  always_comb begin
    // The next slot after the last one that was filled, if it is free.
    free_slot = filled_slot;
    for (int i = 0; i < sephirot_pkg::SLOTS; i++)
      if (usable[filled_slot - 2'(i)]) free_slot = filled_slot - 2'(i);
  end
  assign first_beat = !filling;
  assign fill_slot = filling ? filled_slot : free_slot;
  assign fill_offset = filling ? next_offset : 12'(sephirot_pkg::HEADROOM);
  assign fill_data = beat_data;
  assign oversize = beat_valid && filling && next_offset == 12'(sephirot_pkg::PACKET_END) &&
                    beat_bytes != 6'd0;
  assign fill_valid = beat_valid && !swallowing && !oversize &&
                      (filling || usable != '0);
  assign accepted = fill_valid && fill_ready;
  assign beat_ready = swallowing || oversize || accepted;
  assign event_packet = accepted && first_beat;
  assign event_oversize = oversize;

  // A packet that is too long and has not begun is dropped. If it has begun, it continues as if it
  // ended where the room ends, but it is not emitted.
  logic forgotten, cut;
  assign forgotten = oversize && begun != came;
  assign cut = oversize && !forgotten;

  // ------------------------------------------------------------------------ current packet

  logic [1:0] done_slot;
  logic emits, done_frees, done_filling;
  assign done_slot = order[done[1:0]];
  assign emits = emit_all || packet_verdict == 32'd2 || packet_verdict == 32'd3 ||
                 packet_verdict == sephirot_pkg::XDP_REDIRECT;
  assign done_frees = packet_done && !emits;
  // The packet ends before all of it has arrived: the rest is not needed.
  assign done_filling = done_frees && filling && done_slot == filled_slot;

  // A packet that is being dropped does not begin; the state of another one is not needed for that.
  assign packet_ready = begun != came && !(oversize && begun + 3'd1 == came);
  assign packet_data = data[packet_slot];
  assign packet_end = limit[packet_slot];
  assign packet_meta = meta[packet_slot];
  assign packet_arrived = arrived[packet_slot];
  assign packet_complete = complete[packet_slot];
  assign {packet_queue, packet_ifindex} = origin[packet_slot];
  assign event_done = packet_done;
  assign event_verdict = packet_verdict;
  assign event_stop = packet_stop;

  always_ff @(posedge clk)
    if (rst) begin
      filling <= 1'b0;
      swallowing <= 1'b0;
      filled_slot <= 2'd3;
    end else begin
      if (accepted) begin
        filling <= !beat_last && !done_filling;
        filled_slot <= fill_slot;
        if (done_filling) swallowing <= !beat_last;
      end else if (oversize) begin
        filling <= 1'b0;
        swallowing <= !beat_last;
      end else if (done_filling) begin
        filling <= 1'b0;
        swallowing <= 1'b1;
      end else if (swallowing && beat_valid && beat_last) swallowing <= 1'b0;
    end
  always_ff @(posedge clk)
    if (accepted) next_offset <= fill_offset + 12'(sephirot_pkg::BEAT);

  // ------------------------------------------------------------------------------- emission

  logic start, start_ready, emit_finish, emitter_idle;
  logic [1:0] leaving_slot;
  logic leaving_ready, skip;
  logic [138:0] start_info, tx_info;
  logic [11:0] start_meta;
  logic [63:0] leaving_target;
  logic [31:0] leaving_ifindex;
  assign leaving_slot = leaving[sent[1:0]];
  assign leaving_ready = left != sent && complete[leaving_slot] && !settling[leaving_slot] &&
                         !settling_more[leaving_slot] && !stores_pending[leaving_slot];
  assign skip = leaving_ready && quiet[leaving_slot];
  assign start = leaving_ready && !quiet[leaving_slot];
  assign start_meta = meta[leaving_slot];
  // No device, if no target was set.
  assign leaving_target = redirected[leaving_slot] ? target[leaving_slot] : {32'hffff_ffff, 32'd0};
  assign leaving_ifindex = 32'(origin[leaving_slot]);
  assign start_info = {outcome[leaving_slot], 8'(data[leaving_slot] - start_meta), leaving_target,
                       leaving_ifindex};
  assign {tx_verdict, tx_stop, tx_meta, tx_map, tx_key, tx_ifindex} = tx_info;

  emitter #(
      .INFO_BITS(139)
  ) emission (
      .clk, .rst, .start_valid(start), .start_ready, .start_slot(leaving_slot),
      .start_offset(start_meta), .start_length(limit[leaving_slot] - start_meta), .start_info,
      .finish(emit_finish), .idle(emitter_idle), .emit_valid, .emit_slot, .emit_offset,
      .emit_ready, .emit_data, .tx_valid, .tx_ready, .tx_data, .tx_bytes, .tx_last, .tx_info
  );

  // ---------------------------------------------------------------------------------- slots

  always_ff @(posedge clk)
    if (rst) begin
      busy <= '0;
      came <= 3'd0;
      begun <= 3'd0;
      done <= 3'd0;
      left <= 3'd0;
      sent <= 3'd0;
      settling <= '0;
      settling_more <= '0;
      packet_slot <= 2'd0;
    end else begin
      settling <= packet_done ? sephirot_pkg::SLOTS'(1) << done_slot : '0;
      settling_more <= settling;
      if (emit_finish) busy[emit_slot] <= 1'b0;
      if (skip) busy[leaving_slot] <= 1'b0;
      if (done_frees) busy[done_slot] <= 1'b0;
      if (forgotten) begin
        busy[filled_slot] <= 1'b0;
        came <= came - 3'd1;
      end
      if (event_packet) begin
        busy[fill_slot] <= 1'b1;
        order[came[1:0]] <= fill_slot;
        came <= came + 3'd1;
      end
      if (packet_begin) begin
        packet_slot <= order[begun[1:0]];
        begun <= begun + 3'd1;
      end
      if (packet_done) begin
        done <= done + 3'd1;
        if (emits) begin
          leaving[left[1:0]] <= done_slot;
          left <= left + 3'd1;
        end
      end
      if (skip || (start && start_ready)) sent <= sent + 3'd1;
    end

  always_ff @(posedge clk) begin
    if (set_valid) begin
      data[packet_slot] <= set_data;
      meta[packet_slot] <= set_meta;
      // The end is unknown until the whole packet has arrived.
      if (packet_complete) limit[packet_slot] <= set_end;
    end
    if (accepted) begin
      arrived[fill_slot] <= 13'(fill_offset) + 13'(beat_bytes);
      complete[fill_slot] <= beat_last;
      limit[fill_slot] <= fill_offset + 12'(beat_bytes);
    end
    if (event_packet) begin
      data[fill_slot] <= 12'(sephirot_pkg::HEADROOM);
      meta[fill_slot] <= 12'(sephirot_pkg::HEADROOM);
      quiet[fill_slot] <= 1'b0;
    end
    if (cut) begin
      complete[filled_slot] <= 1'b1;
      quiet[filled_slot] <= 1'b1;
    end
    if (redirect_valid) redirected[packet_slot] <= 1'b1;
    if (packet_begin) redirected[order[begun[1:0]]] <= 1'b0;
  end
  always_ff @(posedge clk) if (event_packet) origin[fill_slot] <= {beat_queue, beat_ifindex};
  always_ff @(posedge clk)
    if (redirect_valid) target[packet_slot] <= {redirect_map, redirect_key};
  always_ff @(posedge clk) if (packet_done) outcome[done_slot] <= {packet_verdict, packet_stop};

  assign idle = busy == '0 && !filling && !swallowing && emitter_idle;

`ifdef VERILATOR
  always_ff @(posedge clk)
    if (!rst) begin
      if (packet_begin && !packet_ready) $error("a packet begins that is not there");
      if (packet_done && done == begun) $error("a packet is done that has not begun");
      if (set_valid && (set_meta > set_data || (packet_complete && set_data > set_end)))
        $error("a packet from %0d, %0d to %0d", set_meta, set_data, set_end);
    end
`endif
endmodule
