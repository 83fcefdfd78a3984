// SPDX-License-Identifier: Apache-2.0 OR MIT
// top: helper_unit
// Models the core, a host and the service port of the memory, which accepts at random, and compares
// helpers with simple models: maps of all kinds in one memory, checksums, bounds of packets.
#include "helper_unit_bench.h"
#include "helper_unit_lines.h"

static Bench *bench;

// Places of arguments: anywhere on the stack, in the packet, or in the host's part of the maps.
static u64 place(const Bytes &bytes, bool host, u32 slot) {
  u64 address = STACK + 512 * slot + below(300);
  if (host || below(4) == 0) address = MAPS + 340 * slot + below(20);
  else if (below(4) == 0 && bytes.size() <= 400) address = PACKET + 257 + 400 * slot + below(8);
  memcpy(bench->at(address), bytes.data(), bytes.size());
  return address;
}

struct Map {
  u32 number, kind, key_bytes, value_bytes, entries, base, bytes;
  std::map<Bytes, Bytes> model;
  std::vector<Bytes> pool;

  Bytes random_key() {
    if (pool.size() < 2 * entries + 3) {
      Bytes key(key_bytes);
      for (auto &byte : key) byte = chance();
      if (kind == 4) {
        // Few bits differ, so that prefixes are nested.
        for (u32 i = 4; i < key_bytes; i++) key[i] = below(3) ? 0 : 0x80 >> below(8);
        u32 length = below(12) ? below(8 * (key_bytes - 4) + 1) : 8 * (key_bytes - 4) + 1;
        memcpy(key.data(), &length, 4);
      }
      if (kind == 1 || kind >= 5) {
        u32 index = below(8) ? below(entries + 2) : chance();
        memcpy(key.data(), &index, 4);
      }
      pool.push_back(key);
    }
    Bytes key = pool[below(pool.size())];
    // Bits beyond a prefix do not matter.
    if (kind == 4 && below(2)) key = masked(key, true);
    if (kind == 4 && below(4) == 0) {
      u32 length = below(8 * (key_bytes - 4) + 1);
      memcpy(key.data(), &length, 4);
    }
    return key;
  }

  static u32 first(const Bytes &bytes) {
    u32 word;
    memcpy(&word, bytes.data(), 4);
    return word;
  }

  static Bytes masked(Bytes key, bool noise = false) {
    u32 length = first(key);
    for (u32 i = length; i < 8 * (key.size() - 4); i++) {
      u8 bit = 0x80 >> i % 8, &byte = key[4 + i / 8];
      byte = noise && below(2) ? byte | bit : byte & ~bit;
    }
    return key;
  }

  bool bad_length(const Bytes &key) const { return first(key) > 8 * (key_bytes - 4); }

  std::map<Bytes, Bytes>::iterator find(const Bytes &key) {
    if (kind == 4 && bad_length(key)) return model.end();
    if (kind != 4) return model.find(key);
    for (u32 length = first(key) + 1; length-- > 0;) {
      Bytes shorter = key;
      memcpy(shorter.data(), &length, 4);
      auto found = model.find(masked(shorter));
      if (found != model.end()) return found;
    }
    return model.end();
  }

  u64 update(const Bytes &key, const Bytes &value, u64 flags) {
    if (flags > 2) return E_INVAL;
    if (kind == 6 && flags) return E_INVAL;
    if (kind == 1 || kind >= 5) {
      if (first(key) >= entries) return E_2BIG;
      if (flags == 1 && kind != 6) return E_EXIST;
      if (kind == 5 && first(value) == 0) model.erase(key);
      else model[key] = value;
      return 0;
    }
    if (kind == 4 && bad_length(key)) return E_INVAL;
    Bytes normal = kind == 4 ? masked(key) : key;
    bool exists = model.count(normal);
    if (exists && flags == 1) return E_EXIST;
    if (!exists && flags == 2) return E_NOENT;
    if (!exists && model.size() == entries && kind != 3) return kind == 4 ? E_NOSPC : E_2BIG;
    model[normal] = value;
    return 0;
  }

