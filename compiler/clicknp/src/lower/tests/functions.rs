// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions, statements and memory.

use super::{errors, value};

#[test]
fn arithmetic_follows_c() {
    let cases = [
        ("int", "return (uchar)200 + (uchar)100;", 300),
        ("uchar", "uchar a = 200; return a + 100;", 44),
        ("uint", "uint a = 1; return a - 2;", 0xffff_ffff),
        ("int", "int8_t a = -1; return a >> 1;", 0xffff_ffff),
        ("ulong", "int a = -1; return a;", u64::MAX),
        ("ulong", "uint a = 0xffffffff; return a + 1;", 0),
        ("ulong", "uint40 a = 0xffffffff; return a + 1;", 1 << 32),
        ("uint", "uint13 a = 8191; return a + 1;", 8192),
        ("uint", "uint13 a = 8191; a += 1; return a;", 0),
        ("int", "int a = -7; return a / 2;", (-3i32) as u32 as u64),
        ("int", "int a = -7; return a % 2;", (-1i32) as u32 as u64),
        ("int", "int z = 0; return 5 / z;", 0),
        ("uint", "uint s = 40; uint a = 1; return a << s;", 0),
        ("ulong", "ulong s = 1ul << 40; uint a = 1; return a << s;", 0),
        ("int", "int a = -8; long s = 70; return a >> s;", 0xffff_ffff),
        ("bool", "return 0x100;", 1),
        ("int", "bool a = true; return a + a;", 2),
        ("int", "int a = 3; return !a + (a > 2) + (a == 3 && a < 9) + ~a;", (-2i32) as u32 as u64),
        ("int", "int a = 5; int b = a++ + ++a; return b * 10 + a;", 127),
        ("uint", "return 10.0.0.1;", 0x0a00_0001),
        ("uint48", "return 02:00:00:00:00:01;", 0x0200_0000_0001),
        ("int", "int a = 2; return a == 1 ? 10 : a == 2 ? 20 : 30;", 20),
        ("ulong", "return sizeof(uint48) + sizeof(int);", 12),
    ];
    for (ty, body, want) in cases {
        assert_eq!(value("", ty, body), want, "{body}");
    }
}

#[test]
fn sizes_are_of_types_wherever_they_are_declared() {
    let prelude = "template <T> inline uint size() { return sizeof(T); } \
        template <typename T> inline ulong negated(uint x) { return (T)-x; }\n";
    let cases = [
        ("return sizeof(Later);", 12),
        ("Later later; return sizeof(later) + sizeof later.a;", 16),
        ("return size<Later>() + size<uint48>();", 20),
        ("uint Later = 1; return sizeof(Later);", 4),
        ("return negated<Short>(1);", 0xffff),
        ("uint a[sizeof(Later)]; return sizeof(a);", 48),
    ];
    for (body, want) in cases {
        let text = format!("{prelude}struct Later {{ uint a; uint b[2]; }}; typedef ushort Short;");
        assert_eq!(value(&text, "ulong", body), want, "{body}");
    }
}

#[test]
fn slices_and_bits_are_values_and_targets() {
    let cases = [
        ("uint", "uint a = 0xabcd1234; return a[15:8];", 0x12),
        ("uint", "uint a = 0; a[15:8] = 0xff; a[0] = 1; return a;", 0xff01),
        ("uint", "uint a = 0; for (int i = 0; i < 32; i += 2) a[i] = 1; return a;", 0x5555_5555),
        ("uint", "uint a = 5; uint i = 2; return a[i] + a[1] + a[i - 2];", 2),
        ("uint", "uint256 a = 0; a[199:168] = 7; return a[170:168] * 2;", 14),
        ("uint", "uint a[4]; a[2][7:4] = 9; return a[2];", 0x90),
        ("uint", "uint a = 0xf0; a[7:4] += 1; return a;", 0),
    ];
    for (ty, body, want) in cases {
        assert_eq!(value("", ty, body), want, "{body}");
    }
}

