// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tests of the bench of `helper_unit` for maps other than key-value maps: queues, stacks, Bloom
// filters, maps of maps, and broadcasts to all devices of a map.
#pragma once
#include "helper_unit_bench.h"
#include <deque>
#include <set>

static const u32 HOLDS_DEVICES = 0x40, HOLDS_MAPS = 0x80;

static void describe(Bench &bench, u32 number, std::vector<u64> words) {
  words.resize(7);
  for (u32 i = 0; i < 7; i++) bench.word(number, i, words[i]);
}

static u64 somewhere(u32 bytes) {
  u64 packet = PACKET + 300 + below(40), stack = STACK + below(900);
  return below(4) == 0 && bytes <= 300 ? packet : stack;
}

// A queue or stack against a list.
static void test_line(Bench &bench, u32 kind) {
  const u32 number = 9, base = 2048;
  u32 bytes = 1 + below(below(4) ? 24 : 300), entries = 1 + below(6), stride = (bytes + 7) / 8 * 8;
  describe(bench, number, {kind | bytes << 8 | (u64)bytes << 24, entries, base, stride});
  std::deque<Bytes> model;
  for (u32 step = 0; step < 120; step++) {
    bool host = below(4) == 0;
    u64 at = host ? MAPS + below(40) : somewhere(bytes);
    Bytes value(bytes);
    for (auto &byte : value) byte = chance();
    if (below(2)) {
      u64 flags = below(3) ? 2 * below(2) : below(2) ? 1 + below(8) : (u64)1 << 40;
      memcpy(bench.at(at), value.data(), bytes);
      u64 result = bench.call(87, {HANDLE + number, at, flags}, host).result;
      u64 expected = flags != 0 && flags != 2 ? E_INVAL
          : model.size() == entries && flags == 0 ? E_2BIG : 0;
      CHECK(result == expected, "push, kind %u: %lld, not %lld", kind, (long long)result,
            (long long)expected);
      if (expected) continue;
      if (model.size() == entries) model.pop_front();
      model.push_back(value);
      continue;
    }
    bool leaves = below(3) != 0;
    Bytes expected = model.empty() ? Bytes(bytes) : kind == 7 ? model.front() : model.back();
    memcpy(bench.at(at), value.data(), bytes);
    u64 result = bench.call(leaves ? 88 : 89, {HANDLE + number, at}, host).result;
    CHECK(result == (model.empty() ? E_NOENT : 0), "next, kind %u: %lld", kind, (long long)result);
    CHECK(!memcmp(bench.at(at), expected.data(), bytes), "next, kind %u: another value", kind);
    if (!leaves || model.empty()) continue;
    if (kind == 7) model.pop_front();
    else model.pop_back();
  }
  CHECK(bench.call(87, {HANDLE + number, PACKET + bench.end - bytes + 1, 0}).result == E_FAULT,
        "behind the packet");
  CHECK(bench.call(1, {HANDLE + number, STACK}).unknown, "nothing can be looked up");
  CHECK(bench.call(2, {HANDLE + number, STACK, STACK, 0}).unknown, "nor be set");
  CHECK(bench.call(3, {HANDLE + number, STACK}).unknown, "nor be removed");
}

// Pushed values are found, with few false positives.
static void test_bloom(Bench &bench) {
  const u32 number = 10, heads = 4096, words = 4096;
  u32 bytes = 4 + below(61), wrong = 0;
  memset(&bench.maps[heads], 0, 4 * words);
  describe(bench, number, {9u | bytes << 8, 1, 0, 0, words - 1, heads, 0});
  std::set<Bytes> model;
  for (u32 step = 0; step < 200; step++) {
    u64 at = STACK + below(400);
    Bytes value(bytes);
    u32 which = below(200);
    memcpy(value.data(), &which, 4);
    memcpy(bench.at(at), value.data(), bytes);
    if (below(3) == 0) {
      u64 flags = below(6) ? 0 : 1 + below(3);
      u64 result = bench.call(87, {HANDLE + number, at, flags}).result;
      CHECK(result == (flags ? E_INVAL : 0), "push: %lld", (long long)result);
      if (!flags) model.insert(value);
    } else {
      u64 result = bench.call(89, {HANDLE + number, at}).result;
      CHECK(result == 0 || (result == E_NOENT && !model.count(value)), "what came is not known");
      wrong += result == 0 && !model.count(value);
    }
  }
  CHECK(wrong < 20, "%u values of 200 are known that never came", wrong);
  CHECK(bench.call(88, {HANDLE + number, STACK}).unknown, "nothing leaves a filter");
}

