// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tests the port by which cores share maps: cores that store, and that own the maps for a while,
// each with a copy that it maintains from the port's outputs. All copies must be equal after each
// cycle, and equal the writes in the order of their cycles; no other core writes while one owns the
// maps, and no core starves.
// top: map_port
// parameters: -GCORES=4 -GROW_BITS=4
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "Vtop.h"
#include "verilated.h"

constexpr int CORES = 4, BANKS = 4, ROWS = 16;
constexpr int CYCLES = 200000;
// Maximum number of cycles for which a core owns the maps, and so the longest wait: each of the
// others owns them once, preceded each time by one of their stores.
constexpr int OWNED_MAX = 6;
constexpr int WAIT_MAX = 2 * CORES * (OWNED_MAX + 3);

static Vtop *top;
static std::mt19937_64 rng;
static uint64_t cycle;

static uint64_t below(uint64_t n) { return rng() % n; }

#define CHECK(condition, ...)                                            \
  if (!(condition)) {                                                    \
    printf("cycle %llu, line %d: ", (unsigned long long)cycle, __LINE__); \
    printf(__VA_ARGS__);                                                 \
    printf("\n");                                                        \
    exit(1);                                                             \
  }

// Writes of a core in a cycle: a row of each bank, and the enabled bytes.
struct Write {
  std::array<uint8_t, BANKS> enable, row;
  std::array<uint64_t, BANKS> data;
};

using Copy = std::array<std::array<uint64_t, ROWS>, BANKS>;

struct Core {
  bool stores, owns;
  // Cycles until an owner writes, if it does; and whether it gives up instead.
  int steps;
  bool gives_up;
  int waited_to_store, waited_to_own;
  Write write;
  Copy copy;
};

static Core cores[CORES];
static Copy expected;

static Write random_write() {
  Write it;
  for (int b = 0; b < BANKS; b++) {
    it.enable[b] = below(2) ? 0 : rng();
    it.row[b] = below(ROWS);
    it.data[b] = rng();
  }
  return it;
}

static void write_to(Copy &copy, const Write &write) {
  for (int b = 0; b < BANKS; b++)
    for (int p = 0; p < 8; p++)
      if (write.enable[b] >> p & 1) {
        uint64_t mask = 0xffull << 8 * p;
        uint64_t &word = copy[b][write.row[b]];
        word = (word & ~mask) | (write.data[b] & mask);
      }
}

// Puts lane `b` of core `c` into ports with 8 bits, 4 bits and 64 bits for each lane.
static void put(int c, const Write &write) {
  for (int b = 0; b < BANKS; b++) {
    int at = c * BANKS + b;
    top->map_out_enable[at / 4] &= ~(0xffu << at % 4 * 8);
    top->map_out_enable[at / 4] |= (uint32_t)write.enable[b] << at % 4 * 8;
    uint64_t row = (uint64_t)0xf << at * 4;
    top->map_out_row = (top->map_out_row & ~row) | (uint64_t)write.row[b] << at * 4;
    top->map_out_data[2 * at] = (uint32_t)write.data[b];
    top->map_out_data[2 * at + 1] = write.data[b] >> 32;
  }
}

static Write got(int c) {
  Write it;
  for (int b = 0; b < BANKS; b++) {
    int at = c * BANKS + b;
    it.enable[b] = top->map_in_enable[at / 4] >> at % 4 * 8;
    it.row[b] = top->map_in_row >> at * 4 & 0xf;
    it.data[b] = top->map_in_data[2 * at] | (uint64_t)top->map_in_data[2 * at + 1] << 32;
  }
  return it;
}

static int ones(uint32_t bits) { return __builtin_popcount(bits); }