#[test]
fn records_unions_and_bit_fields_share_memory_as_in_c() {
    let types = "struct Inner { uchar a; ushort b; };
        union Both { Inner i; uchar bytes[4]; uint word; };
        struct Fields { uint low : 5; int middle : 3; uint high : 24; };";
    let cases = [
        ("uint", "Both u; u.word = 0x11223344; return u.i.b;", 0x1122),
        ("uint", "Both u; u.i.a = 1; u.i.b = 0x203; return u.word;", 0x0203_0001),
        ("uint", "Both u; u.word = 0x11223344; int k = 1; return u.bytes[k + 1];", 0x22),
        ("uint", "Both u; for (int k = 0; k < 4; k++) u.bytes[k] = k; return u.word;", 0x0302_0100),
        ("uint", "Fields f; f.low = 33; f.middle = 5; f.high = 2; return *(uint *)&f;", 0x2a1),
        ("int", "Fields f; f.middle = 5; return f.middle;", (-3i32) as u32 as u64),
        ("int", "Fields f = { .high = 7, .low = 3 }; return f.high * 100 + f.low;", 703),
        (
            "int",
            "Inner a = { 1, 2 }; Inner b = a; b.a = 9; return a.a * 100 + b.a * 10 + b.b;",
            192,
        ),
        ("int", "Inner a[3] = { { 1, 2 }, { 3, 4 } }; int k = 1; return a[k].b * 10 + a[2].a;", 40),
    ];
    for (ty, body, want) in cases {
        assert_eq!(value(types, ty, body), want, "{body}");
    }
}

#[test]
fn pointers_reach_into_variables() {
    let functions = "struct Header { uchar kind; uchar code; ushort sum; };
        inline uint total(uchar *bytes, uint count) {
            uint sum = 0;
            #pragma bound 64
            for (uint i = 0; i < count; i++) sum += bytes[i];
            return sum;
        }
        inline void fill(uint a[4], uint with) { for (int i = 0; i < 4; i++) a[i] = with + i; }
        inline void swap(uint *a, uint *b) { uint t = *a; *a = *b; *b = t; }";
    let cases = [
        ("uint", "uint a = 0x01020304; return total((uchar *)&a, 4);", 10),
        ("uint", "uint a[4]; fill(a, 5); return a[0] * 1000 + a[3];", 5008),
        ("uint", "uint a = 1; uint b = 2; swap(&a, &b); return a * 10 + b;", 21),
        ("uint", "flit x; ushort *p = (ushort *)x.fdata; p[3] = 0x1234; return x.fdata[6];", 0x34),
        (
            "uint",
            "flit x; x.data = 0x04030201; Header *h = (Header *)x.fdata; return h->sum;",
            0x403,
        ),
        ("uint", "uchar b[8]; *(uint *)(b + 2) = 0x01020304; return b[3] * 256 + b[5];", 0x301),
        (
            "uint",
            "uchar b[8] = {1,2,3,4,5,6,7,8}; ushort *p = (ushort *)b; int i = 1;
                  return p[i + 1];",
            0x605,
        ),
        (
            "uint",
            "uint a[2] = { 0x04030201, 0x08070605 }; uchar *p = (uchar *)a; uint s = 0;
                  for (int i = 0; i < 8; i++) s = s * 3 + p[i]; return s;",
            8 + 3 * (7 + 3 * (6 + 3 * (5 + 3 * (4 + 3 * (3 + 3 * (2 + 3)))))),
        ),
        (
            "uint",
            "uchar b[6] = {1,2,3,4,5,6}; uchar *p = b; uint s = 0;
                  for (int i = 0; i < 6; i++) s = s * 2 + *p++; return s;",
            120,
        ),
        (
            "uint",
            "uint a[2] = { 0x04030201, 0x08070605 }; uchar *p; uint s = 0; p = (uchar *)a;
                  for (int i = 0; i < 4; i++) { s = s * 10 + *p; p += 2; } return s;",
            1357,
        ),
    ];
    for (ty, body, want) in cases {
        assert_eq!(value(functions, ty, body), want, "{body}");
    }
}

