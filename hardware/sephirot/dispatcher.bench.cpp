// SPDX-License-Identifier: Apache-2.0 OR MIT
// Tests the dispatcher with packets of all kinds, and pauses on all sides, against a simple model:
// a packet's core is computed from its bytes independently of the module.
// top: dispatcher
// parameters: -GCORES=4
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

constexpr int CORES = 4;
static Vtop *top;
static std::mt19937_64 rng;
static uint64_t cycles;

using Bytes = std::vector<uint8_t>;

static uint64_t below(uint64_t n) { return rng() % n; }

#define CHECK(condition, ...)                                       \
  if (!(condition)) {                                               \
    printf("cycle %llu, line %d: ", (unsigned long long)cycles, __LINE__); \
    printf(__VA_ARGS__);                                            \
    printf("\n");                                                   \
    exit(1);                                                        \
  }

// ------------------------------------------------------------------------------- the model

static uint32_t turned(uint32_t word, int by) { return by ? word << by | word >> (32 - by) : word; }

// The hash of `key_hash`, with that module's rotations for the first five words.
static uint32_t key_hash(const std::array<uint32_t, 5> &words) {
  static const int turns[5][2] = {{29, 21}, {24, 30}, {1, 10}, {9, 28}, {0, 20}};
  uint32_t folded = 0, hash = 0;
  for (int i = 0; i < 5; i++)
    for (int turn : turns[i]) folded ^= turned(words[i], turn);
  for (int i = 0; i < 32; i++)
    if (0x09e0232au >> i & 1) hash ^= turned(folded, i);
  return hash;
}

// One end of a flow: an address of up to 16 bytes, and a port in network byte order.
static uint32_t end_hash(const uint8_t *address, int length, const uint8_t *port) {
  uint8_t bytes[20] = {};
  std::copy(address, address + length, bytes);
  if (port) std::copy(port, port + 2, bytes + 16);
  std::array<uint32_t, 5> words;
  for (int i = 0; i < 5; i++)
    words[i] = bytes[4 * i] | bytes[4 * i + 1] << 8 | bytes[4 * i + 2] << 16 |
               (uint32_t)bytes[4 * i + 3] << 24;
  return key_hash(words);
}

// Returns the flow hash of a packet.
static uint16_t flow(const Bytes &packet) {
  const uint8_t *all = packet.data();
  // Bytes after the third beat are ignored.
  int size = std::min<int>(packet.size(), 96), at = 14;
  uint32_t sum = 0;
  if (size < 14) return 0;
  int type = all[12] << 8 | all[13];
  if ((type == 0x8100 || type == 0x88a8) && size >= 18) {
    type = all[16] << 8 | all[17];
    at = 18;
  }
  const uint8_t *network = all + at;
  int left = size - at, ports = 0, protocol = 0, address_bytes = 0, from = 0;
  bool is_fragment = false;
  if (type == 0x0800 && left >= 20 && network[0] >> 4 == 4 && (network[0] & 15) >= 5) {
    address_bytes = 4, from = 12;
    protocol = network[9];
    ports = 4 * (network[0] & 15);
    is_fragment = (network[6] & 0x3f) || network[7];
  } else if (type == 0x86dd && left >= 40 && network[0] >> 4 == 6) {
    address_bytes = 16, from = 8;
    protocol = network[6];
    ports = 40;
  } else {
    sum = end_hash(all, 6, nullptr) + end_hash(all + 6, 6, nullptr);
    return sum >> 16 ^ sum;
  }
  bool has_ports = protocol == 6 || protocol == 17 || protocol == 132;
  bool are_there = has_ports && !is_fragment && left >= ports + 4;
  const uint8_t *port = are_there ? network + ports : nullptr;
  const uint8_t *source = network + from, *destination = source + address_bytes;
  sum = end_hash(source, address_bytes, port) +
        end_hash(destination, address_bytes, port ? port + 2 : nullptr);
  if (!is_fragment && (are_there || !has_ports)) sum += protocol << 8;
  return sum >> 16 ^ sum;
}

static int core_of(const Bytes &packet, int cores) {
  return (uint32_t)(uint16_t)(flow(packet) * 0x9e3bu) * cores >> 16;
}

// ----------------------------------------------------------------------------- packets

struct Flow {
  bool is_v6;
  uint8_t protocol, ends[2][16], ports[2][2], macs[2][6];
};

static Flow random_flow() {
  Flow it;
  it.is_v6 = below(3) == 0;
  static const uint8_t protocols[] = {6, 17, 17, 6, 132, 1, 58, 47};
  it.protocol = protocols[below(8)];
  for (auto &end : it.ends)
    for (auto &byte : end) byte = rng();
  for (auto &port : it.ports)
    for (auto &byte : port) byte = rng();
  for (auto &mac : it.macs)
    for (auto &byte : mac) byte = rng();
  return it;
}

