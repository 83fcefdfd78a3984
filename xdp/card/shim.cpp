// SPDX-License-Identifier: Apache-2.0 OR MIT
// Steps the clock of a verilated card, and records its input and output. Everything that takes many
// cycles is one call, so that callers do not pay for each cycle. This file is compiled once for
// each supported number of cores: CORES is that number, MODEL Verilator's name of the card. The
// only symbol it exports is a table of functions, `nic1` for one core.

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#define STRING_OF(text) #text
#define STRING(text) STRING_OF(text)
#define JOINED_OF(one, other) one##other
#define JOINED(one, other) JOINED_OF(one, other)
#define MODEL JOINED(Vnic, CORES)
#define TABLE JOINED(nic, CORES)
#include STRING(MODEL.h)
#include STRING(JOINED(MODEL, ___024root).h)
#include "verilated.h"
#include "verilated_vcd_c.h"

// Record of a packet for callers; shared with Rust, and the same for all cards.
struct Stamps {
    uint64_t arrived = 0;
    uint64_t complete = 0;
    uint64_t began = 0;
    uint64_t done = 0;
    uint64_t core = 0;
};

// Sideband signals at the last beat of a packet that left.
struct Departure {
    uint32_t verdict = 0;
    uint32_t stop = 0;
    uint32_t metadata = 0;
    uint32_t map = 0;
    uint32_t key = 0;
    uint32_t ifindex = 0;
    uint32_t length = 0;
    uint64_t first = 0;
    uint64_t last = 0;
};

namespace {

constexpr size_t BEAT = 32;

struct Packet {
    std::vector<uint8_t> bytes;
    uint32_t ifindex = 0;
    uint32_t queue = 0;
    size_t sent = 0;
};

struct Left {
    Departure departure;
    std::vector<uint8_t> bytes;
};

// Rows in the stages of the first core in a cycle, and what happens to them: `stage_rows` and
// `stage_events` of core.sv, with the packet's beginning and end in bits 18 and 19.
struct Moment {
    uint64_t cycle = 0;
    uint32_t events = 0;
    uint16_t fetch = 0;
    uint16_t decode = 0;
    uint16_t execute = 0;
    uint16_t unused = 0;
};

// Moments that are kept, at most; an observer takes them before there are more.
constexpr size_t MOMENTS_MAX = 1 << 16;

// A small random generator (xorshift), so that bus stalls are reproducible.
struct Chance {
    uint64_t state = 1;
    bool of_256(uint32_t part) {
        if (part == 0) return false;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return ((state >> 32) & 255) < part;
    }
};

class Card {
  public:
    Card() : context(new VerilatedContext), model(new MODEL{context.get(), "nic"}) { reset(); }

    ~Card() {
        // The model's destructor uses the thread's current context, which may be that of another
        // card.
        Verilated::threadContextp(context.get());
        if (trace) trace->close();
        model->final();
    }

    void reset() {
        waiting.clear();
        left.clear();
        in_work = {};
        forget();
        model->host_valid = 0;
        model->rx_valid = 0;
        model->tx_ready = 1;
        model->rst = 1;
        for (int i = 0; i < 4; i++) {
            settle();
            edge();
        }
        model->rst = 0;
        was_taken = false;
    }

    void forget() {
        stamps.clear();
        done = dispatched = 0;
        for (int core = 0; core < CORES; core++) {
            to_begin[core].clear();
            to_end[core].clear();
        }
    }

    // A cycle without an access of the host.
    void step() {
        offer();
        settle();
        observe();
        edge();
    }

    // An access of the host; returns whether it was answered.
    bool host(bool is_write, uint32_t address, uint64_t& data, uint64_t cycles_max) {
        bool is_answered = false;
        model->host_valid = 1;
        model->host_write = is_write;
        model->host_address = address;
        model->host_wdata = data;
        for (uint64_t i = 0; i < cycles_max && !is_answered; i++) {
            offer();
            settle();
            if (model->host_ready) {
                is_answered = true;
                if (!is_write) data = model->host_rdata;
            }
            observe();
            edge();
        }
        model->host_valid = 0;
        return is_answered;
    }

    // Returns whether the file could be created.
    bool open_waveform(const char* path) {
        if (trace) return false;
        context->traceEverOn(true);
        trace.reset(new VerilatedVcdC);
        model->trace(trace.get(), 99);
        trace->open(path);
        return trace->isOpen();
    }
    std::unique_ptr<VerilatedVcdC> trace;

    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<MODEL> model;
    uint64_t cycles = 0;
    std::deque<Packet> waiting;
    std::deque<Left> left;
    std::vector<Stamps> stamps;
    size_t done = 0;
    Chance chance;
    uint32_t rx_pauses = 0;
    uint32_t tx_pauses = 0;
    bool is_watched = false;
    std::vector<Moment> moments;
    uint64_t moments_lost = 0;