  u64 remove(const Bytes &key) {
    if (kind == 1) return E_INVAL;
    if (kind >= 5 && first(key) >= entries) return kind == 5 ? E_INVAL : E_2BIG;
    if (kind == 5) return model.erase(key), 0;
    if (kind == 4 && bad_length(key)) return E_INVAL;
    return model.erase(kind == 4 ? masked(key) : key) ? 0 : E_NOENT;
  }
};

// Creates a map after the others; kinds are those of the table.
static Map create(u32 number, u32 kind, u32 key, u32 value, u32 entries, u32 buckets, u32 &place) {
  auto room = [&](u32 bytes) {
    u32 begin = place + below(3) * 8;
    place = begin + (bytes + 7) / 8 * 8;
    ASSERT(place <= MAP_BYTES, "the bench's maps do not fit");
    return begin;
  };
  u32 key_room = kind == 1 ? 0 : kind >= 5 ? 8 : (key + 7) / 8 * 8;
  u32 stride = key_room + (value + 7) / 8 * 8 + 8 * below(2);
  Map map{number, kind, key, value, entries, room(stride * entries), stride * entries, {}, {}};
  u32 heads = room(4 * buckets), links = room(4 * entries);
  memset(&bench->maps[map.base], 0, map.bytes);
  memset(&bench->maps[heads], 0, 4 * buckets);
  for (u32 i = 0; i < 4 * entries; i++) bench->maps[links + i] = chance();
  u64 words[7] = {kind | key << 8 | (u64)value << 24, entries, map.base, stride, buckets - 1,
                  heads, links};
  for (u32 i = 0; i < 7; i++) bench->word(number, i, words[i]);
  if (kind == 1) {
    for (u32 i = 0; i < entries; i++) {
      Bytes index(4);
      memcpy(index.data(), &i, 4);
      map.model[index] = Bytes(value);
    }
  }
  return map;
}

static void check_lookup(Map &map, const Bytes &key, bool host) {
  u64 result = bench->call(1, {HANDLE + map.number, place(key, host, 0)}, host).result;
  auto found = map.find(key);
  if (found == map.model.end()) {
    CHECK(result == 0, "map %u of kind %u finds what is not there", map.number, map.kind);
    return;
  }
  u64 begin = MAPS + map.base;
  CHECK(result >= begin && result + map.value_bytes <= begin + map.bytes,
        "map %u of kind %u, key of %u: value at %llx", map.number, map.kind, map.key_bytes,
        (unsigned long long)result);
  CHECK(!memcmp(bench->at(result), found->second.data(), map.value_bytes), "another value");
}

// After an update of a full LRU map one key is missing, and not the new one.
static void find_victim(Map &map, const Bytes &newest) {
  Bytes gone;
  for (auto &[key, value] : map.model) {
    if (bench->call(1, {HANDLE + map.number, place(key, false, 0)}).result) continue;
    ASSERT(gone.empty() && key != newest, "map %u: more than one key is gone", map.number);
    gone = key;
  }
  CHECK(!gone.empty(), "map %u holds more than it can", map.number);
  map.model.erase(gone);
}

static void test_maps(u32 operations) {
  u32 place_at = 1024;
  std::vector<Map> maps;
  for (u32 i = 0; i < 12; i++) {
    u32 kind = 1 + i % 6, key = 4, value = 1 + below(80);
    if (kind == 2 || kind == 3) key = i < 6 ? 1 + below(32) : 1 + below(64);
    if (kind == 4) key = 5 + below(16);
    if (kind >= 5) value = 4;
    maps.push_back(create(31 - i, kind, key, value, 1 + below(24), 1 << below(5), place_at));
  }
  for (u32 i = 0; i < operations; i++) {
    Map &map = maps[below(maps.size())];
    bool host = map.kind >= 5 || below(4) == 0;
    Bytes key = map.random_key(), value(map.value_bytes);
    for (auto &byte : value) byte = below(4) ? chance() : 0;
    if (map.kind == 5 && below(4) == 0) memset(value.data(), 0, 4);
    u64 flags = below(8) ? below(3) : below(2) ? 3 + below(5) : (u64)(1 + below(2)) << 32;
    u32 what = below(8);
    if (what < 3) check_lookup(map, key, host);
    else if (what < 6) {
      u64 from = place(key, host, 0), to = place(value, host, 1);
      u64 result = bench->call(2, {HANDLE + map.number, from, to, flags}, host).result;
      u64 expected = map.update(key, value, flags);
      CHECK(result == expected, "update of map %u, kind %u: %lld, not %lld", map.number, map.kind,
            (long long)result, (long long)expected);
      if (map.model.size() > map.entries) find_victim(map, key);
    } else {
      u64 result = bench->call(3, {HANDLE + map.number, place(key, host, 0)}, host).result;
      u64 expected = map.remove(key);
      CHECK(result == expected, "removal from map %u, kind %u: %lld, not %lld", map.number,
            map.kind, (long long)result, (long long)expected);
    }
    if (map.kind >= 2 && map.kind <= 4) {
      CHECK((u32)bench->state_of(map.number) <= map.entries, "too many entries were used");
    }
  }
  for (auto &map : maps) {
    auto all = map.model;
    for (auto &[key, value] : all) check_lookup(map, key, map.kind == 6);
  }
}

