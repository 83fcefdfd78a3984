// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tests data_memory with random loads, stores, atomic operations and windows against plain arrays.
// top: data_memory
// parameters: -GLANES=4 -GMAP_BYTES=8192
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

constexpr int LANES = 4;
constexpr int MAP_BYTES = 8192;
static Vtop *top;
static std::mt19937_64 rng;
static uint64_t cycles, passed;
static uint32_t seed;

static uint8_t packets[4][4096], stack_[4096], maps[MAP_BYTES];
// The current packet.
static int slot, data, meta, end, arrived, frame;
static bool complete;
static uint32_t ifindex, queue;

static uint64_t below(uint64_t n) { return rng() % n; }

[[noreturn]] static void fail(const char *what, uint64_t address, uint64_t got, uint64_t want) {
  printf("seed %u, cycle %llu: %s at %016llx: %016llx instead of %016llx\n", seed,
         (unsigned long long)cycles, what, (unsigned long long)address, (unsigned long long)got,
         (unsigned long long)want);
  exit(1);
}

static void tick() {
  top->clk = 1;
  top->eval();
  top->clk = 0;
  top->eval();
  cycles++;
}

template <class Wide> static void set64(Wide &wide, int lane, uint64_t value) {
  wide[2 * lane] = (uint32_t)value;
  wide[2 * lane + 1] = (uint32_t)(value >> 32);
}
template <class Wide> static uint64_t get64(Wide &wide, int lane) {
  return wide[2 * lane] | (uint64_t)wide[2 * lane + 1] << 32;
}

enum Place { NOWHERE, MEMORY, CONTEXT, NOT_YET };

// Decodes addresses as the documentation says, independently of the module.
static Place where(uint64_t address, int bytes, uint8_t **memory) {
  uint64_t offset = address & 0xfffffff;
  if (address >> 32) return NOWHERE;
  switch (address >> 28) {
    case 1:
      if (offset < (uint64_t)meta) return NOWHERE;
      *memory = packets[slot] + offset;
      if (offset + bytes <= (uint64_t)(complete ? end : arrived)) return MEMORY;
      return !complete && offset + bytes <= 4096 - 320 ? NOT_YET : NOWHERE;
    case 2:
      *memory = stack_ + offset;
      return offset + bytes <= 512u * (frame + 1) ? MEMORY : NOWHERE;
    case 3:
      if (bytes != 4 || offset % 4 || offset >= 24) return NOWHERE;
      return offset == 4 && !complete ? NOT_YET : CONTEXT;
    case 4:
      *memory = maps + offset;
      return offset + bytes <= MAP_BYTES ? MEMORY : NOWHERE;
  }
  return NOWHERE;
}

static uint64_t context(int offset) {
  uint32_t words[] = {0x10000000u | data, 0x10000000u | end, 0x10000000u | meta, ifindex, queue, 0};
  return words[offset / 4];
}

static uint64_t random_address(int bytes) {
  // Mostly close together, so that accesses overlap; sometimes at a boundary or nowhere.
  uint64_t near = below(4) ? below(96) : below(600);
  switch (below(16)) {
    case 0: return rng();
    case 1: return (below(8) << 28) | below(1 << 28);
    case 2: return 0x10000000 + end - bytes - 4 + below(8);
    case 3: return 0x10000000 + meta - 4 + below(8);
    case 4: return 0x20000000 + 512 * (frame + 1) - bytes - 4 + below(8);
    case 5: return 0x40000000 + MAP_BYTES - bytes - 4 + below(8);
    case 6: return 0x30000000 + 4 * below(8) + (below(8) ? 0 : below(4));
    case 7: return 0x10000000 + arrived - bytes - 4 + below(8);
    case 8: case 9: case 10: return 0x20000000 + 512 * frame + near % 512;
    case 11: case 12: case 13: return 0x40000000 + near;
    default: return 0x10000000 + meta + near;
  }
}

struct Access {
  bool valid;
  uint64_t address, value;
  int bytes;
  Place place;
  uint8_t *memory;
};

static bool overlap(const Access &a, const Access &b) {
  // By the words that they touch.
  return a.address / 8 <= (b.address + b.bytes - 1) / 8 &&
         b.address / 8 <= (a.address + a.bytes - 1) / 8;
}

using Row = std::vector<Access>;
static const int SIZES[] = {1, 2, 4, 6, 8};

