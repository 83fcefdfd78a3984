// SPDX-License-Identifier: Apache-2.0 OR MIT
// Bench of the core: the bench models memory, helpers and selector; programs run on the core and on
// a simple interpreter of rows, and verdict, reason and memory must be equal.
// top: core
// parameters: -GLANES=4
#include "Vtop.h"
#include "core_reference.h"
#include "verilated.h"

static int passed = 0, failed = 0;
static void check(bool good, const std::string &what) {
  (good ? passed : failed)++;
  if (!good && failed < 20) printf("FAILED: %s\n", what.c_str());
}

struct Machine {
  Vtop top;
  Memory memory;
  // Slowness of the environment: one of this many cycles is a wait.
  int slowness = 0;
  int to_come = 0;
  bool staggered = false;
  u64 cycles = 0, events[5] = {};
  std::vector<Outcome> outcomes;
  std::function<void(Memory &)> prepare = [](Memory &) {};
  std::vector<u64> begins;

  void half() {
    top.clk = 1;
    top.eval();
    top.clk = 0;
    top.eval();
  }
  Machine() {
    top.clk = 0;
    top.rst = 1;
    half();
    top.rst = 0;
    top.running = 1;
  }
  void load(const Program &program, int entry = 0) {
    for (size_t at = 0; at < program.size(); at++)
      for (int lane = 0; lane < LANES; lane++) {
        top.row_write = 1;
        top.row_address = u16(at);
        top.row_lane = u8(lane);
        top.row_data = program[at][lane];
        half();
      }
    top.row_write = 0;
    top.entry = u16(entry);
    top.rows = u16(program.size());
  }
  bool slow() { return slowness && below(slowness) == 0; }

  // State within a cycle.
  u64 loaded[LANES] = {};
  int missed = 0, helper_left = -1, atomic_left = -1, arrived = 4096, moves = 0;
  Helped helped;
  Memory moved;
  void cycle() {
    top.packet_ready = to_come > 0;
    top.packet_data = memory.data;
    top.packet_end = memory.end;
    top.packet_slot = outcomes.size() & 3;
    top.packet_complete = arrived >= memory.end;
    top.packet_arrived = std::min(arrived, memory.end);
    for (int lane = 0; lane < LANES; lane++) {
      top.load_data[2 * lane] = u32(loaded[lane]);
      top.load_data[2 * lane + 1] = u32(loaded[lane] >> 32);
    }
    top.load_miss = missed;
    top.load_wait = slow();
    top.store_wait = slow();
    bool helper_slow = slow(), atomic_slow = slow();
    top.call_done = 0;
    top.atomic_done = 0;
    top.store_miss = 0;
    top.eval();
    memory.frame = top.frame;
    auto wide = [](auto &bits, int lane) {
      return u64(bits[2 * lane]) | u64(bits[2 * lane + 1]) << 32;
    };
    int store_miss = 0;
    for (int lane = 0; lane < LANES; lane++)
      if (top.store_valid >> lane & 1)
        store_miss |= !memory.at(wide(top.store_address, lane), top.store_bytes >> 4 * lane & 15)
            << lane;
    top.store_miss = store_miss;
    top.map_base = base_of(top.map_base_index);
    top.eval();
    top.map_base = base_of(top.map_base_index);
    u64 arguments[5];
    Memory next = memory;
    if (top.call_valid && !helper_slow) {
      for (int i = 0; i < 5; i++) arguments[i] = wide(top.call_arguments, i);
      helped = help(next, top.call_helper, arguments);
      top.call_done = 1;
      top.call_result = helped.result;
      top.call_unknown = helped.unknown;
      top.call_jump = helped.jump;
      top.call_row = helped.to;
    }
    if (top.atomic_valid && !atomic_slow) {
      int bytes = top.atomic_wide ? 8 : 4;
      u64 mask = bytes == 4 ? 0xffffffff : ~0ull;
      u8 *p = next.at(top.atomic_address, bytes);
      top.atomic_done = 1;
      top.atomic_miss = !p;
      top.atomic_old = p ? memory.load(p, bytes) : 0;
      if (p) {
        u64 value = atomic(top.atomic_operation, top.atomic_old, top.atomic_operand & mask,
                           top.atomic_expected & mask);
        memcpy(p, &value, bytes);
      }
    }
    top.eval();
    // Loads read memory as it is before this cycle's stores, but after its clears.
    if (top.stack_clear) memset(memory.stack, 0, 4096), memset(next.stack, 0, 4096);
    if (top.frame_clear)
      memset(memory.stack + 512 * top.frame, 0, 512), memset(next.stack + 512 * top.frame, 0, 512);
    if (!top.load_hold) {
      missed = 0;
      for (int lane = 0; lane < LANES; lane++) {
        loaded[lane] = any();
        if (!(top.load_valid >> lane & 1)) continue;
        int bytes = top.load_bytes >> 4 * lane & 15;
        u64 address = wide(top.load_address, lane);
        const u8 *p = memory.at(address, bytes);
        loaded[lane] = p ? memory.load(p, bytes) : 0;
        missed |= (p == nullptr) << lane;
      }
    }
    if (!top.store_wait) {
      for (int lane = 0; lane < LANES; lane++) {
        if (!(top.store_valid >> lane & 1)) continue;
        u64 value = wide(top.store_data, lane);
        int bytes = top.store_bytes >> 4 * lane & 15;
        u8 *p = next.at(wide(top.store_address, lane), bytes);
        if (!p) break;
        memcpy(p, &value, bytes);
      }
    }
    memory = next;
    arrived += staggered ? 32 : 4096;
    if (top.packet_done) outcomes.push_back({top.packet_verdict, top.packet_stop});
    if (top.packet_begin) {
      to_come--;
      prepare(memory);
      arrived = staggered ? 288 : 4096;
      begins.push_back(cycles);
    }
    events[0] += top.event_row;
    events[4] += top.event_jump;
    half();
    cycles++;
  }
  bool run(int packets, int limit = 4000) {
    to_come = packets;
    outcomes.clear();
    begins.clear();
    while (int(outcomes.size()) < packets && limit-- > 0) cycle();
    return int(outcomes.size()) == packets;
  }
};
static Machine *machine;

