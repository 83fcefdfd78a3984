// SPDX-License-Identifier: Apache-2.0 OR MIT
// For the bench of the core: the test programs.
#pragma once

// Each arithmetic operation, four in a row, with operands from constants.
static void arithmetic() {
  for (int turn = 0; turn < 1500; turn++) {
    u64 seed = any();
    Program program = {maps()};
    for (int r = 2; r < 6; r++) {
      u64 value = number();
      program.push_back(row({wide_low(r, value), wide_high(value)}));
    }
    program.push_back(row({}));
    Row operations = row({}), stores = row({});
    for (int lane = 0; lane < LANES; lane++) {
      static const int codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
      int code = codes[below(14)], cls = below(2) ? 4 : 7, reg = below(2) ? 8 : 0;
      int left = 2 + below(4), right = 2 + below(4), to = 6 + lane, variant = 0;
      u32 imm = u32(number());
      if (code == 3 || code == 9) variant = below(2);
      if (code == 8) reg = 0, imm = 0;
      if (code == 13) {
        if (cls == 7) reg = 0;
        static const u32 sizes[] = {16, 32, 64};
        imm = sizes[below(3)];
      }
      if (code == 11) {
        static const int moves[] = {0, 8, 16, 32};
        if (reg) variant = moves[below(cls == 7 ? 4 : 3)];
        operations[lane] = slot(0xb0 | reg | cls, to, reg ? right : 0, variant, imm);
      } else if (below(4) == 0 && code != 8 && code != 13) {
        // Two operands: zero on the left.
        operations[lane] = slot(code << 4 | reg | cls, to, reg ? right : 0, variant, imm);
      } else {
        int off = code << 4 | (reg && code != 13 ? right : 0) | variant << 8;
        operations[lane] = slot(0xe0 | reg | cls, to, left, off, imm);
      }
      stores[lane] = keeps(to, 8 * lane);
    }
    program.push_back(operations);
    program.push_back(stores);
    program.push_back(row({leave(3)}));
    compare(program, "arithmetic", seed);
  }
}

static void conditions() {
  static const int codes[] = {1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13};
  for (int turn = 0; turn < 800; turn++) {
    u64 a = number(), b = below(3) ? number() : a;
    bool near = below(2), exits = below(2), reg = below(2);
    int code = codes[below(11)], cls = below(2) ? 5 : 6;
    Program program = {row({wide_low(2, a), wide_high(a), wide_low(3, b), wide_high(b)})};
    if (!near) program.push_back(row({}));
    u64 jump = exits ? slot(0xe0 | reg << 3 | cls, 2, reg * 3, code << 12 | 77, u32(b))
                     : slot(code << 4 | reg << 3 | cls, 2, reg * 3, 1, u32(b));
    program.push_back(row({jump}));
    program.push_back(row({leave(1)}));
    program.push_back(row({leave(2)}));
    compare(program, "condition", turn);
  }
}

