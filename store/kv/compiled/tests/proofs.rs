// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which loops are proven to end. The interpreter checks that accepted functions never trap.

use crate::values::{any_bytes, any_operands, call};
use fastrand::Rng;
use freeport_kv_compiled::{Options, compile_text};
use freeport_kv_functions::Element;
use freeport_testbed::{seed, usual_or_long};

/// Returns whether a function with these statements is accepted.
fn is_accepted(statements: &str) -> bool {
    let text = format!("uint f(uint v, uint n) {{\n{statements}\nreturn v;\n}}\n");
    match compile_text("loop.cnp", &text, &Options::interpreted()) {
        Ok(_) => true,
        Err(refused) => {
            let message = refused.to_string();
            assert!(message.contains("[K0204]"), "{message}");
            false
        }
    }
}

#[test]
fn loops_that_count_to_a_limit_are_accepted() {
    for statements in [
        "for (uint i = 0; i < 32; i++) v += i;",
        "for (int i = 31; i >= 0; i--) v ^= i;",
        "for (uint i = 1; i != 64; i *= 2) v += i;",
        "for (uint i = 0; i < 32; i++) if (v > n) break; else v = v * 3 + 1;",
        "for (uint i = 0; i < 32; i++) { if (v & 1) continue; v >>= 1; }",
        "for (uint i = 0; i < 32 && v != 0; i++) v >>= 1;",
        "#pragma bound 32\nfor (int i = 31; i >= 0 && v != n; i--) v ^= i;",
        "for (uint i = 0; i < (n & 15); i++) v += i;",
        "for (uint i = 0; i < (n & 31); i += 3) v += i;",
        "for (int i = 0; i < 8; i++) for (int j = 0; j < i; j++) v += j;",
        "for (uint i = 0; i < 8; i++) for (uint j = 0; j <= i; j++) v += j;",
        "for (uchar i = 0; i < 255; i++) v += i;",
        "uchar m = (uchar)n; for (uint i = 0; i < m; i++) v += i;",
        "#pragma bound 40\nfor (uint i = 0; i < 32; i++) v += i;",
        "uint a[4] = {1, 2, 3, 4}; for (uint i = 0; i < 4; i++) v += a[i];",
    ] {
        assert!(is_accepted(statements), "{statements}");
    }
}

#[test]
fn loops_that_may_run_on_are_refused() {
    for statements in [
        "#pragma bound 31\nfor (uint i = 0; i < 32; i++) v += i;",
        "#pragma bound 100\nwhile (v != 1) v = v & 1 ? v * 3 + 1 : v / 2;",
        "#pragma bound 100\ndo v++; while (v < n);",
        "#pragma bound 4\nfor (;;) if (v++ > n) break;",
        "#pragma bound 4\nfor (uint i = 0; i < n; i++) v += i;",
        "uint a[4] = {1, 2, 3, 4}; for (uint i = 0; i < n; i++) v += a[i];",
        "uchar m = (uchar)n; for (uchar i = 0; i <= m; i++) v += i;",
        "uchar m = (uchar)n; for (uchar i = 0; i < m; i += 7) v += i;",
        "#pragma bound 9\nfor (uint i = 0; i < 9; i++) if (v++ > n) i = 0;",
    ] {
        assert!(!is_accepted(statements), "{statements}");
    }
}

/// A loop with random types, start, limit, comparison and step.
fn any_loop(rng: &mut Rng, name: &str, inside: &str, outer: Option<&str>) -> String {
    let ty = ["uchar", "char", "int8_t", "ushort", "short", "uint", "int", "ulong"][rng.usize(..8)];
    let number = |rng: &mut Rng| [0, 1, 2, 5, 15, 100, 127, 250, 255][rng.usize(..9)].to_string();
    let mut limit = match rng.u8(..6) {
        0 | 1 => number(rng),
        2 => format!("(n & {})", number(rng)),
        3 => format!("v % {}", number(rng)),
        4 => "(uchar)v".to_owned(),
        _ => format!("(n & 7) + {}", number(rng)),
    };
    if let Some(outer) = outer.filter(|_| rng.bool()) {
        limit = outer.to_owned();
    }
    let start = if rng.u8(..4) == 0 { "v & 3".to_owned() } else { number(rng) };
    let compare = ["<", "<=", ">", ">=", "!="][rng.usize(..5)];
    let step = ["++", "--", " += 3", " += 100", " -= 2", " *= 2", " = v"][rng.usize(..7)];
    let also = ["", "", " && v != n", " && n > 3"][rng.usize(..4)];
    let pragma = ["", "", "#pragma bound 20\n", "#pragma bound 300\n"][rng.usize(..4)];
    let more = ["", "", "if (v > n) break;", "if (v & 1) continue;"][rng.usize(..4)];
    format!(
        "{pragma}for ({ty} {name} = {start}; {name} {compare} {limit}{also}; {name}{step}) {{\n\
         v = v * 5 + 1; {more} {inside}\n}}\n"
    )
}

#[test]
fn accepted_loops_never_trap() {
    let mut accepted = 0;
    for seed in (seed()..).take(usual_or_long(600, 30_000)) {
        let mut rng = Rng::with_seed(seed);
        let mut text = any_loop(&mut rng, "j", "", Some("i"));
        text = match rng.bool() {
            true => any_loop(&mut rng, "i", &text, None),
            false => format!("uint i = n & 3;\n{text}"),
        };
        let text = format!("uint f(uint v, uint n) {{\n{text}\nreturn v;\n}}\n");
        let Ok(compiled) = compile_text("loop.cnp", &text, &Options::interpreted()) else {
            continue;
        };
        accepted += 1;
        let signature = compiled.registry.signature(128).expect("a function");
        let values = any_bytes(&mut rng, 4 * 10);
        let operands = any_operands(&mut rng, &signature, Element::U32, 10);
        // A trap is a panic of a debug build.
        call(&compiled.registry, 128, Element::U32, &values, &operands);
    }
    assert!(accepted > 20, "{accepted}");
}