// Keys, values and buffers of which only the first bytes exist.
static void test_misses() {
  const u64 end = STACK + 4096;
  u32 place_at = 1024;
  Map shorter = create(1, 2, 32, 48, 8, 4, place_at);
  Map longer = create(2, 2, 64, 8, 8, 4, place_at);
  for (u32 helper : {1, 2, 3}) {
    auto call = [&](const Map &map, u64 key, u64 value) {
      return bench->call(helper, {HANDLE + map.number, key, value, 0}).result;
    };
    CHECK(call(shorter, end, STACK) == E_FAULT, "helper %u: no byte of a key", helper);
    CHECK(call(shorter, end - 16, STACK) == E_FAULT, "helper %u: 16 of 32 bytes", helper);
    CHECK(call(longer, end - 40, STACK) == E_FAULT, "helper %u: 40 of 64 bytes", helper);
  }
  Bytes key(32);
  for (auto &byte : key) byte = chance();
  u64 from = place(key, false, 0);
  auto update = [&](u64 value) {
    return bench->call(2, {HANDLE + shorter.number, from, value, 0}).result;
  };
  CHECK(update(end) == E_FAULT && update(end - 24) == E_FAULT, "a value that is not there");
  check_lookup(shorter, key, false);
  CHECK(bench->call(28, {end - 24, 48, STACK, 0, 0}).result == E_FAULT, "24 of 48 bytes summed");
  CHECK(bench->call(28, {STACK, 0, end, 24, 0}).result == E_FAULT, "none of 24 bytes summed");
  CHECK(bench->call(190, {0, 8, end - 24, 48}).result == E_FAULT, "24 of 48 bytes stored");
}

static u64 plain_checksum(const Bytes &from, const Bytes &to, u32 seed) {
  // As in the interpreter: 32-bit sums with end-around carry.
  auto add = [](u32 a, u32 b) { return (u32)(((u64)a + b) + (((u64)a + b) >> 32)); };
  auto sum = [&](const Bytes &bytes, u32 begin) {
    u64 wide = begin;
    for (size_t i = 0; i < bytes.size(); i += 4) {
      u32 word;
      memcpy(&word, &bytes[i], 4);
      wide += word;
    }
    return add(wide, wide >> 32);
  };
  auto fold = [](u32 value) {
    u32 once = (value & 0xffff) + (value >> 16);
    return (u64)((once + (once >> 16)) & 0xffff);
  };
  if (from.empty() && to.empty()) return seed;
  if (to.empty()) return fold(~sum(from, ~seed));
  if (from.empty()) return fold(sum(to, seed));
  return fold(add(sum(to, seed), ~sum(from, 0)));
}

static void test_checksums() {
  for (u32 i = 0; i < 400; i++) {
    Bytes from(below(3) ? 4 * below(40) : 0), to(below(3) ? 4 * below(40) : 0);
    u32 edge = below(4), start = below(3) ? chance() : -below(2);
    for (auto *bytes : {&from, &to}) {
      for (auto &byte : *bytes) byte = edge == 0 ? 0xff : edge == 1 ? 0 : chance();
    }
    u64 a = place(from, false, 0), b = place(to, false, 1);
    u64 result = bench->call(28, {a, from.size(), b, to.size(), start}).result;
    u64 expected = plain_checksum(from, to, start);
    CHECK(result == expected, "checksum %llx, not %llx", (unsigned long long)result,
          (unsigned long long)expected);
  }
  CHECK(bench->call(28, {STACK, 3, STACK, 4, 0}).result == E_INVAL, "3 bytes");
  CHECK(bench->call(28, {PACKET + 4000, 4, 0, 0, 0}).result == E_FAULT, "behind the packet");
  CHECK(bench->call(28, {0, 0, PACKET + bench->meta - 1, 4, 0}).result == E_FAULT, "before it");
}

