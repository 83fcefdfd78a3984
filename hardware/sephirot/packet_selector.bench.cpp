// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sends packets through queue, selector and memory, with random programs that load, store and move
// packet ends, against arrays of bytes; then measures the throughput of dropping and sending small
// packets.
// top: packet_path
// parameters: -GLANES=4
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

constexpr int LANES = 4, LIMIT = 4096 - 320;
static Vtop *top;
static std::mt19937_64 rng;
static uint32_t seed;
static uint64_t cycles, passed, emitted;
static uint64_t below(uint64_t n) { return rng() % n; }

[[noreturn]] static void fail(const char *what, uint64_t got, uint64_t want) {
  printf("seed %u, cycle %llu: %s: %llx instead of %llx\n", seed, (unsigned long long)cycles, what,
         (unsigned long long)got, (unsigned long long)want);
  exit(1);
}
static void same(const char *what, uint64_t got, uint64_t want) {
  if (got != want) fail(what, got, want);
}
template <class Wide> static void set64(Wide &wide, int lane, uint64_t value) {
  wide[2 * lane] = (uint32_t)value;
  wide[2 * lane + 1] = (uint32_t)(value >> 32);
}

struct Packet {
  uint32_t id, queue;
  std::vector<uint8_t> bytes;
};
struct Sent {
  uint32_t id, verdict, stop, map, key, meta;
  std::vector<uint8_t> bytes;
  std::vector<bool> known;
};
// Packets that will arrive, those that were sent to the card, and those that must be emitted.
static std::deque<Packet> to_come, in_card;
static std::deque<Sent> to_leave;
static size_t sent_bytes, got_bytes;
static int rx_rate = 8, tx_rate = 8;
static uint64_t oversize, began, ended;

static void send(uint32_t id, int length) {
  Packet packet = {id, (uint32_t)rng(), std::vector<uint8_t>(length)};
  for (uint8_t &byte : packet.bytes) byte = rng();
  to_come.push_back(packet);
}

// One cycle of the network's two sides, around any action of the core.
static void tick() {
  bool offers = top->rx_valid || (!to_come.empty() && below(8) < (uint64_t)rx_rate);
  top->rx_valid = offers;
  if (offers) {
    Packet &p = to_come.front();
    size_t bytes = std::min<size_t>(32, p.bytes.size() - sent_bytes);
    memset(&top->rx_data[0], 0xee, 32);
    memcpy(&top->rx_data[0], p.bytes.data() + sent_bytes, bytes);
    top->rx_bytes = bytes;
    top->rx_last = sent_bytes + bytes == p.bytes.size();
    top->rx_ifindex = sent_bytes ? 0xbad : p.id;  // only the first beat's counts
    top->rx_queue = sent_bytes ? 0xbad : p.queue;
  }
  top->tx_ready = below(8) < (uint64_t)tx_rate;
  top->eval();
  if (offers && top->rx_ready) {
    sent_bytes += top->rx_bytes;
    if (!top->rx_last) {
      if (sent_bytes == 32) in_card.push_back(to_come.front());
    } else {
      if (sent_bytes <= 32) in_card.push_back(to_come.front());
      to_come.pop_front();
      sent_bytes = 0;
    }
  }
  bool drops_valid = offers && top->rx_ready;
  if (top->tx_valid && top->tx_ready) {
    if (to_leave.empty()) fail("a beat that nobody sent", top->tx_ifindex, 0);
    Sent &s = to_leave.front();
    same("tx_ifindex", top->tx_ifindex, s.id);
    same("tx_verdict", top->tx_verdict, s.verdict);
    same("tx_stop", top->tx_stop, s.stop);
    same("tx_meta", top->tx_meta, s.meta);
    same("tx_map", top->tx_map, s.map);
    same("tx_key", top->tx_key, s.key);
    size_t left = s.bytes.size() - got_bytes, bytes = std::min<size_t>(32, left);
    same("tx_bytes", top->tx_bytes, bytes);
    same("tx_last", top->tx_last, left <= 32);
    const uint8_t *data = (const uint8_t *)&top->tx_data[0];
    for (size_t i = 0; i < bytes; i++)
      if (s.known[got_bytes + i] && data[i] != s.bytes[got_bytes + i]) {
        printf("byte %zu of %zu of packet %u\n", got_bytes + i, s.bytes.size(), s.id);
        fail("an emitted byte", data[i], s.bytes[got_bytes + i]);
      }
    got_bytes += bytes;
    if (top->tx_last) to_leave.pop_front(), got_bytes = 0, emitted++, passed++;
  }
  oversize += top->event_oversize;
  began += top->event_packet;
  ended += top->event_done;
  top->clk = 1;
  top->eval();
  if (drops_valid) top->rx_valid = 0;
  top->clk = 0;
  top->eval();
  cycles++;
  top->packet_begin = top->packet_done = top->set_valid = top->redirect_valid = 0;
  top->store_valid = top->load_valid = 0;
}