// Creates a packet of a flow, in one direction, with arbitrary options, tag and payload.
static Bytes packet_of(const Flow &flow, bool reply, int tags, int words, bool fragment) {
  Bytes packet;
  auto put = [&](const uint8_t *bytes, int count) {
    packet.insert(packet.end(), bytes, bytes + count);
  };
  put(flow.macs[reply], 6);
  put(flow.macs[!reply], 6);
  for (int i = 0; i < tags; i++) {
    uint8_t tag[] = {(uint8_t)(i || below(2) ? 0x81 : 0x88), 0, (uint8_t)rng(), (uint8_t)rng()};
    if (tag[0] == 0x88) tag[1] = 0xa8;
    put(tag, 4);
  }
  if (flow.is_v6) {
    uint8_t header[10] = {0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, flow.protocol, 64};
    put(header, 10);
    put(flow.ends[reply], 16);
    put(flow.ends[!reply], 16);
  } else {
    uint8_t header[14] = {8, 0, (uint8_t)(0x40 | words), 0, 0, 28, (uint8_t)rng(), (uint8_t)rng(),
                          (uint8_t)(below(2) ? 0x40 : 0), 0, 64, flow.protocol, 0, 0};
    if (fragment) header[8 + below(2)] = below(2) ? 0x20 : 0x01;
    put(header, 14);
    put(flow.ends[reply], 4);
    put(flow.ends[!reply], 4);
    for (int i = 5; i < words; i++) {
      uint8_t option[] = {1, 1, 1, (uint8_t)rng()};
      put(option, 4);
    }
  }
  put(flow.ports[reply], 2);
  put(flow.ports[!reply], 2);
  for (int i = below(4) ? below(60) : below(400); i > 0; i--) packet.push_back(rng());
  return packet;
}

static Bytes random_packet(const std::vector<Flow> &flows) {
  Bytes packet = packet_of(flows[below(flows.size())], below(2), below(8) ? below(2) : 2,
                           5 + (below(3) ? 0 : below(11)), below(6) == 0);
  switch (below(12)) {
    case 0: packet.resize(below(packet.size()) + 1); break;
    case 1: packet[14] = rng(); break;
    case 2: packet[12 + below(2)] = rng(); break;
    case 3: packet.resize(below(20) + 1); break;
  }
  return packet;
}

// ------------------------------------------------------------------------------- the bus

struct Sent {
  Bytes bytes;
  uint32_t number;
};
static std::deque<Sent> to_send;
static size_t sent_bytes;
static std::deque<Sent> expected[CORES];
static Bytes arriving[CORES];
static int busy_core = -1;
static uint64_t dispatched[CORES], done;

static void cycle(int rx_chance, int out_chance) {
  // An offered beat is held.
  static bool is_held;
  if (!is_held) {
    top->rx_valid = !to_send.empty() && (int)below(256) < rx_chance;
    if (top->rx_valid) {
      Sent &packet = to_send.front();
      size_t rest = packet.bytes.size() - sent_bytes, size = std::min<size_t>(rest, 32);
      for (int i = 0; i < 8; i++) top->rx_data[i] = rng();
      for (size_t i = 0; i < size; i++) {
        uint32_t &word = top->rx_data[i / 4];
        word = (word & ~(0xffu << 8 * (i % 4))) |
               (uint32_t)packet.bytes[sent_bytes + i] << 8 * (i % 4);
      }
      top->rx_bytes = size;
      top->rx_last = size == rest;
      top->rx_ifindex = packet.number;
      top->rx_queue = ~packet.number;
    }
  }
  top->out_ready = 0;
  for (int core = 0; core < CORES; core++)
    top->out_ready |= ((int)below(256) < out_chance) << core;
  top->clk = 0;
  top->eval();
  is_held = top->rx_valid && !top->rx_ready;
  if (top->rx_valid && top->rx_ready) {
    sent_bytes += top->rx_bytes;
    if (top->rx_last) {
      int core = core_of(to_send.front().bytes, top->cores);
      expected[core].push_back(to_send.front());
      to_send.pop_front();
      sent_bytes = 0;
    }
  }
  CHECK((top->out_valid & (top->out_valid - 1)) == 0, "two cores at once: %x", top->out_valid);
  for (int core = 0; core < CORES; core++) {
    if (!(top->out_valid & top->out_ready & 1 << core)) continue;
    CHECK(busy_core < 0 || busy_core == core, "a packet is torn");
    CHECK(top->out_first == (busy_core < 0), "its first beat is another one");
    CHECK(!(top->hold && busy_core < 0), "a packet begins though it must not");
    for (int i = 0; i < top->out_bytes; i++)
      arriving[core].push_back(top->out_data[i / 4] >> 8 * (i % 4));
    busy_core = top->out_last ? -1 : core;
    if (!top->out_last) continue;
    // Its last beat may still be on the way, but the packet is complete.
    CHECK(!expected[core].empty(), "core %d has a packet that nobody sent to it", core);
    Sent &packet = expected[core].front();
    CHECK(packet.number == top->out_ifindex && ~packet.number == top->out_queue,
          "core %d has packet %u and not %u", core, top->out_ifindex, packet.number);
    CHECK(packet.bytes == arriving[core], "packet %u has other bytes", packet.number);
    expected[core].pop_front();
    arriving[core].clear();
    dispatched[core]++;
    done++;
  }
  top->clk = 1;
  top->eval();
  cycles++;
}