static void directed() {
  // All patterns of four jumps in a row, to rows and to exits, with operations between them,
  // decided in decode (far) or with a forwarded operand (near).
  for (int taken = 0; taken < 16; taken++) {
    for (int kind = 0; kind < 4; kind++) {
      Program program = {maps(), row({sets(2, taken & 1), sets(3, taken >> 1 & 1),
                                      sets(4, taken >> 2 & 1), sets(5, taken >> 3 & 1)})};
      if (kind & 1) program.push_back(row({}));
      Row jumps = row({});
      for (int lane = 0; lane < 4; lane++)
        jumps[lane] = kind & 2 ? slot(0xe5, 2 + lane, 0, 5 << 12 | (40 + lane), 0)
                               : slot(0x55, 2 + lane, 0, lane * 2, 0);
      program.push_back(jumps);
      for (int target = 0; target < 4; target++) {
        program.push_back(row({sets(6, 10 + target), slot(0x7a, 15, 0, 8 * target, 3)}));
        program.push_back(row({keeps(6, 32), leave(20 + target)}));
      }
      compare(program, "pattern " + std::to_string(taken), kind);
    }
  }
  // Lanes after a taken jump: no store, call, register write or exit; skipping is free.
  for (int taken = 0; taken < 2; taken++)
    for (int distance = 0; distance < 2; distance++)
      for (int near = 0; near < 2; near++) {
        Program program = {maps(), row({sets(2, taken), sets(7, 5)})};
        if (!near) program.push_back(row({}));
        program.push_back(row({slot(0x7a, 15, 0, 0, 1), slot(0x15, 2, 0, distance, 1),
                               slot(0x7a, 15, 0, 8, 2), slot(0x85, 0, 0, 0, 2)}));
        program.push_back(row({0, 0, slot(0xb7, 6, 0, 0, 9), slot(0x7a, 15, 0, 16, 4)}));
        program.push_back(row({keeps(6, 24), keeps(7, 32), slot(0xbf, 5, 0)}));
        program.push_back(row({leave(9)}));
        compare(program, "annulled", taken * 4 + distance * 2 + near);
      }
  // Forwarding across rows, to the base of a load, and of a loaded address.
  compare({maps(), row({0, sets(2, 5)}), row({0, slot(0x07, 2, 0, 0, 6)}),
           row({0, slot(0x0f, 2, 2)}), row({slot(0xbf, 3, 11), slot(0x27, 2, 0, 0, 7)}),
           row({slot(0x07, 3, 0, 0, 8), keeps(2, 0)}), row({slot(0x79, 4, 3, 8)}),
           row({slot(0xe7, 5, 4, 0x50, 63)}), row({slot(0x0f, 5, 11)}), row({slot(0x79, 6, 5, 1)}),
           row({slot(0x71, 7, 5, 0), slot(0x51, 8, 11, 2)}), row({keeps(6, 8), keeps(7, 16)}),
           row({keeps(8, 24), leave(2)})}, "forwarding", 1);
  compare({maps(), row({slot(0x7b, 15, 11, 0)}), row({}), row({slot(0x79, 2, 15, 0)}),
           row({slot(0x79, 3, 2, 4)}), row({keeps(3, 8), leave(1)})}, "a loaded address", 1);
  // After a jump that fetch or decode follows, all lanes see all writes.
  for (int obeyed = 0; obeyed < 2; obeyed++) {
    u64 jump = obeyed ? goes(1) : slot(0x15, 9, 0, 1, 0);
    compare({maps(), row({sets(1, 4)}), row({}), row({slot(0x3f, 6, 6),
             sets(2, 77), sets(1, 5), jump}),
             row({leave(2)}), row({keeps(2, 8), slot(0x85, 0, 0, 0, 28)}), row({keeps(0, 16),
             leave(1)})}, "all lanes behind a jump", obeyed);
    compare({maps(), row({sets(2, 77)}), row({}), row({slot(0x3f, 6, 6), keeps(2, 8), jump}),
             row({leave(2)}), row({slot(0x79, 3, 15, 8)}), row({keeps(3, 16), leave(1)})},
            "a load behind a jump", obeyed);
  }
  // Stops, and the effects of earlier lanes.
  u64 store = slot(0x7a, 15, 0, 0, 1), other = slot(0x7a, 15, 0, 8, 1);
  compare({maps(), row({store, slot(0x79, 2, 0, 0), other}), row({leave(2)})}, "load stops", 1);
  compare({maps(), row({store, slot(0xb9, 2, 0, 0), other}), row({keeps(2, 16)}),
           row({leave(2)})}, "speculative", 1);
  compare({maps(), row({store, slot(0x7a, 0, 0, 0), other}), row({leave(2)})}, "store stops", 1);
  compare({maps(), row({store, slot(0xdb, 0, 2, 0), other}), row({leave(2)})}, "atomic stops", 1);
  compare({maps(), row({store, slot(0x85, 0, 0, 0, 200), other}), row({leave(2)})}, "no helper", 1);
  compare({maps(), row({store}), row({})}, "beyond", 1);
  compare({maps(), row({store, goes(100)})}, "beyond by a jump", 1);
  compare({maps(), row({store, slot(0x06, 0, 0, 0, u32(-5))})}, "before the first", 1);
  // All opcodes after a store; a row after it is the target of jumps.
  for (int op = 1; op < 256; op++)
    compare({maps(), row({store, slot(op, 2, 0, op >> 4 == 14 ? 0x10 : 0, op == 0x18 ? 0 : 16),
                          0, other}), row({leave(2)})}, "opcode " + std::to_string(op), 1);
  compare({maps(), row({slot(0x7a, 15, 0, 16, 7), 0, 0, slot(0x18, 2)})}, "half a constant", 1);
  // A jump before an operation that would stop.
  compare({maps(), row({store, slot(0x15, 0, 0, 0, 0), slot(0x79, 2, 0, 0), slot(0xff)}),
           row({leave(2)})}, "annulled stops", 1);
  // Constants.
  compare({maps(), row({slot(0x08, 2, 2, 1, 5), slot(0x08, 3, 2, 2, 6), slot(0x08, 4, 1, 0, 3),
                        slot(0x08, 5, 2, 3, 7)}),
           row({keeps(2, 0), keeps(3, 8), keeps(4, 16), keeps(5, 24)}), row({leave(1)})},
          "values of maps", 1);
  // Helpers: registers, explicit arguments, result in the same lane.
  compare({maps(), row({sets(2, 7), sets(3, 8), sets(4, 9), sets(5, 10)}), row({}),
           row({0, slot(0x85, 0, 0, 0, 28), store}), row({0, keeps(0, 8)}),
           row({slot(0x8d, 1, 0, 4, 0x82450040)}), row({keeps(0, 16), sets(1, 4)}),
           row({slot(0x8d, 9, 1, 1, 0xff)}), row({keeps(0, 24), leave(4)})}, "helpers", 1);
  compare({maps(), row({slot(0x85, 0, 0, 0, 44)}), row({keeps(11, 0), slot(0x71, 2, 11, 0),
           slot(0xf6, 0, 0, 2, 97)}), row({keeps(2, 8)}), row({leave(1)}), row({leave(7)})},
          "the packet moves", 1);
  // Another program.
  compare({maps(), row({sets(2, 4), sets(7, 1), slot(0x7a, 10, 0, -8, 5)}),
           row({slot(0x85, 0, 0, 0, 12), other, leave(1)}), row({leave(1)}),
           row({slot(0x08, 15, 2), slot(0x79, 3, 10, -8)}), row({keeps(2, 0), keeps(7, 16),
           keeps(1, 24), keeps(10, 32)}), row({keeps(3, 40), leave(6)})}, "tail call", 1);
  // Functions: 6 to 10 are preserved, frames are zeroed, results are returned.
  compare({maps(), row({sets(6, 60), sets(1, 1), slot(0x7a, 10, 0, -8, 5)}),
           row({sets(7, 70), slot(0x85, 0, 1, 0, 6)}), row({keeps(6, 0), keeps(7, 8), keeps(0, 16),
           keeps(10, 24)}), row({slot(0x79, 2, 10, -8)}), row({keeps(2, 32), leave(5)}),
           row({slot(0x79, 8, 10, -8), slot(0xbf, 0, 1), sets(6, 99), slot(0x7a, 10, 0, -8, 6)}),
           row({keeps(10, 40), keeps(8, 48), slot(0x07, 0, 0, 0, 3), slot(0x95)})}, "function", 1);
  compare({maps(), row({slot(0x07, 1, 0, 0, 1)}), row({keeps(1, 0), slot(0x85, 0, 1, 0, 1)})},
          "too deep", 1);
  compare({maps(), row({slot(0x07, 2, 0, 0, 1), slot(0x85, 0, 1, 0, 4)}), row({slot(0x0f, 3, 0)}),
           row({keeps(3, 0), slot(0x95)}), row({slot(0x15, 2, 0, 2, 7)}), row({
           slot(0x07, 2, 0, 0, 1), slot(0x85, 0, 1, 0, 4)}), row({slot(0x07, 0, 0, 0, 5),
           slot(0x95)}), row({slot(0xb7, 0, 0, 0, 1), slot(0x95)})}, "recursion", 1);
  // Addresses that the previous row loads, or receives from a helper, in the same lane.
  Row given = row({slot(0x85, 0, 0, 0, 51)}), loaded = row({slot(0x79, 0, 10, -8)});
  for (const Row &before : {given, loaded})
    for (u64 there : {slot(0x79, 2, 0, 2), slot(0x7b, 0, 9, 16), slot(0x7a, 0, 0, 8, 5),
                      slot(0xdb, 0, 9, 24)})
      compare({maps(), row({slot(0xbf, 1, 11), sets(9, 77)}), row({slot(0x7b, 10, 11, -8)}),
               row({}), before, row({there}), row({keeps(2, 0), keeps(0, 8), leave(3)})},
              "address that has just come", 1);
  // Exits with register 0, and length checks.
  for (u32 n : {0u, 1u, 31u, 32u, 33u, 99u, 100u, 101u, 5000u, u32(-1)})
    for (int op : {0xf5, 0xf6, 0xfd, 0xfe})
      for (int near = 0; near < 2; near++) {
        Program program = {row({slot(0xe7, 2, 11, 0, 1)})};
        if (!near) program.push_back(row({}));
        program.push_back(row({slot(op, op & 2 ? 0 : 2, 0, 1, n)}));
        program.push_back(row({sets(0, 5)}));
        program.push_back(row({slot(0x95)}));
        compare(program, "bound", n);
      }
}