// The core's knowledge of the current packet.
static uint8_t memory[4096];
static bool known[4096];
static Sent result;
static bool too_long;

static void begin() {
  // Packets that are too long may be dropped before they begin.
  for (;; in_card.pop_front()) {
    if (in_card.empty()) fail("a packet that never came", top->packet_ifindex, 0);
    if (in_card.front().id == top->packet_ifindex) break;
    if (in_card.front().bytes.size() <= LIMIT - 256u)
      fail("a lost packet", top->packet_ifindex, in_card.front().id);
  }
  Packet &p = in_card.front();
  same("packet_queue", top->packet_queue, p.queue);
  same("packet_data", top->packet_data, 256);
  same("packet_meta", top->packet_meta, 256);
  memset(known, 0, sizeof known);
  too_long = p.bytes.size() > LIMIT - 256u;
  for (size_t i = 0; i < p.bytes.size() && 256 + i < (size_t)LIMIT; i++)
    memory[256 + i] = p.bytes[i], known[256 + i] = true;
  result = {p.id, 0, 0, 0xffffffff, 0, 0, {}, {}};
  in_card.pop_front();
}

static int reach() { return top->packet_complete ? top->packet_end : top->packet_arrived; }

static void some_stores(int slot) {
  int meta = top->packet_meta, room = reach() - meta;
  bool used[4096 / 8 + 1] = {};
  top->store_valid = 0;
  top->store_slot = slot;
  for (int l = 0; l < LANES; l++) {
    int bytes = std::vector<int>{1, 2, 4, 6, 8}[below(5)];
    if (room < bytes || below(3) == 0) continue;
    int offset = meta + below(below(2) ? room - bytes + 1 : std::min(room - bytes + 1, 100));
    if (used[offset / 8] || used[(offset + bytes - 1) / 8]) continue;
    used[offset / 8] = used[(offset + bytes - 1) / 8] = true;
    uint64_t value = rng();
    top->store_valid |= 1 << l;
    set64(top->store_address, l, 0x10000000 + offset);
    set64(top->store_data, l, value);
    top->store_bytes = (top->store_bytes & ~(15 << 4 * l)) | bytes << 4 * l;
    memcpy(memory + offset, &value, bytes);
    memset(known + offset, 1, bytes);
  }
  for (int valid = top->store_valid;;) {
    top->eval();
    same("store_miss", top->store_miss, 0);
    bool wait = top->store_wait;
    tick();
    if (!wait) return;
    top->store_valid = valid;
  }
}

