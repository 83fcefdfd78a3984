// SPDX-License-Identifier: Apache-2.0 OR MIT
// For the bench of the core: a simple interpreter of rows as in docs/internals/vliw.md, with its
// memory and the helpers of the bench.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
constexpr int LANES = 4;
using Row = std::vector<u64>;
using Program = std::vector<Row>;

static std::mt19937_64 random_bits(1);
inline u64 any() { return random_bits(); }
inline u64 below(u64 n) { return any() % n; }

inline u64 slot(int opcode, int dst = 0, int src = 0, int off = 0, u32 imm = 0) {
  return u64(opcode) | u64(dst & 15) << 8 | u64(src & 15) << 12 | u64(u16(off)) << 16
      | u64(imm) << 32;
}
inline Row row(std::vector<u64> slots) {
  slots.resize(LANES);
  return slots;
}
inline u64 leave(u32 verdict) { return slot(0x9d, 0, 0, 0, verdict); }

// Memory that programs access: the packet's slot, the stack, a little map memory.
struct Memory {
  u8 packet[4096] = {}, stack[4096] = {}, maps[512] = {};
  int data = 256, end = 356, frame = 0;
  u8 *at(u64 address, int bytes) {
    u64 offset = address & 0xfffffff;
    if (address >> 32) return nullptr;
    switch (address >> 28) {
      case 1:
        if (offset < u64(data) || offset + bytes > u64(end)) return nullptr;
        return packet + offset;
      case 2: return offset + bytes > u64(512 * (frame + 1)) ? nullptr : stack + offset;
      case 4: return offset + bytes > sizeof maps ? nullptr : maps + offset;
      default: return nullptr;
    }
  }
  u64 load(const u8 *from, int bytes) const {
    u64 value = 0;
    memcpy(&value, from, bytes);
    return value;
  }
};
inline bool same(const Memory &a, const Memory &b) {
  return !memcmp(a.packet, b.packet, 4096) && !memcmp(a.maps, b.maps, 512)
      && !memcmp(a.stack, b.stack, 4096);
}

inline u64 atomic(int operation, u64 old, u64 operand, u64 expected) {
  switch (operation & 0xfe) {
    case 0x00: return old + operand;
    case 0x40: return old | operand;
    case 0x50: return old & operand;
    case 0xa0: return old ^ operand;
    case 0xe0: return operand;
    default: return old == expected ? operand : old;
  }
}

struct Outcome {
  u32 verdict = 0;
  int stop = 0;
  int rows = 0;
};

// Results of helpers: 1 to 100 mix their arguments; 12 jumps to row `arguments[1]`; 44 moves the
// start of the packet; 2 writes map memory. Other helpers do not exist.
struct Helped {
  u64 result = 0;
  bool unknown = false, jump = false;
  u16 to = 0;
};
inline Helped help(Memory &memory, int number, const u64 *arguments) {
  Helped helped;
  helped.unknown = number == 0 || number > 100;
  for (int i = 0; i < 5; i++) helped.result = helped.result * 1000003 + arguments[i] + number;
  if (number == 12 && arguments[1] < 64) helped.jump = true, helped.to = u16(arguments[1]);
  // A helper after which the next row follows at once.
  if (number == 51) helped.result = arguments[0];
  if (number == 44) memory.data += 4, helped.result = 0;
  if (number == 2) memory.maps[500]++;
  return helped;
}
inline u32 base_of(int map) { return 16 * (map & 7); }

inline bool compares(int code, bool wide, u64 a, u64 b) {
  if (!wide) a = u32(a), b = u32(b);
  int64_t c = wide ? int64_t(a) : int32_t(a), d = wide ? int64_t(b) : int32_t(b);
  switch (code) {
    case 1: return a == b;
    case 2: return a > b;
    case 3: return a >= b;
    case 4: return (a & b) != 0;
    case 5: return a != b;
    case 6: return c > d;
    case 7: return c >= d;
    case 10: return a < b;
    case 11: return a <= b;
    case 12: return c < d;
    default: return c <= d;
  }
}