// Random rows of operations that may share a row; jumps lead forward.
static void random_program(u64 seed) {
  random_bits.seed(seed);
  Program program = {row({slot(0x08, 15, 2), slot(0xe7, 13, 10, 0, u32(-128))}),
                     row({slot(0xbf, 14, 11), slot(0x79, 2, 11, 0), slot(0x79, 3, 11, 8),
                                  slot(0x69, 4, 11, 3)})};
  int count = 5 + below(25);
  bool stored = false;
  for (int at = 0; at < count; at++) {
    Row slots = row({});
    int written = 0, read = 0, touched = -1;
    bool stores = false, loads = !stored && below(2), called = false;
    for (int lane = 0; lane < LANES; lane++) {
      int dst = below(10), src = below(10), right = below(10);
      int code = below(13), cls = below(2) ? 4 : 7, left = count - at;
      auto fits = [&](int reads, int writes) {
        if ((reads & written) || (writes & (read | written))) return false;
        read |= reads;
        written |= writes;
        return true;
      };
      u64 found = 0;
      switch (below(9)) {
        case 0: case 1: case 2:
          if (code == 11 || code == 8) break;
          if (fits(1 << src | 1 << right, 1 << dst))
            found = slot(0xe8 | cls, dst, src, code << 4 | right);
          break;
        case 3:
          if (code == 11 || code == 8) break;
          if (fits(1 << dst, 1 << dst)) found = slot(code << 4 | cls, dst, 0, 0, u32(number()));
          break;
        case 4: {
          static const int opcodes[] = {0x61, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91, 0x01, 0x21, 0xb9,
                                        0x51};
          if (loads && fits(0, 1 << dst))
            found = slot(opcodes[below(11)], dst, 13 + below(3), below(92));
          break;
        }
        case 5: {
          static const int opcodes[] = {0x63, 0x6b, 0x73, 0x7b, 0x03};
          if (!loads && ++touched < 4 && fits(1 << src, 0))
            found = slot(opcodes[below(5)], 13 + below(3), src, touched * 8),
            stores = true;
          break;
        }
        case 6: {
          static const u32 operations[] = {0, 1, 0x40, 0x51, 0xa1, 0xe1, 0xf1};
          u32 operation = operations[below(7)];
          int writes = operation == 0xf1 ? 1 : operation & 1 ? 1 << src : 0;
          int reads = 1 << src | (operation == 0xf1 ? 1 : 0);
          if (!loads && ++touched < 4 && !(reads & written) && !(writes & (read | written))) {
            read |= reads & ~writes;
            written |= writes;
            found = slot(below(2) ? 0xdb : 0xc3, 15, src, 8 * touched, operation), stores = true;
          }
          break;
        }
        case 7: {
          static const int codes[] = {1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13};
          int where = below(std::min(left, 4));
          if (below(5) == 0) found = slot(0xf6, 0, 0, where, below(130));
          else if (fits(1 << src | 1 << right, 0))
            found = below(3) == 0 ? slot(0xed, src, right, codes[below(11)] << 12 | 55)
                                  : slot(codes[below(11)] << 4 | (below(2) ? 0xd : 0xe), src, right,
                                         where);
          break;
        }
        default:
          if (below(4) == 0 && lane == LANES - 1 && below(2)) {
            found = slot(0x85, 0, 1, 0, 2 + count + 4);
          } else if (below(3) == 0) {
            found = goes(below(std::min(left, 3)));
          } else if (!called && fits(0, 1)) {
            // All arguments are explicit: results that other lanes have just written are not
            // forwarded.
            found = slot(0x8d, 9, 1, 1 + below(4), 0x81400040 | below(64) << 16 | 0x4000);
            called = true;
          }
      }
      slots[lane] = found;
    }
    program.push_back(slots);
    stored = stores;
  }
  program.push_back(row({keeps(2, 400), keeps(3, 408), keeps(4, 416), keeps(5, 424)}));
  program.push_back(row({keeps(6, 432), keeps(7, 440), keeps(8, 448), keeps(9, 456)}));
  program.push_back(row({keeps(0, 464), keeps(1, 472), slot(0xb7, 0, 0, 0, 3)}));
  program.push_back(row({slot(0x95)}));
  // A function: its arguments, its changes, and its own frame.
  program.push_back(row({slot(0xe7, 13, 10, 0, u32(-128)), slot(0x0f, 6, 1), slot(0x0f, 7, 2)}));
  program.push_back(row({slot(0x79, 0, 13, 16), slot(0x15, 6, 0, 1, 3), slot(0xb7, 9, 0, 0, 1)}));
  program.push_back(row({slot(0x7b, 13, 6, 16), slot(0x0f, 0, 7)}));
  program.push_back(row({slot(0x0f, 0, 6), slot(0xe7, 13, 10, 0, u32(-640)), slot(0x95)}));
  compare(program, "random", seed);
}