static void test_bounds() {
  Bytes slot(4096);
  for (u32 round = 0; round < 300; round++) {
    bench->begin(14 + below(below(4) ? 200 : 3500));
    for (auto &byte : slot) byte = chance();
    memcpy(bench->packet, slot.data(), 4096);
    long data = 256, end = bench->end, meta = 256, limit = std::max(4096 - 320l, end);
    for (u32 step = 0; step < 12; step++) {
      u32 which = below(3);
      long by = below(2) ? (long)below(40) - 20 : (long)below(600) - 300;
      if (which == 1) by = below(2) ? -4 * (long)below(20) : (long)below(260) - 254;
      if (below(16) == 0) by = (int)chance();
      u64 expected = E_INVAL;
      long length = data - meta;
      if (which == 0 && data + by >= 40 + length && data + by + 14 <= end) {
        memmove(&slot[meta + by], &slot[meta], length);
        data += by, meta += by, expected = 0;
      } else if (which == 1 && meta + by >= 40 && meta + by <= data) {
        long longer = data - meta - by;
        expected = longer % 4 || longer > 252 ? E_ACCES : 0;
        if (!expected) meta += by;
      } else if (which == 2 && end + by <= limit && end + by >= data + 14) {
        if (by > 0) memset(&slot[end], 0, by);
        end += by, expected = 0;
      }
      const u32 helpers[3] = {44, 54, 65};
      u64 upper = below(2) ? chance() << 32 : 0;
      u64 result = bench->call(helpers[which], {0x30000000, upper | (u32)by}).result;
      CHECK(result == expected, "helper %u by %ld: %lld, not %lld", helpers[which], by,
            (long long)result, (long long)expected);
      CHECK(bench->data == data && bench->end == end && bench->meta == meta,
            "helper %u by %ld: bounds %u %u %u, not %ld %ld %ld", helpers[which], by,
            bench->meta, bench->data, bench->end, meta, data, end);
      CHECK(!memcmp(bench->packet + meta, &slot[meta], end - meta), "helper %u by %ld: bytes",
            helpers[which], by);
    }
    CHECK(bench->call(188, {0x30000000}).result == (u64)(end - data), "length");
    u32 offset = below(end - data + 2), bytes = below(90);
    bool beyond = offset + bytes > end - data, stores = below(2);
    u64 at = STACK + below(1000);
    for (u32 i = 0; i < bytes; i++) *bench->at(at + i) = chance();
    u64 result = bench->call(stores ? 190 : 189, {0, offset, at, bytes}).result;
    CHECK(result == (beyond ? E_INVAL : 0), "%u bytes at %u", bytes, offset);
    bool same = !memcmp(bench->at(at), bench->packet + data + offset, bytes);
    CHECK(beyond || same, "%u bytes at %u are others", bytes, offset);
  }
}

static u32 cycles_of(u32 map, const Bytes &key) {
  u64 at = STACK + 8 + below(8);
  memcpy(bench->at(at), key.data(), key.size());
  Answer answer = bench->call(1, {HANDLE + map, at});
  CHECK(answer.result != 0, "the key is not there");
  return answer.cycles;
}