  private:
    // Puts the next beat on the bus. An offered beat stays until it is taken.
    void offer() {
        bool is_held = model->rx_valid && !was_taken;
        if (!is_held) {
            model->rx_valid = !waiting.empty() && !chance.of_256(rx_pauses);
            if (model->rx_valid) {
                Packet& packet = waiting.front();
                size_t rest = packet.bytes.size() - packet.sent;
                size_t size = rest < BEAT ? rest : BEAT;
                uint8_t beat[BEAT] = {};
                std::memcpy(beat, packet.bytes.data() + packet.sent, size);
                for (size_t i = 0; i < BEAT / 4; i++) {
                    uint32_t word;
                    std::memcpy(&word, beat + 4 * i, 4);
                    model->rx_data[i] = word;
                }
                model->rx_bytes = size;
                model->rx_last = size == rest;
                model->rx_ifindex = packet.ifindex;
                model->rx_queue = packet.queue;
            }
        }
        model->tx_ready = !chance.of_256(tx_pauses);
    }

    void watch() {
        if (moments.size() == MOMENTS_MAX) {
            moments_lost++;
            return;
        }
        const auto& root = *model->rootp;
        Moment moment;
        moment.cycle = cycles;
        moment.events = root.nic__DOT__g_core__BRA__0__KET____DOT__station__DOT__core__DOT__stage_events
            | (uint32_t)(root.nic__DOT__packet_begin & 1) << 18
            | (uint32_t)(root.nic__DOT__packet_done & 1) << 19;
        uint64_t rows = root.nic__DOT__g_core__BRA__0__KET____DOT__station__DOT__core__DOT__stage_rows;
        moment.fetch = rows;
        moment.decode = rows >> 16;
        moment.execute = rows >> 32;
        moments.push_back(moment);
    }

    // Records the bus transfers of this cycle.
    void observe() {
        if (is_watched) watch();
        was_taken = model->rx_valid && model->rx_ready;
        if (was_taken) {
            Packet& packet = waiting.front();
            if (packet.sent == 0) {
                stamps.push_back({});
                stamps.back().arrived = cycles;
            }
            packet.sent += model->rx_bytes;
            if (model->rx_last) {
                stamps.back().complete = cycles;
                waiting.pop_front();
            }
        }
        for (int core = 0; core < CORES; core++) observe(core);
        if (model->tx_valid && model->tx_ready) {
            if (in_work.bytes.empty()) in_work.departure.first = cycles;
            uint8_t beat[BEAT];
            for (size_t i = 0; i < BEAT / 4; i++) {
                uint32_t word = model->tx_data[i];
                std::memcpy(beat + 4 * i, &word, 4);
            }
            size_t size = model->tx_bytes < BEAT ? model->tx_bytes : BEAT;
            in_work.bytes.insert(in_work.bytes.end(), beat, beat + size);
            if (model->tx_last) {
                Departure& departure = in_work.departure;
                departure.verdict = model->tx_verdict;
                departure.stop = model->tx_stop;
                departure.metadata = model->tx_meta;
                departure.map = model->tx_map;
                departure.key = model->tx_key;
                departure.ifindex = model->tx_ifindex;
                departure.length = in_work.bytes.size();
                departure.last = cycles;
                left.push_back(std::move(in_work));
                in_work = {};
            }
        }
    }

    // Records the events of packets on a core, which processes them in order.
    void observe(int core) {
        if (model->rootp->nic__DOT__packet_done >> core & 1 && !to_end[core].empty()) {
            stamps[to_end[core].front()].done = cycles;
            to_end[core].pop_front();
            done++;
        }
        if (model->rootp->nic__DOT__packet_begin >> core & 1 && !to_begin[core].empty()) {
            stamps[to_begin[core].front()].began = cycles;
            to_end[core].push_back(to_begin[core].front());
            to_begin[core].pop_front();
        }
        if (model->rootp->nic__DOT__packet_enters >> core & 1 && dispatched < stamps.size()) {
            stamps[dispatched].core = core;
            to_begin[core].push_back(dispatched++);
        }
    }

    // The first half of a cycle, in which inputs propagate to outputs.
    void settle() {
        model->clk = 0;
        model->eval();
        dump(0);
    }

    void edge() {
        model->clk = 1;
        model->eval();
        dump(1);
        cycles++;
        context->timeInc(1);
    }

    void dump(int half) {
        if (trace) trace->dump(2 * cycles + half);
    }

    Left in_work;
    // Packets by their index in `stamps`: the next one to be dispatched to a core, and for each
    // core those that have not begun, and those that are not done.
    size_t dispatched = 0;
    std::deque<size_t> to_begin[CORES];
    std::deque<size_t> to_end[CORES];
    bool was_taken = false;
};

Card& of(void* card) { return *static_cast<Card*>(card); }

void* create() { return new Card; }
void destroy(void* card) { delete &of(card); }
void reset(void* card) { of(card).reset(); }
uint64_t cycles(void* card) { return of(card).cycles; }

void step(void* card, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) of(card).step();
}

// Writes words to consecutive addresses; returns the number of words written.
uint64_t host_write(
    void* card, uint32_t address, const uint64_t* words, uint64_t count, uint64_t cycles_max) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = words[i];
        if (!of(card).host(true, address + 8 * i, word, cycles_max)) return i;
    }
    return count;
}