static void fill(Memory &memory, u64 seed) {
  std::mt19937_64 bits(seed);
  for (auto &byte : memory.packet) byte = u8(bits());
  for (auto &byte : memory.maps) byte = u8(bits());
  memory.data = 256;
  memory.end = 356;
}

// Runs a program on both; maps and packet must be equal after two packets.
static bool compare(const Program &program, const std::string &name, u64 seed) {
  Memory expected;
  fill(expected, seed);
  Outcome want = interpret(program, expected);
  for (int speed = 0; speed < 2; speed++) {
    machine->slowness = speed ? 3 : 0;
    machine->staggered = speed;
    machine->load(program);
    machine->prepare = [seed](Memory &memory) { fill(memory, seed); };
    u64 before = machine->events[0];
    bool ended = machine->run(2);
    Outcome got = ended ? machine->outcomes[1] : Outcome{};
    bool good = ended && got.verdict == want.verdict && got.stop == want.stop;
    bool equal = same(machine->memory, expected);
    int at = 0;
    while (at < 511 && machine->memory.maps[at] == expected.maps[at]) at++;
    for (int i = 0; i < 8; i++) machine->cycle();
    int rows = machine->events[0] - before;
    check(rows == 2 * want.rows, name + ": counts " + std::to_string(rows) + " rows, not "
        + std::to_string(2 * want.rows));
    check(good && equal, name + ", seed " + std::to_string(seed) + ", speed "
        + std::to_string(speed) + (ended ? "" : ": no end") + ": verdict "
        + std::to_string(got.verdict) + " stop " + std::to_string(got.stop) + ", not "
        + std::to_string(want.verdict) + ", " + std::to_string(want.stop)
        + (equal ? "" : "; memory differs from maps byte " + std::to_string(at)));
    if (!good || !equal) return false;
  }
  return true;
}

static u64 goes(int distance) { return slot(0x05, 0, 0, distance); }
static u64 sets(int r, u32 value) { return slot(0x08, r, 0, 0, value); }
static u64 keeps(int r, int at) { return slot(0x7b, 15, r, at); }  // register 15: map memory
static u64 wide_low(int r, u64 value) { return slot(0x18, r, 0, 0, u32(value)); }
static u64 wide_high(u64 value) { return value >> 32 << 32; }
static Row maps() { return row({slot(0x08, 15, 2, 0, 0)}); }

static u64 number() {
  static const u64 odd[] = {0, 1, ~0ull, 1ull << 63, 0x80000000, 0x7fffffff, 0xffffffff,
                            0xffffffff80000000};
  return below(3) == 0 ? odd[below(8)] : any() >> below(64);
}

#include "core_tests.h"

int main() {
  Machine it;
  machine = &it;
  arithmetic();
  conditions();
  directed();
  for (u64 seed = 1; seed <= 2000; seed++) random_program(seed);
  timing();
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