template <typename W, typename S> W computes(int code, int off, W a, W b) {
  const int bits = sizeof(W) * 8;
  const S least = S(W(1) << (bits - 1));
  switch (code) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3:
      if (b == 0) return 0;
      if (!off) return a / b;
      return S(a) == least && S(b) == -1 ? a : W(S(a) / S(b));
    case 4: return a | b;
    case 5: return a & b;
    case 6: return a << (b % bits);
    case 7: return a >> (b % bits);
    case 8: return W(0) - a;
    case 9:
      if (b == 0) return a;
      if (!off) return a % b;
      return S(a) == least && S(b) == -1 ? 0 : W(S(a) % S(b));
    case 10: return a ^ b;
    case 11:
      return off == 8 ? W(S(int8_t(b))) : off == 16 ? W(S(int16_t(b))) : off == 32
          ? W(S(int32_t(b))) : b;
    default: return W(S(a) >> (b % bits));
  }
}

inline bool is_valid(int op, u64 s, bool last) {
  int code = op >> 4, cls = op & 7, off = u16(s >> 16);
  bool reg = op & 8;
  if (cls == 4 || cls == 7) {
    if (code == 14) {
      code = off >> 4 & 15;
      if (code == 11) return false;
    }
    if (code == 8) return !reg;
    return code < 13 || (code == 13 && !(reg && cls == 7));
  }
  if (cls == 5 || cls == 6) {
    if (code == 14) {
      code = off >> 12;
      return code && code != 8 && code != 9 && code < 14;
    }
    if (code == 0) return !reg;
    if (code == 8 || code == 9) return cls == 5;
    return true;
  }
  static const u8 others[] = {0x00, 0x08, 0x18, 0x61, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91, 0x01,
      0x21, 0xa1, 0xa9, 0xb1, 0xb9, 0x41, 0x49, 0x51, 0x62, 0x6a, 0x72, 0x7a, 0x02, 0x63, 0x6b,
      0x73, 0x7b, 0x03};
  for (u8 other : others)
    if (op == other) return op != 0x18 || !last;
  if (op != 0xc3 && op != 0xdb) return false;
  u32 imm = u32(s >> 32);
  return imm == 0xe1 || imm == 0xf1 || (imm & ~1u) == 0 || (imm & ~1u) == 0x40
      || (imm & ~1u) == 0x50 || (imm & ~1u) == 0xa0;
}