static void a_load(bool far) {
  uint64_t bytes = std::vector<int>{1, 2, 4, 6, 8}[below(5)], meta = top->packet_meta;
  int last = LIMIT;
  while (last > 256 && !known[last - 1]) last--;
  if (top->packet_complete || !far) last = reach();
  if (last - (int)meta < (int)bytes) return;
  uint64_t offset = far ? last - bytes : meta + below(last - meta - bytes + 1);
  for (int tries = 0;; tries++) {
    if (tries > 20000) fail("a load that waits for ever", offset, 0);
    top->load_valid = 1;
    set64(top->load_address, 0, 0x10000000 + offset);
    top->load_bytes = bytes;
    top->eval();
    bool wait = top->load_wait;
    tick();
    if (!wait) break;
  }
  same("load_miss", top->load_miss & 1, 0);
  for (uint64_t i = 0; i < bytes; i++)
    if (known[offset + i])
      same("a loaded byte", (top->load_data[i / 4] >> 8 * (i % 4)) & 255, memory[offset + i]);
  passed++;
}

static void zeros(int from, int to) {
  for (int at = from & ~7; at < to; at += 32) {
    top->service_valid = top->service_write = 1;
    top->service_address = 0x10000000 | at;
    top->service_enable = 0;
    memset(&top->service_wdata[0], 0, 32);
    for (int i = 0; i < 32; i++)
      if (at + i >= from && at + i < to) {
        top->service_enable |= 1u << i;
        memory[at + i] = 0;
        known[at + i] = true;
      }
    for (bool ready = false; !ready;) {
      top->eval();
      ready = top->service_ready;
      same("service_miss", top->service_miss, 0);
      tick();
    }
    top->service_valid = 0;
  }
}

static void wait_complete() { while (!top->packet_complete) tick(); }

static void move_ends() {
  int data = top->packet_data, meta, end = top->packet_end;
  if (below(2)) wait_complete(), end = top->packet_end;
  int before = end;
  if (below(2) || !top->packet_complete) {
    data = std::max(0, data - (int)below(60));
    meta = std::max(0, data - 4 * (int)below(9));
  } else {
    data = std::min(end, data + (int)below(40));
    meta = std::max(0, data - 4 * (int)below(9));
    end = below(2) ? data + below(end - data + 1) : std::min<int>(LIMIT, end + below(90));
  }
  if (end > before && top->packet_complete) zeros(before, end);
  top->set_valid = 1;
  top->set_data = data;
  top->set_meta = meta;
  top->set_end = top->packet_complete ? end : 0;
  tick();
  same("packet_meta that was set", top->packet_meta, meta);
}

static void program(uint32_t verdict) {
  for (int n = below(6); n > 0; n--)
    switch (below(6)) {
      case 0: a_load(true); break;
      case 1: a_load(false); break;
      case 2: move_ends(); break;
      case 3:
        top->redirect_valid = 1;
        top->redirect_map = result.map = below(5);
        top->redirect_key = result.key = rng();
        tick();
        break;
      default: some_stores(top->packet_slot);
    }
  result.verdict = verdict;
  result.stop = verdict ? 0 : below(7);
}

static void finish(bool emit_all) {
  top->packet_done = 1;
  top->packet_verdict = result.verdict;
  top->packet_stop = result.stop;
  bool leaves = !too_long && (emit_all || (result.verdict >= 2 && result.verdict <= 4));
  // Rows in decode and execute may store once more.
  int slot = top->packet_slot;
  int data = top->packet_data, meta = top->packet_meta;
  if (!below(3)) some_stores(slot);
  else if (!below(2)) tick(), some_stores(slot);
  if (!leaves) return;
  int end = result.verdict == 0xffffffff ? 0 : top->packet_end;
  if (!top->packet_complete) {
    int last = LIMIT;
    while (!known[last - 1] && last > 256) last--;
    end = last;
  }
  result.meta = data - meta;
  result.bytes.assign(memory + meta, memory + end);
  result.known.assign(known + meta, known + end);
  to_leave.push_back(result);
}