static Row random_row(int chance, const Row *forbidden, bool apart) {
  Row row(LANES);
  for (int l = 0; l < LANES; l++)
    for (;;) {
      Access &a = row[l];
      a = {below(8) < (uint64_t)chance, 0, rng(), SIZES[below(5)], NOWHERE, nullptr};
      a.address = random_address(a.bytes);
      bool good = true;
      if (forbidden)
        for (const Access &b : *forbidden) good &= !(a.valid && b.valid && overlap(a, b));
      if (apart)
        for (int k = 0; k < l; k++) good &= !(a.valid && row[k].valid && overlap(a, row[k]));
      if (good) break;
    }
  return row;
}

static void idle_inputs() {
  top->load_valid = top->store_valid = top->atomic_valid = top->load_hold = 0;
  top->service_valid = top->fill_valid = top->emit_valid = 0;
  top->frame_clear = top->stack_clear = 0;
}

static void bounds() {
  top->packet_slot = top->store_slot = slot;
  top->packet_data = data;
  top->packet_meta = meta;
  top->packet_end = end;
  top->packet_arrived = arrived;
  top->packet_complete = complete;
  top->packet_ifindex = ifindex;
  top->packet_queue = queue;
  top->frame = frame;
}

static void window(bool write, uint32_t address, uint32_t enable, const uint8_t *in, uint8_t *out,
                   bool missing) {
  top->service_valid = 1;
  top->service_write = write;
  top->service_address = address;
  top->service_enable = enable;
  if (write) memcpy(&top->service_wdata[0], in, 32);
  top->eval();
  for (int i = 0; !top->service_ready; i++) {
    if (i > 20) fail("the service port waits", address, 0, 1);
    tick();
    top->eval();
  }
  if (top->service_miss != missing) fail("miss of a window", address, top->service_miss, missing);
  tick();
  top->service_valid = 0;
  if (below(2)) tick();
  if (!write) memcpy(out, &top->service_rdata[0], 32);
}

static void some_windows() {
  for (int n = 0; n < 3; n++) {
    uint32_t limits[] = {0, 4096 - 320, 512u * (frame + 1), 0, MAP_BYTES};
    uint32_t region = "\1\2\4"[below(3)];
    uint32_t offset = below(6) ? below(limits[region] / 8) * 8 : limits[region] - 8 * below(5);
    if (!below(20)) offset += 1 << 20;
    uint8_t *memory = (region == 1 ? packets[slot] : region == 2 ? stack_ : maps) + offset;
    uint32_t enable = below(4) ? (uint32_t)rng() >> below(32) : 0xffffffff;
    bool write = below(2), missing = !write && offset >= limits[region];
    uint8_t bytes[32];
    for (int i = 0; i < 32; i++) {
      bytes[i] = rng();
      if (write && (enable >> i & 1) && offset + i >= limits[region]) missing = true;
    }
    window(write, region << 28 | offset, enable, bytes, bytes, missing);
    if (missing) continue;
    for (uint32_t i = 0; i < 32; i++)
      if (write && (enable >> i & 1)) memory[i] = bytes[i];
      else if (!write && offset + i < limits[region] && bytes[i] != memory[i])
        fail("a window", offset + i, bytes[i], memory[i]);
    passed++;
  }
}

static void some_atomics() {
  static const uint8_t kinds[] = {0x00, 0x01, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1};
  bool wide = below(2);
  int bytes = wide ? 8 : 4;
  uint64_t address = random_address(bytes), operand = rng(), expected = rng(), old = 0, now;
  uint8_t kind = kinds[below(10)], *memory = nullptr;
  Place place = where(address, bytes, &memory);
  // Bytes that have not arrived are waited for, and none arrives in the meantime.
  if (place == NOT_YET) return;
  bool good = place == MEMORY;
  if (good) memcpy(&old, memory, bytes);
  if (below(2)) expected = wide ? old : old | rng() << 32;
  uint64_t mask = wide ? ~0ull : 0xffffffff;
  switch (kind >> 4) {
    case 0: now = old + operand; break;
    case 4: now = old | operand; break;
    case 5: now = old & operand; break;
    case 10: now = old ^ operand; break;
    case 14: now = operand; break;
    default: now = (expected & mask) == old ? operand : old;
  }
  top->atomic_valid = 1;
  top->atomic_address = address;
  top->atomic_wide = wide;
  top->atomic_operation = kind;
  top->atomic_operand = operand;
  top->atomic_expected = expected;
  top->eval();
  for (int i = 0; !top->atomic_done; i++) {
    if (i > 20) fail("an atomic operation waits", address, 0, 1);
    tick();
    top->eval();
  }
  if (top->atomic_miss != !good) fail("miss of an atomic operation", address, !!good, !good);
  if (good && top->atomic_old != old) fail("old value", address, top->atomic_old, old);
  tick();
  top->atomic_valid = 0;
  if (good) memcpy(memory, &now, bytes);
  passed++;
}