uint64_t host_read(
    void* card, uint32_t address, uint64_t* words, uint64_t count, uint64_t cycles_max) {
    for (uint64_t i = 0; i < count; i++) {
        if (!of(card).host(false, address + 8 * i, words[i], cycles_max)) return i;
    }
    return count;
}

void send(
    void* card, const uint8_t* bytes, uint64_t length, uint32_t ifindex, uint32_t queue) {
    Packet packet;
    packet.bytes.assign(bytes, bytes + length);
    packet.ifindex = ifindex;
    packet.queue = queue;
    of(card).waiting.push_back(std::move(packet));
}

// Steps until this many packets have left and were not taken; returns the number of such packets.
uint64_t run_until_left(void* card, uint64_t count, uint64_t cycles_max) {
    Card& it = of(card);
    for (uint64_t i = 0; i < cycles_max && it.left.size() < count; i++) it.step();
    return it.left.size();
}

// Steps until this many packets are done since the last reset or `forget`.
uint64_t run_until_done(void* card, uint64_t count, uint64_t cycles_max) {
    Card& it = of(card);
    for (uint64_t i = 0; i < cycles_max && it.done < count; i++) it.step();
    return it.done;
}

// Returns the next packet that left, without taking it.
int peek(void* card, Departure* departure) {
    if (of(card).left.empty()) return 0;
    *departure = of(card).left.front().departure;
    return 1;
}

// Takes that packet: copies all its bytes.
void take(void* card, uint8_t* bytes) {
    Card& it = of(card);
    if (it.left.empty()) return;
    const std::vector<uint8_t>& from = it.left.front().bytes;
    if (!from.empty()) std::memcpy(bytes, from.data(), from.size());
    it.left.pop_front();
}

uint64_t stamps(void* card, Stamps* to, uint64_t count) {
    const std::vector<Stamps>& stamps = of(card).stamps;
    uint64_t copied = stamps.size() < count ? stamps.size() : count;
    for (uint64_t i = 0; i < copied; i++) to[i] = stamps[i];
    return copied;
}

// Forgets the stamps of packets, once all of them are done.
void forget(void* card) { of(card).forget(); }

// Sets the number of cycles of 256 in which the buses pause at random.
void pauses(void* card, uint64_t seed, uint32_t rx, uint32_t tx) {
    of(card).chance.state = seed | 1;
    of(card).rx_pauses = rx;
    of(card).tx_pauses = tx;
}

// Starts or stops recording the first core's stages in each cycle.
void watch(void* card, int is_watched) {
    of(card).is_watched = is_watched != 0;
    of(card).moments.clear();
    of(card).moments_lost = 0;
}

// Takes up to `count` recorded moments; returns their number.
uint64_t moments(void* card, Moment* to, uint64_t count) {
    std::vector<Moment>& moments = of(card).moments;
    uint64_t taken = moments.size() < count ? moments.size() : count;
    for (uint64_t i = 0; i < taken; i++) to[i] = moments[i];
    moments.erase(moments.begin(), moments.begin() + taken);
    return taken;
}

// Number of moments that were dropped because the buffer was full.
uint64_t moments_lost(void* card) { return of(card).moments_lost; }

// Starts a waveform; returns whether it was started: there is one for each card, in a writable
// file.
int open_waveform(void* card, const char* path) { return of(card).open_waveform(path); }

}  // namespace

// In the order of `ffi.rs`.
struct Functions {
    void* (*create)();
    void (*destroy)(void* card);
    void (*reset)(void* card);
    uint64_t (*cycles)(void* card);
    void (*step)(void* card, uint64_t count);
    uint64_t (*host_write)(
        void* card, uint32_t address, const uint64_t* words, uint64_t count, uint64_t cycles_max);
    uint64_t (*host_read)(
        void* card, uint32_t address, uint64_t* words, uint64_t count, uint64_t cycles_max);
    void (*send)(
        void* card, const uint8_t* bytes, uint64_t length, uint32_t ifindex, uint32_t queue);
    uint64_t (*run_until_left)(void* card, uint64_t count, uint64_t cycles_max);
    uint64_t (*run_until_done)(void* card, uint64_t count, uint64_t cycles_max);
    int (*peek)(void* card, Departure* departure);
    void (*take)(void* card, uint8_t* bytes);
    uint64_t (*stamps)(void* card, Stamps* to, uint64_t count);
    void (*forget)(void* card);
    void (*pauses)(void* card, uint64_t seed, uint32_t rx, uint32_t tx);
    void (*watch)(void* card, int is_watched);
    uint64_t (*moments)(void* card, Moment* to, uint64_t count);
    uint64_t (*moments_lost)(void* card);
    int (*open_waveform)(void* card, const char* path);
};

extern "C" const Functions TABLE = {
    create, destroy, reset, cycles, step, host_write, host_read, send, run_until_left,
    run_until_done, peek, take, stamps, forget, pauses, watch, moments,
    moments_lost, open_waveform,
};