// The interpreter: a row reads everything before it writes; lanes in order.
inline Outcome interpret_rows(const Program &program, Memory &memory, int &rows) {
  int limit = 10000;
  u64 r[16] = {}, kept[8][5];
  auto zero = [&] {
    memset(r, 0, sizeof r);
    r[1] = 0x30000000;
    memory.frame = 0;
    memset(memory.stack, 0, 4096);
  };
  zero();
  u64 at = 0;
  while (limit-- > 0) {
    if (at >= program.size()) return {0, 3};
    r[10] = 0x20000000 + 512 * (memory.frame + 1);
    r[11] = 0x10000000 + memory.data;
    rows++;
    const Row &slots = program[at];
    std::vector<std::pair<int, u64>> writes;
    struct Store { u64 address; int bytes; u64 value; int lane; };
    std::vector<Store> stores;
    u64 next = at + 1;
    int stop = 0, calls = -1;
    bool ends = false, enters = false, returns = false;
    u32 verdict = 0;
    u64 arguments[5];
    int helper = 0;
    for (int lane = 0; lane < LANES && !stop; lane++) {
      u64 s = slots[lane];
      int op = u8(s), dst = s >> 8 & 15, src = s >> 12 & 15, off = int16_t(s >> 16), cls = op & 7;
      u32 imm = u32(s >> 32);
      u64 constant = u64(int64_t(int32_t(imm)));
      bool taken = false;
      static const int sizes[] = {4, 2, 1, 8};
      bool six = op == 0x01 || op == 0x21 || op == 0x02 || op == 0x03;
      int bytes = six ? 6 : sizes[op >> 3 & 3];
      if (op == 0) continue;
      if (!is_valid(op, s, lane == LANES - 1)) { stop = 4; break; }
      if (op == 0x08) {
        writes.push_back({dst, src == 0 ? constant : src == 1 ? 0x50000000ull + imm
            : src == 2 ? 0x40000000ull + base_of(off) + imm : imm});
      } else if (op == 0x18) {
        writes.push_back({dst, imm | (slots[lane + 1] >> 32 << 32)});
        lane++;
      } else if (cls == 1) {
        bool speculative = op == 0x21 || op >> 5 == 5 || op >> 5 == 2;
        u8 *p = memory.at(r[src] + off, bytes);
        if (!p && !speculative) { stop = 1; break; }
        u64 value = p ? memory.load(p, bytes) : 0;
        if (op >> 5 == 4 || op >> 5 == 2)
          value = bytes == 1 ? u64(int8_t(value)) : bytes == 2 ? u64(int16_t(value))
              : u64(int64_t(int32_t(value)));
        writes.push_back({dst, value});
      } else if (cls == 3 && op >> 5 == 6) {
        u8 *p = memory.at(r[dst] + off, bytes);
        if (!p) { stop = 1; break; }
        u64 mask = bytes == 4 ? 0xffffffff : ~0ull, old = memory.load(p, bytes);
        u64 changed = atomic(imm, old, r[src] & mask, r[0] & mask) & mask;
        stores.push_back({r[dst] + off, bytes, changed, lane});
        if (imm & 1) writes.push_back({imm >> 4 == 15 ? 0 : src, old});
      } else if (cls == 2 || cls == 3) {
        stores.push_back({r[dst] + off, bytes, cls == 2 ? constant : r[src], lane});
      } else if (cls == 4 || cls == 7) {
        bool ext = op >> 4 == 14;
        int code = ext ? off >> 4 & 15 : op >> 4, variant = ext ? off >> 8 & 1 : off;
        u64 a = r[ext ? src : dst], b = op & 8 ? r[ext ? off & 15 : src] : constant, value;
        if (code == 13) {
          value = imm == 16 ? u16(a) : imm == 32 ? u32(a) : a;
          if ((op & 8) || cls == 7) value = __builtin_bswap64(value) >> (64 - imm);
        } else if (cls == 7) value = computes<u64, int64_t>(code, variant, a, b);
        else value = computes<u32, int32_t>(code, variant, u32(a), u32(b));
        writes.push_back({dst, value});
      } else if (op == 0x85 && src == 1) {
        if (memory.frame == 7) { stop = 6; break; }
        taken = enters = true;
        next = imm;
      } else if (op == 0x85 || op == 0x8d) {
        calls = lane;
        helper = op == 0x85 ? int(imm) : src << 4 | dst;
        memcpy(arguments, r + 1, sizeof arguments);
        if (op == 0x8d) {
          if (off == 1) arguments[0] = 0x30000000;
          if (off > 1) arguments[0] = 0x50000000 + off - 2;
          for (int i = 0; i < 4; i++) {
            int byte = imm >> 8 * i & 255;
            if (byte & 0x80) arguments[i + 1] = r[10] - 4 * ((byte & 0x7f) + 1);
            else if (byte & 0x40) arguments[i + 1] = byte & 0x3f;
          }
        }
      } else if (op == 0x95) {
        taken = true;
        if (memory.frame) returns = true;
        else ends = true, verdict = u32(r[0]);
      } else if (op == 0x9d) {
        taken = ends = true;
        verdict = imm;
      } else if (op >> 4 == 15) {
        u64 from = cls == 5 ? r[dst] : r[11];
        taken = from + constant > 0x10000000ull + memory.end;
        if (op & 8) ends = taken, verdict = u16(off);
        else if (taken) next = at + 1 + off;
      } else if (cls == 5 || cls == 6) {
        bool ext = op >> 4 == 14;
        int code = ext ? u16(off) >> 12 : op >> 4;
        taken = code == 0 || compares(code, cls == 5, r[dst], op & 8 ? r[src] : constant);
        if (ext) ends = taken, verdict = off & 0xfff;
        else if (taken) next = at + 1 + (op == 6 ? int(imm) : off);
      }
      if (taken) break;
    }
    for (auto &it : stores) {
      u8 *p = memory.at(it.address, it.bytes);
      if (!p) return {0, 1};
      memcpy(p, &it.value, it.bytes);
    }
    if (calls >= 0) {
      Helped helped = help(memory, helper, arguments);
      if (helped.unknown) return {0, 5};
      if (helped.jump) {
        zero();
        at = helped.to;
        continue;
      }
      r[0] = helped.result;
    }
    if (stop) return {0, stop};
    for (auto &it : writes) r[it.first] = it.second;
    if (ends) return {verdict, 0};
    if (enters) {
      u64 *frame = kept[memory.frame++];
      memcpy(frame, r + 6, 32);
      frame[4] = at + 1;
      memset(memory.stack + 512 * memory.frame, 0, 512);
    } else if (returns) {
      u64 *frame = kept[--memory.frame];
      memcpy(r + 6, frame, 32);
      next = frame[4];
    }
    at = next;
  }
  return {0, 2};
}

inline Outcome interpret(const Program &program, Memory &memory) {
  int rows = 0;
  Outcome outcome = interpret_rows(program, memory, rows);
  outcome.rows = rows;
  return outcome;
}