// Row n loads in decode and stores a cycle later, in execute; loads of row n + 1 are in that cycle.
// Returns the number of waits of decode or execute.
static uint64_t some_rows(int rows, int chance, bool holds) {
  uint64_t waits = 0;
  Row nothing = random_row(0, nullptr, false), stores = nothing;
  for (int n = 0; n <= rows; n++) {
    Row loads = random_row(n < rows ? chance : 0, &stores, false);
    Row next = random_row(n < rows ? chance : 0, &loads, true);
    bool stored = false;
    for (int tries = 0;; tries++) {
      if (tries > 600) fail("rows wait", loads[0].address, 0, 1);
      uint8_t expect_miss = 0, loading = 0, storing = 0;
      bool not_yet = false, store_not_yet = false;
      for (int l = 0; l < LANES; l++) {
        loads[l].place = where(loads[l].address, loads[l].bytes, &loads[l].memory);
        stores[l].place = where(stores[l].address, stores[l].bytes, &stores[l].memory);
        loading |= loads[l].valid << l;
        if (!stored && stores[l].valid) {
          storing |= 1 << l;
          if (stores[l].place == NOWHERE || stores[l].address >> 28 == 3) expect_miss |= 1 << l;
          else store_not_yet |= stores[l].place == NOT_YET;
        }
        not_yet |= loads[l].valid && loads[l].place == NOT_YET;
        set64(top->load_address, l, loads[l].address);
        set64(top->store_address, l, stores[l].address);
        set64(top->store_data, l, stores[l].value);
        top->load_bytes = (top->load_bytes & ~(15 << 4 * l)) | loads[l].bytes << 4 * l;
        top->store_bytes = (top->store_bytes & ~(15 << 4 * l)) | stores[l].bytes << 4 * l;
      }
      top->load_valid = loading;
      top->store_valid = storing;
      // The row after a waiting store is held, too.
      bounds();
      top->load_hold = 0;
      top->eval();
      if (top->store_miss != expect_miss) fail("stores that miss", stores[0].address,
                                               top->store_miss, expect_miss);
      if (store_not_yet && !top->store_wait) fail("a store does not wait", arrived, 0, 1);
      bool store_waits = top->store_wait;
      if (store_waits || (holds && !below(4))) top->load_hold = 1;
      top->eval();
      if (not_yet && !top->load_wait) fail("a load does not wait", arrived, 0, 1);
      bool go = !top->load_hold && !top->load_wait;
      waits += store_waits || top->load_wait;
      tick();
      if (!stored && !store_waits) {
        stored = true;
        // Nothing is stored after a store that misses.
        for (int l = 0; l < LANES && !(expect_miss >> l & 1); l++) {
          Access &a = stores[l];
          if (a.valid && a.place == MEMORY) memcpy(a.memory, &a.value, a.bytes);
        }
      }
      if (!complete && !below(2)) {
        arrived += 32;
        if (arrived >= end) arrived = end, complete = true;
      }
      if (go) break;
    }
    top->load_valid = top->store_valid = 0;
    for (int h = holds ? below(3) : 0; h > 0; h--) {
      // The answer is held, whatever decode requests in the meantime.
      top->load_hold = 1;
      set64(top->load_address, below(LANES), rng());
      tick();
    }
    bounds();
    for (int l = 0; l < LANES; l++) {
      const Access &a = loads[l];
      if (!a.valid) continue;
      uint64_t want = 0, got = get64(top->load_data, l);
      if (a.place == MEMORY) memcpy(&want, a.memory, a.bytes);
      if (a.place == CONTEXT) want = context(a.address & 31);
      if (got != want) fail("a load", a.address, got, want);
      bool miss = top->load_miss >> l & 1, expected = a.place == NOWHERE;
      if (miss != expected) fail("miss of a load", a.address, miss, expected);
      passed++;
    }
    stores = next;
  }
  idle_inputs();
  return waits;
}

static void fill(int into, int offset) {
  top->fill_valid = 1;
  top->fill_slot = into;
  top->fill_offset = offset;
  for (int i = 0; i < 8; i++) top->fill_data[i] = rng();
  memcpy(packets[into] + offset, &top->fill_data[0], 32);
  top->eval();
  for (int i = 0; !top->fill_ready; i++) {
    if (i > 20) fail("an arriving beat waits", offset, 0, 1);
    tick();
    top->eval();
  }
  tick();
  top->fill_valid = 0;
}