// An array and a hash of maps: handles are found, 0 is none.
static void test_maps_of_maps(Bench &bench) {
  const u32 array = 11, hash = 12;
  u32 entries = 8, base = 2048, heads = 3072, links = 3200;
  u64 handle = HANDLE + 9, shape = (u64)4 << 8 | (u64)8 << 24 | HOLDS_MAPS;
  memset(&bench.maps[base], 0, 2048);
  describe(bench, array, {1 | shape, entries, base, 8});
  memcpy(&bench.maps[base + 8 * 3], &handle, 8);
  u64 key = STACK + 16, value = MAPS + 16;
  auto lookup = [&](u32 map, u32 which) {
    memcpy(bench.at(key), &which, 4);
    return bench.call(1, {HANDLE + map, key}).result;
  };
  for (u32 which = 0; which < 10; which++) {
    CHECK(lookup(array, which) == (which == 3 ? handle : 0), "place %u", which);
  }
  base = 2560;
  describe(bench, hash, {2 | shape, entries, base, 16, 3, heads, links});
  for (u32 which : {5u, 70u, 900u}) {
    u64 at = MAPS + 8, inner = HANDLE + which % 32;
    memcpy(bench.at(at), &which, 4), memcpy(bench.at(value), &inner, 8);
    CHECK(bench.call(2, {HANDLE + hash, at, value, 0}, true).result == 0, "the host sets one");
  }
  for (u32 which : {5u, 70u, 900u}) CHECK(lookup(hash, which) == HANDLE + which % 32, "by key");
  CHECK(lookup(hash, 6) == 0, "another key");
  CHECK(bench.call(2, {HANDLE + hash, key, STACK + 64, 0}).unknown, "programs set no maps");
  CHECK(bench.call(3, {HANDLE + hash, key}).unknown, "nor remove them");
  CHECK(bench.call(2, {HANDLE + array, key, STACK + 64, 0}).unknown, "programs set no maps");
}

// To all devices of a map, with or without the ingress device.
static void test_broadcast(Bench &bench) {
  const u32 devices = 13, processors = 14, base = 2048;
  memset(&bench.maps[base], 0, 64);
  u64 shape = 5 | 4 << 8 | (u64)4 << 24;
  describe(bench, devices, {shape | HOLDS_DEVICES, 4, base, 16});
  describe(bench, processors, {shape, 4, base, 16});
  for (u32 flags : {8u, 8u + 16, 8u + 2, 16u, 4u, 32u + 8}) {
    Answer answer = bench.call(51, {HANDLE + devices, 2, flags});
    bool known = !(flags & ~27u), all = known && flags & 8;
    CHECK(answer.result == (all ? 4 : known ? flags & 3 : 0), "flags %u: %llu", flags,
          (unsigned long long)answer.result);
    CHECK(answer.redirected == known, "flags %u", flags);
    u32 expected = devices | 1 << 16 | (flags & 16 ? 1 << 17 : 0);
    CHECK(!all || answer.map == expected, "flags %u: map %x", flags, answer.map);
    answer = bench.call(51, {HANDLE + processors, 2, flags});
    CHECK(answer.result == 0 && !answer.redirected, "processors, flags %u", flags);
  }
}

static void test_lines(Bench &bench) {
  for (u32 round = 0; round < 6; round++) {
    test_line(bench, 7);
    test_line(bench, 8);
    test_bloom(bench);
  }
  test_maps_of_maps(bench);
  test_broadcast(bench);
}
