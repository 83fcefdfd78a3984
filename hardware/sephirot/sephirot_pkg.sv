// SPDX-License-Identifier: Apache-2.0 OR MIT
// Constants shared by all modules of the small processor: regions of its address space, memory
// sizes, kinds of maps, and reasons for stopping programs. docs/internals/sephirot.md describes
// them.

package sephirot_pkg;
  // No module needs all of it.
  /* verilator lint_off UNUSEDPARAM */
  // Addresses have 64 bits, of which the upper 32 are zero; bits 31 to 28 select the region.
  localparam logic [3:0] REGION_PACKET = 4'h1;
  localparam logic [3:0] REGION_STACK = 4'h2;
  localparam logic [3:0] REGION_CONTEXT = 4'h3;
  localparam logic [3:0] REGION_MAPS = 4'h4;
  // No memory: bits 15 to 0 are the number of a map.
  localparam logic [3:0] REGION_MAP_HANDLE = 4'h5;

  // A packet lies in a slot of 4 KiB, initially from byte 256 on.
  localparam int SLOT_BITS = 12;
  localparam int SLOTS = 4;
  localparam int HEADROOM = 256;
  // Maximum end of a packet, limited by the kernel's use of a page.
  localparam int PACKET_END = 4096 - 320;

  // Frames of the stack, one for each call of a function.
  localparam int FRAME_BYTES = 512;
  localparam int FRAMES = 8;

  // Bytes of a beat on the network's bus, and of a window of memory.
  localparam int BEAT = 32;

  // struct xdp_md
  localparam int CONTEXT_BYTES = 24;

  // Kinds of maps, bits 5 to 0 of a map's first word in the table. Bit 6: values are devices to all
  // of which a packet may be sent; bit 7: they are handles of maps, of 8 bytes, 0 for none.
  localparam logic [7:0] MAP_NONE = 8'd0;
  localparam logic [7:0] MAP_ARRAY = 8'd1;
  localparam logic [7:0] MAP_HASH = 8'd2;
  localparam logic [7:0] MAP_LRU_HASH = 8'd3;
  localparam logic [7:0] MAP_LPM = 8'd4;
  // Devices, processors and sockets by number: an entry is a word that tells whether it exists, and
  // a value.
  localparam logic [7:0] MAP_SPARSE = 8'd5;
  // The same, with first rows of programs.
  localparam logic [7:0] MAP_PROGRAMS = 8'd6;
  // Values without keys, removed in the order of insertion or in reverse.
  localparam logic [7:0] MAP_QUEUE = 8'd7;
  localparam logic [7:0] MAP_STACK = 8'd8;
  // Bloom filter: a word for each hash.
  localparam logic [7:0] MAP_BLOOM = 8'd9;

  // Reasons for stopping a program with XDP_ABORTED.
  localparam logic [2:0] STOP_NONE = 3'd0;
  localparam logic [2:0] STOP_MEMORY = 3'd1;       // an access outside of all memory
  localparam logic [2:0] STOP_WATCHDOG = 3'd2;     // too many cycles
  localparam logic [2:0] STOP_ROW = 3'd3;          // a row outside of the program
  localparam logic [2:0] STOP_INSTRUCTION = 3'd4;  // an invalid operation
  localparam logic [2:0] STOP_HELPER = 3'd5;       // a helper that does not exist
  localparam logic [2:0] STOP_DEPTH = 3'd6;        // more calls of functions than frames

  localparam logic [31:0] XDP_ABORTED = 32'd0;
  localparam logic [31:0] XDP_REDIRECT = 32'd4;
  /* verilator lint_on UNUSEDPARAM */
endpackage