static void drain(int rx_chance, int out_chance) {
  for (uint64_t last = cycles + 1000000; cycles < last; cycle(rx_chance, out_chance)) {
    bool is_over = to_send.empty() && top->empty && top->idle;
    for (auto &packets : expected) is_over &= packets.empty();
    if (is_over) return;
  }
  CHECK(false, "packets do not leave");
}

int main() {
  top = new Vtop;
  rng.seed(1);
  top->rst = 1;
  top->cores = CORES;
  for (int i = 0; i < 4; i++) cycle(0, 0);
  top->rst = 0;
  uint32_t number = 0;

  // All kinds of packets, with all kinds of pauses, on all numbers of cores.
  for (int round = 0; round < 60; round++) {
    std::vector<Flow> flows(1 + below(20));
    for (auto &flow : flows) flow = random_flow();
    top->cores = 1 + round % CORES;
    for (int i = 0; i < 400; i++) to_send.push_back({random_packet(flows), number++});
    int rx_chance = below(2) ? 256 : 40 + below(200), out_chance = below(2) ? 256 : 40 + below(200);
    // Sometimes no packet may begin.
    for (int i = 0; i < 300; i++) {
      if (below(20) == 0) top->hold = below(2);
      cycle(rx_chance, out_chance);
    }
    top->hold = 0;
    drain(rx_chance, out_chance);
  }
  CHECK(done == number, "%llu of %u packets", (unsigned long long)done, number);

  // Both directions of a flow, with any options and tags, go to one core.
  for (int i = 0; i < 2000; i++) {
    Flow flow = random_flow();
    int core = core_of(packet_of(flow, false, 0, 5, false), CORES);
    for (int words = 5; words <= 15; words++)
      for (int tags = 0; tags < 2; tags++)
        to_send.push_back({packet_of(flow, below(2), tags, words, false), number++});
    uint64_t before = dispatched[core];
    size_t count = to_send.size();
    drain(256, 256);
    CHECK(dispatched[core] - before == count, "a flow is on two cores");
  }

  // Flows that differ in a port or in the last byte of an address are distributed evenly.
  for (int kind = 0; kind < 3; kind++) {
    uint64_t before[CORES];
    std::copy(dispatched, dispatched + CORES, before);
    Flow flow = random_flow();
    flow.is_v6 = false;
    flow.protocol = 17;
    const int count = 1000;
    for (int i = 0; i < count; i++) {
      flow.ports[0][1] = i;
      flow.ports[0][0] = kind == 0 ? i >> 8 : 0;
      flow.ends[0][3] = kind == 0 ? 1 : i >> 8;
      if (kind == 2) flow.ports[1][1] = flow.ports[0][1];
      to_send.push_back({packet_of(flow, below(2), 0, 5, false), number++});
    }
    drain(256, 256);
    for (int core = 0; core < CORES; core++) {
      uint64_t share = dispatched[core] - before[core];
      CHECK(share > count / CORES * 3 / 4 && share < count / CORES * 5 / 4,
            "core %d has %llu of %d flows of kind %d", core, (unsigned long long)share, count,
            kind);
    }
  }

  // One beat passes in each cycle: packets of two beats take two cycles.
  Flow flow = random_flow();
  for (int i = 0; i < 500; i++) {
    Bytes packet = packet_of(flow, false, 0, 5, false);
    packet.resize(64);
    to_send.push_back({packet, number++});
  }
  uint64_t begin = cycles;
  drain(256, 256);
  CHECK(cycles - begin <= 1000 + 8, "500 packets take %llu cycles",
        (unsigned long long)(cycles - begin));

  // A core that accepts nothing blocks the others, and no packet is lost.
  for (int i = 0; i < 200; i++) to_send.push_back({random_packet({flow}), number++});
  for (int i = 0; i < 1000; i++) cycle(256, 0);
  CHECK(!to_send.empty() && !top->rx_ready, "what cannot go is taken");
  drain(256, 256);
  CHECK(done == number, "%llu of %u packets", (unsigned long long)done, number);
  printf("%u packets, %llu cycles\n", number, (unsigned long long)cycles);
  delete top;
}