// Cycles from that of call_valid to that of call_done.
static void test_latency() {
  u32 at = 1024, fixed = 0;
  bench->always_ready = true;
  Map array = create(1, 1, 4, 16, 8, 1, at);
  u32 cycles = cycles_of(1, {3, 0, 0, 0});
  printf("array lookup: %u cycles\n", cycles);
  CHECK(cycles <= 5, "array lookup: %u cycles", cycles);
  for (u32 bytes = 1; bytes <= 64; bytes++) {
    create(2, 2, bytes, 8, 4, 4, at);
    Bytes key(bytes), value(8);
    for (auto &byte : key) byte = chance();
    CHECK(!bench->call(2, {HANDLE + 2, place(key, 0, 0), place(value, 0, 1), 0}).result, "full");
    cycles = cycles_of(2, key);
    if (bytes == 1) fixed = cycles, printf("hash lookup: %u cycles\n", cycles);
    CHECK(cycles <= 6 || bytes > 32, "hash lookup: %u cycles", cycles);
    CHECK(bytes > 32 || cycles == fixed, "%u bytes: %u cycles, not %u", bytes, cycles, fixed);
    if (bytes == 64) printf("hash lookup, keys of 64 bytes: %u cycles\n", cycles);
  }
  create(3, 5, 4, 4, 8, 1, at);
  CHECK(!bench->call(2, {HANDLE + 3, place({3, 0, 0, 0}, 1, 0), place({9, 0, 0, 0}, 1, 1)}, true)
             .result, "sparse");
  Answer answer = bench->call(51, {HANDLE + 3, 3, 2});
  printf("redirect_map: %u cycles\n", answer.cycles);
  CHECK(answer.result == 4 && answer.redirected && answer.map == 3 && answer.key == 3, "map");
  CHECK(answer.cycles <= 4, "redirect_map: %u cycles", answer.cycles);
  answer = bench->call(51, {HANDLE + 3, 4, 2});
  CHECK(answer.result == 2 && answer.map == ~0u && answer.key == 0, "no entry");
  CHECK(bench->call(51, {HANDLE + 3, 3, 4}).result == 0, "unknown flags");
  answer = bench->call(51, {HANDLE + 2, 3, 2});
  CHECK(answer.unknown, "keys of 64 bytes");
  create(2, 2, 4, 4, 4, 4, at);
  bench->call(2, {HANDLE + 2, place({7, 0, 0, 0}, 0, 0), place({9, 0, 0, 0}, 0, 1), 0});
  CHECK(bench->call(51, {HANDLE + 2, 7, 1}).result == 4, "devices by keys");
  CHECK(bench->call(51, {HANDLE + 2, 8, 1}).result == 1, "devices by keys");
  answer = bench->call(23, {5, 0});
  CHECK(answer.result == 4 && answer.cycles <= 1 && answer.key == 5 && answer.map == ~0u, "device");
  answer = bench->call(23, {5, 1});
  CHECK(answer.result == 0 && !answer.redirected, "flags");
  Map programs = create(4, 6, 4, 4, 8, 1, at);
  bench->call(2, {HANDLE + 4, place({3, 0, 0, 0}, 1, 0), place({0x34, 0x12, 0, 0}, 1, 1)}, true);
  for (u32 i = 0; i < 40; i++) {
    if (i == 36) bench->begin(3400);
    answer = bench->call(12, {0, HANDLE + 4, 3});
    bool jumps = i < 33 || i >= 36;
    CHECK(answer.jump == jumps && (jumps ? answer.row == 0x1234 : answer.result == E_NOENT),
          "tail call %u", i);
  }
  CHECK(!bench->call(12, {0, HANDLE + 4, 8}).jump, "beyond the programs");
  CHECK(bench->call(1, {HANDLE + 4, STACK}).unknown, "programs cannot be looked up");
}

// Begins a call of the core that is completed elsewhere.
static void give_call(u32 helper, std::vector<u64> arguments) {
  arguments.resize(5);
  for (int i = 0; i < 10; i++) bench->top.call_arguments[i] = arguments[i / 2] >> i % 2 * 32;
  bench->top.call_valid = 1, bench->top.call_helper = helper;
}

// The entries of a full LRU map are evicted in turn.
static void test_turns() {
  u32 at = 1024;
  create(6, 3, 4, 4, 4, 4, at);
  for (u8 i = 0; i < 12; i++) {
    bench->call(2, {HANDLE + 6, place({i, 0, 0, 0}, false, 0), place({i, 0, 0, 0}, false, 1)});
    for (u8 key = 0; key <= i; key++) {
      u64 found = bench->call(1, {HANDLE + 6, place({key, 0, 0, 0}, false, 0)}).result;
      CHECK((found != 0) == (key + 4 > i), "key %u after %u others", key, i);
    }
  }
}