#[test]
fn control_flow_runs_as_written() {
    let cases = [
        ("uint s = 0; for (int i = 0; i < 10; i++) { if (i == 3) continue; if (i == 6) break;
          s = s * 10 + i; } return s;", 1245),
        ("uint s = 0; uint i = 0;\n#pragma bound 20\nwhile (i < 5) { s += i; i++; } return s;", 10),
        ("uint i = 9; uint s = 0;\n#pragma bound 20\ndo { s++; i++; } while (i < 5); return s;", 1),
        ("uint s = 0; for (uchar i = 0; i < 4; i++) for (uchar j = 0; j < i; j++) s++;
          return s;", 6),
        ("uint s = 0; for (int v = 0; v < 5; v++) switch (v) { case 0: case 1: s += 1; break;
          case 2: s += 10; case 3: s += 100; break; default: s += 1000; } return s;", 1212),
        ("uint a[5] = {3,1,4,1,5}; uint i = 0; for (i = 0; i < 5 && a[i] != 4; i++) ;
          return i;", 2),
        ("uint a[5] = {3,1,4,1,5}; uint i;\n#pragma bound 9\nfor (i = 0; a[i] != 5 || i < 2; ) i++;
          return i;", 4),
        ("uint n = 0; uint x = 0; if (x != 0 && n++ == 0) x = 9; if (x == 0 || n++ == 0) x = 8;
          return n * 10 + x;", 8),
        ("uint s = 0; for (int i = 0; i < 3; i++) { uint fresh; fresh += 1; s += fresh; }
          return s;",
          3),
        ("uint s = 0; for (uint i = 0; i < 6; i++) { uint j = i; s = s * 10 + odd(&j); }
          return s;", 10305),
        ("uint s = 0; for (uint i = 0; i < 3; i++) { Pair p[40]; s += p[39].a + p[20].b[i];
          p[39].a = 7; p[20].b[i] = 3; p[20].b[i + 1] = 9; } return s;", 0),
        ("uint a[4] = { 1, 2, 3, 4 }; uint k = 2; uint s = 0; switch (k) { case 2: uint *p = &a[k];
          s = *p; case 3: s += p[1]; } return s;", 7),
        ("const uint table[4] = { 10, 20, 30, 40 }; uint i = 2; return table[i] + table[1];", 50),
    ];
    let functions =
        "inline uint odd(uint *a) { uint fresh; fresh += *a; if (fresh & 1) return fresh; }
        struct Pair { uint a; uchar b[3]; };";
    for (body, want) in cases {
        assert_eq!(value(functions, "uint", body), want, "{body}");
    }
}

#[test]
fn functions_are_called_with_values() {
    let functions = "enum Kind { A, B = 5, C }; typedef uint Word; const Word LIMIT = C * 2;
        const uchar SQUARES[] = { 0, 1, 4, 9, 16 };
        struct Pair { uint a; uint b; };
        Pair swapped(Pair p) { Pair q; q.a = p.b; q.b = p.a; return q; }
        inline uint square(uint x) { return x * x; }
        template <uint N> inline uint power(uint x) {
            if (N == 0) { return 1; } else { return x * power<N - 1>(x); }
        }
        template <T> inline T twice(T x) { return x + x; }
        uint look(uint at) { return SQUARES[at]; }";
    let cases = [
        ("return LIMIT;", 12),
        ("Pair p = { 1, 2 }; p = swapped(p); return p.a * 10 + p.b;", 21),
        ("Pair p = { 1, 2 }; return swapped(p).a;", 2),
        ("return square(3) + power<5>(2);", 41),
        ("return twice<uchar>(200);", 144),
        ("return twice<uint>(200);", 400),
        ("return look(3) + SQUARES[4] + look(77);", 25),
        ("return byteswap32(0x01020304) + ntohs(0x0102);", 0x0403_0201 + 0x201),
        (
            "uint3 a = 5; uchar b = 0; return popcount(a) * 100 + trailing_zeros(b) * 10
          + leading_zeros(a);",
            280,
        ),
        ("uint64 a = 1; return leading_zeros(a) + parity(a);", 64),
    ];
    for (body, want) in cases {
        assert_eq!(value(functions, "uint", body), want, "{body}");
    }
}

#[test]
fn loops_have_bounds_or_are_refused() {
    let loops = [
        ("for (uint i = 0; i < n; i++) s++;", false),
        ("for (uint i = 0; i < (n & 15); i++) s++;", true),
        ("for (uint i = 0; i < small; i++) s++;", true),
        ("for (uint i = 0; i < n; i++) a[i] = 1;", true),
        ("for (uint i = 1; i < 100; i *= 2) s++;", true),
        ("for (uint i = 0; i < 8; i++) for (uint j = i; j < i + 4; j++) s++;", true),
        ("while (s < 5) s++;", false),
        ("for (;;) { s++; }", false),
        ("for (uint i = 0; i < 8; i++) i = 0;", false),
    ];
    for (one, is_bounded) in loops {
        let body =
            format!("uint f(uint n, uchar small) {{ uint s = 0; uint a[7]; {one} return s; }}");
        let found = errors(&body);
        assert_eq!(found.is_empty(), is_bounded, "{one}\n{found}");
        assert!(is_bounded || found.contains("E0301"), "{found}");
    }
}
