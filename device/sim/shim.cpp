// SPDX-License-Identifier: Apache-2.0 OR MIT
// Steps the clock of the verilated card, and keeps what goes in and what comes out. Everything that
// takes many cycles is one call, so that callers do not pay for each cycle.

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "Vnic.h"
#include "Vnic___024root.h"
#include "verilated.h"
#include "verilated_vcd_c.h"

namespace {

constexpr size_t BEAT = 32;

struct Stamps {
    uint64_t arrived = 0;
    uint64_t complete = 0;
    uint64_t began = 0;
    uint64_t done = 0;
};

// What was in the wires with the last beat of a packet that left.
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

// Which rows the core has in its stages in a cycle, and what becomes of them there: what
// `stage_rows` and `stage_events` of core.sv say, with the packet's beginning
// and its end in bits 18 and 19.
struct Moment {
    uint64_t cycle = 0;
    uint32_t events = 0;
    uint16_t fetch = 0;
    uint16_t decode = 0;
    uint16_t execute = 0;
    uint16_t unused = 0;
};

// Moments that are kept until somebody takes them; who watches takes them before there are more.
constexpr size_t MOMENTS_MAX = 1 << 16;

// A small generator (xorshift), so that bus stalls can be repeated.
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
    Card() : context(new VerilatedContext), model(new Vnic{context.get(), "nic"}) { reset(); }

    ~Card() {
        if (trace) trace->close();
        model->final();
    }

    void reset() {
        waiting.clear();
        left.clear();
        in_work = {};
        stamps.clear();
        begun = done = 0;
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

    // A cycle in which the host asks for nothing.
    void step() {
        offer();
        settle();
        observe();
        edge();
    }

    // An access of the host; whether it was answered.
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

    // Whether the file could be made.
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
    std::unique_ptr<Vnic> model;
    uint64_t cycles = 0;
    std::deque<Packet> waiting;
    std::deque<Left> left;
    std::vector<Stamps> stamps;
    size_t begun = 0;
    size_t done = 0;
    Chance chance;
    uint32_t rx_pauses = 0;
    uint32_t tx_pauses = 0;
    bool is_watched = false;
    std::vector<Moment> moments;
    uint64_t moments_lost = 0;

  private:
    // Puts the next beat on the bus. One that was offered stays until it is taken.
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
        const Vnic___024root& root = *model->rootp;
        Moment moment;
        moment.cycle = cycles;
        moment.events = root.nic__DOT__core__DOT__stage_events
            | (uint32_t)root.nic__DOT__packet_begin << 18
            | (uint32_t)root.nic__DOT__packet_done << 19;
        uint64_t rows = root.nic__DOT__core__DOT__stage_rows;
        moment.fetch = rows;
        moment.decode = rows >> 16;
        moment.execute = rows >> 32;
        moments.push_back(moment);
    }

    // What goes over the buses in this cycle.
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
        if (model->rootp->nic__DOT__packet_done && done < begun) stamps[done++].done = cycles;
        if (model->rootp->nic__DOT__packet_begin && begun < stamps.size()) {
            stamps[begun++].began = cycles;
        }
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

    // The half of a cycle in which inputs find their way to outputs.
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
    bool was_taken = false;
};

Card& of(void* card) { return *static_cast<Card*>(card); }

}  // namespace

extern "C" {

void* nic_create() { return new Card; }
void nic_destroy(void* card) { delete &of(card); }
void nic_reset(void* card) { of(card).reset(); }
uint64_t nic_cycles(void* card) { return of(card).cycles; }

void nic_step(void* card, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) of(card).step();
}

// Words at addresses that follow each other; how many were written.
uint64_t nic_host_write(
    void* card, uint32_t address, const uint64_t* words, uint64_t count, uint64_t cycles_max) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = words[i];
        if (!of(card).host(true, address + 8 * i, word, cycles_max)) return i;
    }
    return count;
}

uint64_t nic_host_read(
    void* card, uint32_t address, uint64_t* words, uint64_t count, uint64_t cycles_max) {
    for (uint64_t i = 0; i < count; i++) {
        if (!of(card).host(false, address + 8 * i, words[i], cycles_max)) return i;
    }
    return count;
}

void nic_send(
    void* card, const uint8_t* bytes, uint64_t length, uint32_t ifindex, uint32_t queue) {
    Packet packet;
    packet.bytes.assign(bytes, bytes + length);
    packet.ifindex = ifindex;
    packet.queue = queue;
    of(card).waiting.push_back(std::move(packet));
}

// Steps until so many packets have left that nobody has taken yet; how many there are.
uint64_t nic_run_until_left(void* card, uint64_t count, uint64_t cycles_max) {
    Card& it = of(card);
    for (uint64_t i = 0; i < cycles_max && it.left.size() < count; i++) it.step();
    return it.left.size();
}

// Steps until so many packets are done since the last reset or `nic_forget`.
uint64_t nic_run_until_done(void* card, uint64_t count, uint64_t cycles_max) {
    Card& it = of(card);
    for (uint64_t i = 0; i < cycles_max && it.done < count; i++) it.step();
    return it.done;
}

// The next packet that left, without taking it.
int nic_peek(void* card, Departure* departure) {
    if (of(card).left.empty()) return 0;
    *departure = of(card).left.front().departure;
    return 1;
}

// Its bytes, as many as it has; it is taken.
void nic_take(void* card, uint8_t* bytes) {
    Card& it = of(card);
    if (it.left.empty()) return;
    const std::vector<uint8_t>& from = it.left.front().bytes;
    if (!from.empty()) std::memcpy(bytes, from.data(), from.size());
    it.left.pop_front();
}

uint64_t nic_stamps(void* card, Stamps* to, uint64_t count) {
    const std::vector<Stamps>& stamps = of(card).stamps;
    uint64_t copied = stamps.size() < count ? stamps.size() : count;
    for (uint64_t i = 0; i < copied; i++) to[i] = stamps[i];
    return copied;
}

// Forgets stamps of packets, once all of them are done.
void nic_forget(void* card) {
    Card& it = of(card);
    it.stamps.clear();
    it.begun = it.done = 0;
}

// How many cycles of 256 the buses pause, by chance.
void nic_pauses(void* card, uint64_t seed, uint32_t rx, uint32_t tx) {
    of(card).chance.state = seed | 1;
    of(card).rx_pauses = rx;
    of(card).tx_pauses = tx;
}

// Keeps what the core's stages do in each cycle from now on, or no longer.
void nic_watch(void* card, int is_watched) {
    of(card).is_watched = is_watched != 0;
    of(card).moments.clear();
    of(card).moments_lost = 0;
}

// All moments that are kept, at most so many; they are taken. How many.
uint64_t nic_moments(void* card, Moment* to, uint64_t count) {
    std::vector<Moment>& moments = of(card).moments;
    uint64_t taken = moments.size() < count ? moments.size() : count;
    for (uint64_t i = 0; i < taken; i++) to[i] = moments[i];
    moments.erase(moments.begin(), moments.begin() + taken);
    return taken;
}

// Moments that were not kept for want of room.
uint64_t nic_moments_lost(void* card) { return of(card).moments_lost; }

// Whether there is a waveform from now on: one for each card, in a file that can be made.
int nic_open_waveform(void* card, const char* path) { return of(card).open_waveform(path); }

}