static void test_rest() {
  bench->begin(3400);
  test_turns();
  if (bench->always_ready) {
    u32 cycles = bench->call(28, {STACK, 20, STACK + 32, 20, 0}).cycles;
    if (seed == 3) printf("csum_diff, 20 bytes twice: %u cycles\n", cycles);
    CHECK(cycles <= 7, "csum_diff: %u cycles", cycles);
  }
  bench->top.random_write = 1, bench->top.random_wdata = 42;
  bench->settle(), bench->tick();
  bench->top.random_write = 0;
  u64 state = 42;
  for (u32 i = 0; i < 100; i++) {
    u64 mixed = state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    CHECK(bench->call(7, {}).result == (mixed ^ mixed >> 31) >> 32, "random number %u", i);
    CHECK(bench->top.random_state == state, "state");
  }
  bench->top.time_now = 0x123456789abc;
  CHECK(bench->call(5, {}).result == 0x123456789abc, "time");
  CHECK(bench->call(8, {}).result == 0 && bench->call(93, {}).result == 0, "zeros");
  for (u32 helper : {0u, 4u, 25u, 130u, 255u}) {
    CHECK(bench->call(helper, {}).unknown, "helper %u", helper);
  }
  CHECK(bench->call(1, {HANDLE + 40, STACK}).unknown, "no such map");
  CHECK(bench->call(1, {STACK, STACK}).unknown, "no map");
  u32 at = 1024;
  create(5, 2, 20, 8, 4, 4, at);
  bench->begin(60);
  CHECK(bench->call(1, {HANDLE + 5, PACKET + 256 + 41}).result == E_FAULT, "behind the packet");
  CHECK(bench->call(1, {HANDLE + 5, PACKET + 255}).result == E_FAULT, "in front of it");
  CHECK(bench->call(1, {HANDLE + 5, PACKET + 256 + 40}).result == 0, "the packet's last bytes");
  CHECK(bench->call(1, {HANDLE + 5, 0}).result == E_FAULT, "nowhere");
  CHECK(bench->call(1, {HANDLE + 5, MAPS + MAP_BYTES}).result == E_FAULT, "behind the maps");
  CHECK(bench->call(2, {HANDLE + 5, STACK, PACKET + 256 + 53}).result == E_FAULT, "value");
  CHECK(bench->state_of(5) == 0, "nothing is there");
  bench->top.map_base_index = 5;
  bench->settle();
  bench->top.table_map = 5, bench->top.table_word = 2;
  bench->settle();
  CHECK(bench->top.map_base == bench->top.table_rdata, "where entries begin");
  // A key that has arrived is read before the packet's end is known; one that has not is waited
  // for.
  bench->top.packet_complete = 0, bench->top.packet_arrived = 320, bench->end = 0;
  CHECK(bench->call(1, {HANDLE + 5, PACKET + 300}).result == 0, "all of the key is there");
  CHECK(bench->call(1, {HANDLE + 5, PACKET + 255}).result == E_FAULT, "in front of the packet");
  give_call(1, {HANDLE + 5, PACKET + 301});
  for (u32 i = 0; i < 20; i++) {
    bench->settle();
    CHECK(!bench->top.call_done && !bench->top.service_valid, "a byte has not come");
    bench->tick();
  }
  bench->top.packet_complete = 1, bench->end = 320;
  CHECK(bench->call(1, {HANDLE + 5, PACKET + 301}).result == E_FAULT, "it never does");
  // A helper that needs the packet's end waits for it.
  bench->top.packet_complete = 0, bench->top.call_valid = 1, bench->top.call_helper = 65;
  for (u32 i = 0; i < 20; i++) {
    bench->settle();
    CHECK(!bench->top.call_done && !bench->top.set_valid, "the packet is not complete");
    bench->tick();
  }
  bench->top.call_valid = 0, bench->top.packet_complete = 1;
  bench->settle(), bench->tick();
}

int main() {
  static Bench only;
  bench = &only;
  bench->reset();
  bench->begin(3400);
  test_latency();
  for (seed = 1; seed <= 15; seed++) {
    chance.seed(seed);
    bench->reset();
    bench->begin(3400);
    bench->always_ready = seed % 3 == 0;
    test_maps(3000);
    test_misses();
    test_checksums();
    test_bounds();
    test_rest();
    bench->begin(3400);
    test_lines(*bench);
  }
  printf("%llu passed, 0 failed\n", (unsigned long long)passed);
}