static void timed(const Program &program, double most, const std::string &name, int watchdog = 0) {
  machine->slowness = 0;
  machine->staggered = false;
  machine->load(program);
  machine->prepare = [](Memory &memory) { fill(memory, 1); };
  machine->top.watchdog = watchdog;
  bool ended = machine->run(101, 20000);
  double mean = ended ? double(machine->begins[100] - machine->begins[0]) / 100 : 1e9;
  printf("%s: %.2f cycles per packet\n", name.c_str(), mean);
  check(mean <= most, name + " takes too long");
  machine->top.watchdog = 0;
}

static void timing() {
  timed({row({leave(1)})}, 1, "drop");
  timed({row({slot(0xf6, 0, 0, 1, 14)}), row({leave(1)}), row({leave(2)})}, 3, "check and drop");
  timed({row({slot(0x01, 2, 11, 0), slot(0x01, 3, 11, 6)}),
         row({slot(0x03, 11, 2, 6), slot(0x03, 11, 3, 0)}), row({leave(3)})}, 4, "swap");
  timed({row({sets(2, 5)}), row({}), row({goes(0)}), row({goes(1)}), row({}), row({leave(2)})}, 5,
        "jumps in fetch");
  timed({row({}), row({slot(0x15, 2, 0, 1, 0)}), row({}), row({leave(2)})}, 4, "jump in decode");
  timed({row({sets(2, 1)}), row({slot(0x15, 2, 0, 1, 1)}), row({}), row({leave(2)})}, 5,
        "jump in execute");
  timed({row({slot(0x85, 0, 0, 0, 1)}), row({slot(0x15, 0, 0, 0, 0), leave(1)}), row({leave(2)})},
        6, "call");
  timed({row({slot(0x85, 0, 0, 0, 51)}), row({slot(0x95)})}, 3, "redirect");
  timed({row({slot(0x85, 0, 0, 0, 2)}), row({leave(3)})}, 3, "update and exit");
  timed({row({slot(0x7a, 10, 0, -8, 1), leave(3)})}, 3, "store and exit");
  timed({row({slot(0x05, 0, 0, -1)})}, 60, "watchdog", 50);
  check(machine->outcomes[5].stop == 2 && machine->outcomes[5].verdict == 0, "watchdog's reason");
}
