// SPDX-License-Identifier: Apache-2.0 OR MIT
// Models of the core, a host and the service port of the memory for the bench of `helper_unit`.
#pragma once
#include "Vtop.h"
#include "verilated.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = uint64_t;
using Bytes = std::vector<u8>;

static const u64 E_NOENT = -2ull, E_2BIG = -7ull, E_ACCES = -13ull, E_FAULT = -14ull;
static const u64 E_EXIST = -17ull, E_INVAL = -22ull, E_NOSPC = -28ull;
static const u64 PACKET = 0x10000000, STACK = 0x20000000, MAPS = 0x40000000, HANDLE = 0x50000000;
static const u32 MAP_BYTES = 1 << 17;
static u64 passed = 0, seed = 1;
static std::mt19937_64 chance(1);

static u64 below(u64 limit) { return chance() % limit; }

#define ASSERT(condition, ...)                                                                 \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      printf("seed %llu: %s: ", (unsigned long long)seed, #condition);                         \
      printf(__VA_ARGS__);                                                                     \
      printf("\n");                                                                            \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)
// A counted check of a helper.
#define CHECK(...)                                                                             \
  do {                                                                                         \
    ASSERT(__VA_ARGS__);                                                                       \
    passed++;                                                                                  \
  } while (0)

struct Answer {
  u64 result;
  bool unknown, jump, redirected;
  u32 row, map, key, cycles;
};

struct Bench {
  VerilatedContext context;
  Vtop top{&context};
  u8 packet[4096 + 64] = {}, stack[4096 + 64] = {};
  Bytes maps = Bytes(MAP_BYTES + 64);
  u32 data = 256, end = 320, meta = 256;
  bool always_ready = true;

  u8 *region(u64 address, u64 &size) {
    u32 what = address >> 28;
    size = what == 1 || what == 2 ? 4096 : what == 4 ? MAP_BYTES : 0;
    return what == 1 ? packet : what == 2 ? stack : what == 4 ? maps.data() : nullptr;
  }

  u8 *at(u64 address) {
    u64 size;
    return region(address, size) + (address & 0xfffffff);
  }

  // Inputs are set; outputs settle, including the port's answer to them.
  void settle() {
    top.packet_data = data, top.packet_end = end, top.packet_meta = meta;
    top.service_ready = always_ready || below(3) == 0;
    top.clk = 0;
    top.eval();
    top.service_miss = 0;
    if (!top.service_valid) return;
    u64 size, offset = top.service_address & 0xfffffff;
    ASSERT(offset % 8 == 0, "window at %x", top.service_address);
    bool known = region(top.service_address, size) != nullptr;
    bool inside = known && offset < size;
    bool is_packet = top.service_address >> 28 == 1;
    if (is_packet) inside = offset >= meta && offset < end;
    if (top.service_write) {
      for (u32 i = 0; i < 32; i++) {
        if (!(top.service_enable >> i & 1)) continue;
        bool there = known && (is_packet ? offset + i >= meta && offset + i < end
                                         : offset + i < size);
        ASSERT(there, "a byte is written at %x + %u", top.service_address, i);
      }
      inside = true;
    }
    top.service_miss = !inside;
    top.eval();
  }

  void tick() {
    bool accepted = top.service_valid && top.service_ready;
    u64 size, offset = top.service_address & 0xfffffff;
    u8 *memory = accepted ? region(top.service_address, size) : nullptr;
    WData read[8];
    bool reads = accepted && !top.service_write;
    if (reads) {
      for (auto &word : read) word = chance();
      if (memory && offset < size) memcpy(read, memory + offset, 32);
    }
    if (memory && top.service_write && !top.service_miss) {
      for (u32 i = 0; i < 32; i++) {
        if (top.service_enable >> i & 1) memory[offset + i] = top.service_wdata[i / 4] >> i % 4 * 8;
      }
    }
    bool sets = top.set_valid;
    u32 bounds[3] = {top.set_data, top.set_end, top.set_meta};
    top.clk = 1;
    top.eval();
    if (reads) memcpy(&top.service_rdata[0], read, 32);
    if (sets) data = bounds[0], end = bounds[1], meta = bounds[2];
  }

  Answer call(u32 helper, std::vector<u64> arguments, bool host = false) {
    arguments.resize(5);
    auto give = [&](auto &to) {
      for (int i = 0; i < 10; i++) to[i] = arguments[i / 2] >> i % 2 * 32;
    };
    host ? give(top.command_arguments) : give(top.call_arguments);
    if (host) top.command_valid = 1, top.command_helper = helper;
    else top.call_valid = 1, top.call_helper = helper;
    Answer answer = {};
    for (u32 cycle = 0;; cycle++) {
      ASSERT(cycle < 20000, "helper %u does not come to an end", helper);
      settle();
      if (top.redirect_valid) {
        answer.redirected = true;
        answer.map = top.redirect_map, answer.key = top.redirect_key;
      }
      bool done = host ? top.command_done : top.call_done;
      answer.cycles = cycle;
      answer.result = host ? top.command_result : top.call_result;
      answer.unknown = top.call_unknown, answer.jump = top.call_jump, answer.row = top.call_row;
      tick();
      if (done) break;
    }
    top.call_valid = top.command_valid = 0;
    if (below(2)) settle(), tick();
    return answer;
  }

  void word(u32 map, u32 number, u64 value) {
    top.table_valid = top.table_write = 1;
    top.table_map = map, top.table_word = number, top.table_wdata = value;
    settle(), tick();
    top.table_valid = top.table_write = 0;
  }

  u64 state_of(u32 map) {
    top.table_map = map, top.table_word = 7;
    settle();
    return top.table_rdata;
  }

  void begin(u32 bytes) {
    data = meta = 256, end = 256 + bytes;
    top.packet_begin = 1, top.packet_complete = 1;
    settle(), tick();
    top.packet_begin = 0;
  }

  void reset() {
    top.rst = 1;
    settle(), tick(), settle(), tick();
    top.rst = 0;
  }
};