static void emit(int from) {
  int offset = 8 * below((4096 - 320) / 8 - 3);
  while (top->stores_pending) tick(), top->eval();
  top->emit_valid = 1;
  top->emit_slot = from;
  top->emit_offset = offset;
  top->eval();
  if (!top->emit_ready) fail("emission waits", offset, 0, 1);
  tick();
  top->emit_valid = 0;
  if (memcmp(&top->emit_data[0], packets[from] + offset, 32))
    fail("an emitted window", offset, top->emit_data[0], packets[from][offset]);
  passed++;
}

// The row after the next one sees a store, in all memories, without a wait.
static void no_waits() {
  static const uint64_t bases[] = {0x10000000u, 0x20000000u, 0x40000000u};
  idle_inputs();
  for (int l = 0; l < LANES; l++) tick();  // drains the stores of earlier rows
  for (uint64_t base : bases)
    for (int n = 0; n < 200; n++) {
      uint64_t address = base + (base >> 28 == 1 ? meta : 0) + 1 + below(40), value = rng();
      top->store_valid = 1;
      set64(top->store_address, 0, address);
      set64(top->store_data, 0, value);
      top->store_bytes = 8;
      top->load_valid = 2;
      set64(top->load_address, 1, address + 16);
      top->load_bytes = 8 << 4 | 8;
      top->eval();
      if (top->store_wait || top->load_wait) fail("a wait beside a store", address, 1, 0);
      tick();
      top->store_valid = 0;
      top->load_valid = 4;
      set64(top->load_address, 2, address);
      top->load_bytes = 8 << 8;
      top->eval();
      if (top->load_wait) fail("a wait behind a store", address, 1, 0);
      tick();
      if (get64(top->load_data, 2) != value)
        fail("a load behind a store", address, get64(top->load_data, 2), value);
      uint8_t *memory;
      where(address, 8, &memory);
      memcpy(memory, &value, 8);
      passed++;
    }
  idle_inputs();
}

int main(int argc, char **argv) {
  seed = argc > 1 ? atoi(argv[1]) : 1;
  rng.seed(seed);
  top = new Vtop;
  idle_inputs();
  top->rst = 1;
  top->stack_clear = 1;
  tick();
  tick();
  top->rst = 0;
  top->stack_clear = 0;
  for (int s = 0; s < 4; s++)
    for (int offset = 0; offset < 4096; offset += 32) fill(s, offset);
  data = meta = 256, end = 320, complete = true;
  bounds();
  for (int offset = 0; offset < MAP_BYTES; offset += 32) {
    for (int i = 0; i < 32; i++) maps[offset + i] = rng();
    window(true, 0x40000000 + offset, 0xffffffff, maps + offset, nullptr, false);
  }
  uint64_t rows = 0, waits = 0;
  for (int round = 0; round < 1500; round++) {
    slot = below(4), frame = below(3) ? 0 : below(8);
    meta = below(2) ? 256 : 200 + below(56), data = meta + below(257 - meta);
    end = data + below(below(4) ? 200 : 3400), ifindex = rng(), queue = rng();
    complete = below(2) || end < 257;
    arrived = complete ? end : 256;
    bounds();
    if (!below(4)) {
      // Loads in the cycle of a clear see zeros already.
      bool all = below(2);
      top->stack_clear = all;
      top->frame_clear = !all;
      top->load_valid = 1;
      set64(top->load_address, 0, 0x20000000 + 512 * frame + below(504));
      top->load_bytes = 8;
      tick();
      if (top->load_data[0] || top->load_data[1]) fail("a load of a clear", 0, 1, 0);
      memset(all ? stack_ : stack_ + 512 * frame, 0, all ? 4096 : 512);
      idle_inputs();
    }
    waits += some_rows(20, 1 + below(7), round % 2);
    rows += 20;
    complete = true;
    bounds();
    if (below(2)) some_atomics();
    if (below(2)) some_windows();
    if (below(2)) fill((slot + 1) % 4, 32 * below(128));
    emit(below(4));
    if (!below(8) && end - meta > 70) no_waits();
  }
  // Memory that was not read so far.
  for (int offset = 0; offset < MAP_BYTES; offset += 32) {
    uint8_t bytes[32];
    window(false, 0x40000000 + offset, 0, nullptr, bytes, false);
    if (memcmp(bytes, maps + offset, 32)) fail("maps at the end", offset, bytes[0], maps[offset]);
  }
  printf("%llu rows, %llu cycles, %llu waits\n", (unsigned long long)rows,
         (unsigned long long)cycles, (unsigned long long)waits);
  printf("%llu passed, 0 failed\n", (unsigned long long)passed);
  return 0;
}