// Requests of cores in this cycle: the rates of stores and of ownership change over time.
static void want(uint64_t storing, uint64_t owning) {
  uint32_t stores = 0, windows = 0;
  for (int c = 0; c < CORES; c++) {
    Core &core = cores[c];
    bool is_owner = top->map_window_go >> c & 1;
    if (!core.stores && !is_owner && below(8) < storing) {
      core.stores = true;
      core.write = random_write();
    }
    if (!core.owns && below(16) < owning) {
      core.owns = true;
      core.steps = below(OWNED_MAX - 1);
      core.gives_up = below(8) == 0;
    }
    stores |= core.stores << c;
    windows |= core.owns << c;
    put(c, core.stores ? core.write : random_write());
  }
  top->map_store = stores;
  top->map_window = windows;
}

// Actions of owners, which were granted in the previous cycle. Their own stores go first.
static void own() {
  uint32_t writes = 0, done = 0;
  for (int c = 0; c < CORES; c++) {
    Core &core = cores[c];
    if (!(top->map_window_go >> c & 1) || !core.owns || core.stores || core.steps) continue;
    if (core.gives_up) {
      core.owns = false;
      top->map_window &= ~(1u << c);
      continue;
    }
    core.write = random_write();
    put(c, core.write);
    writes |= 1u << c;
    done |= 1u << c;
  }
  top->map_window_write = writes;
  top->map_window_done = done;
}

static void check_and_follow(uint32_t owner) {
  uint32_t go = top->map_store_go, writers = go | top->map_window_write;
  CHECK(ones(owner) <= 1, "owners %x", owner);
  CHECK(ones(writers) <= 1, "writers %x", writers);
  CHECK((go & ~top->map_store) == 0, "store %x of nobody who asks (%x)", go, top->map_store);
  CHECK(!owner || (writers & ~owner) == 0, "%x writes beside the owner %x", writers, owner);
  CHECK(writers || owner || !top->map_store, "stores %x, and nobody writes", top->map_store);
  for (int c = 0; c < CORES; c++) {
    bool writes = writers >> c & 1, others = (writers & ~(1u << c)) != 0;
    CHECK((top->map_busy >> c & 1) == others, "core %d of %x is told busy %x", c, writers,
          top->map_busy);
    if (writes) write_to(cores[c].copy, cores[c].write), write_to(expected, cores[c].write);
    if (others) write_to(cores[c].copy, got(c));
  }
  for (int c = 0; c < CORES; c++)
    CHECK(cores[c].copy == expected, "core %d has another copy; writers %x", c, writers);
  for (int c = 0; c < CORES; c++) {
    Core &core = cores[c];
    bool is_owner = owner >> c & 1;
    core.waited_to_store = core.stores && !(go >> c & 1) ? core.waited_to_store + 1 : 0;
    core.waited_to_own = core.owns && !is_owner ? core.waited_to_own + 1 : 0;
    CHECK(core.waited_to_store <= WAIT_MAX, "core %d waits to store", c);
    CHECK(core.waited_to_own <= WAIT_MAX, "core %d waits to own", c);
    if (go >> c & 1) core.stores = false;
    else if (is_owner && core.steps) core.steps--;
    if (top->map_window_done >> c & 1) core.owns = false;
  }
}

int main(int argc, char **argv) {
  Verilated::commandArgs(argc, argv);
  top = new Vtop;
  top->rst = 1;
  for (int i = 0; i < 4; i++) top->clk = i & 1, top->eval();
  top->rst = 0;
  uint64_t storing = 0, owning = 0, written = 0, owned = 0;
  for (cycle = 0; cycle < CYCLES; cycle++) {
    if (cycle % 256 == 0) storing = below(9), owning = below(9);
    top->clk = 0;
    top->eval();
    want(storing, owning);
    own();
    top->eval();
    uint32_t owner = top->map_window_go;
    written += ones(top->map_store_go | top->map_window_write);
    owned += ones(top->map_window_done);
    check_and_follow(owner);
    top->clk = 1;
    top->eval();
  }
  CHECK(written > CYCLES / 4 && owned > CYCLES / 100, "%llu writes, %llu by owners",
        (unsigned long long)written, (unsigned long long)owned);
  printf("map_port: %llu writes, %llu of them by owners\n", (unsigned long long)written,
         (unsigned long long)owned);
  top->final();
  delete top;
  return 0;
}