static void random_packets(int count, bool emit_all, int lengths) {
  static uint32_t id;
  top->emit_all = emit_all;
  uint64_t too_long_ones = 0, oversize_before = oversize, began_before = began, sent = 0;
  for (int n = 0; n < count; n++) {
    int length = below(lengths) ? below(lengths == 1 ? 3700 : 200) : below(3521);
    if (lengths == 1 && !below(8)) length = LIMIT - 256 - 2 + below(5);
    too_long_ones += length > LIMIT - 256;
    send(++id, length);
    sent++;
  }
  rx_rate = 1 + below(8);
  tx_rate = 1 + below(8);
  for (int quiet = 0; quiet < 200;) {
    top->eval();
    if (!top->packet_ready || !below(4)) {
      quiet = to_come.empty() && to_leave.empty() && top->idle ? quiet + 1 : 0;
      tick();
      continue;
    }
    quiet = 0;
    bool back_to_back = false;
    do {
      top->packet_begin = 1;
      tick();
      begin();
      program(below(12) ? below(5) : rng());
      top->eval();
      // The next packet can begin in the cycle in which this one is done.
      back_to_back = top->packet_ready && below(2) && (result.verdict < 2 ||
                     result.verdict > 4) && !emit_all;
      if (back_to_back) {
        top->packet_done = 1;
        top->packet_verdict = result.verdict;
        top->packet_stop = result.stop;
      }
    } while (back_to_back);
    finish(emit_all);
  }
  // A packet that is dropped before all of it has arrived is not checked for its length.
  if (oversize - oversize_before > too_long_ones) fail("too long", oversize, too_long_ones);
  same("packets that came", began - began_before, sent);
  for (Packet &p : in_card)
    if (p.bytes.size() <= LIMIT - 256u) fail("a packet that never began", 0, p.id);
  in_card.clear();
}

// Cycles per packet, if a packet is processed for `work` cycles.
static double rate(uint32_t verdict, int length, int work, int count) {
  top->emit_all = 0;
  rx_rate = tx_rate = 8;
  for (int n = 0; n < count; n++) send(1000000 + n, length);
  uint64_t first = 0, last = 0;
  int left = count, busy = 0;
  while (left || busy || !to_leave.empty()) {
    top->eval();
    if (busy == 1) {
      top->packet_done = 1;
      top->packet_verdict = verdict;
      top->packet_stop = 0;
      if (verdict == 3) {
        result.verdict = 3;
        result.bytes.assign(memory + 256, memory + 256 + length);
        result.known.assign(length, true);
        to_leave.push_back(result);
      }
    }
    bool begins = left && busy <= 1 && top->packet_ready;
    top->packet_begin = begins;
    if (busy) busy--;
    tick();
    if (!begins) continue;
    if (!first) first = cycles;
    last = cycles;
    begin();
    left--;
    busy = work;
  }
  for (int i = 0; i < 20; i++) tick();
  return (double)(last - first) / (count - 1);
}

int main(int argc, char **argv) {
  seed = argc > 1 ? atoi(argv[1]) : 1;
  rng.seed(seed);
  top = new Vtop;
  top->rst = 1;
  tick();
  tick();
  top->rst = 0;
  for (int round = 0; round < 60; round++) {
    random_packets(100, round % 4 == 3, 20);
    random_packets(4, false, 1);
  }
  if (!oversize || !emitted) fail("what was tried", oversize, emitted);
  double drop = rate(1, 64, 1, 2000), slow = rate(1, 64, 3, 2000), tx = rate(3, 64, 3, 2000);
  double large = rate(3, 1500, 10, 200);
  printf("cycles per packet: 64 bytes, dropped by 1 row %.2f, by 3 rows %.2f, sent by 3 rows %.2f; "
         "1500 bytes sent %.2f\n", drop, slow, tx, large);
  if (drop > 2.01 || slow > 3.01 || tx > 3.01 || large > 47.2) fail("too slow", 1, 0);
  printf("%llu packets emitted, %llu too long, %llu cycles\n", (unsigned long long)emitted,
         (unsigned long long)oversize, (unsigned long long)cycles);
  printf("%llu passed, 0 failed\n", (unsigned long long)passed);
  return 0;
}
