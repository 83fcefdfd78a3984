// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernels: every kind and width, elements without alignment, and functions that are none.

use freeport_ir::text::parse;
use freeport_ir::{FunctionId, Program};
use freeport_native::{KernelKind, Kernels, Options};
use freeport_testbed::cache::Cache;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn program(functions: &str) -> Program {
    let text = format!("program kernels\n\n{functions}\ngraph {{\n}}\n");
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn build(program: &Program, kernels: &[(u32, KernelKind)]) -> Result<Kernels, String> {
    let kernels: Vec<_> = kernels.iter().map(|(id, kind)| (FunctionId(*id), *kind)).collect();
    let cache = Some(Cache::of("native").path().to_owned());
    let options = Options { cache, ..Options::default() };
    Kernels::build(program, &kernels, &options).map_err(|error| error.to_string())
}

/// `v + a * b`, a sum, and `v < a`, of elements of a width.
fn of_width(width: u32) -> String {
    let bits = format!("bits<{width}>");
    let sum = match width {
        64 => "%all = add %sigma, %v",
        _ => "%wide = zext %v to 64\n%all = add %sigma, %wide",
    };
    format!(
        "fn @scaled_{width}(%v: {bits}, %a: {bits}, %b: {bits}) -> {bits} {{\nentry:\n\
         %product = mul %a, %b\n%sum = add %v, %product\nret %sum\n}}\n\
         fn @total_{width}(%v: {bits}, %sigma: bits<64>) -> bits<64> {{\nentry:\n{sum}\n\
         ret %all\n}}\n\
         fn @less_{width}(%v: {bits}, %a: {bits}) -> bits<1> {{\nentry:\n\
         %is = ult %v, %a\nret %is\n}}\n"
    )
}

#[test]
fn every_kind_works_on_every_width_without_alignment() {
    let widths = [8, 16, 32, 64];
    let program = program(&widths.map(of_width).concat());
    let kinds = [KernelKind::Map, KernelKind::Fold, KernelKind::Test];
    let kernels: Vec<_> = (0..12).map(|at| (at, kinds[at as usize % 3])).collect();
    let kernels = build(&program, &kernels).expect("kernels");
    let mut random = fastrand::Rng::with_seed(3);
    for (group, width) in widths.into_iter().enumerate() {
        let bytes = width as usize / 8;
        let at = 3 * group;
        for count in [0, 1, 3, 64, 257] {
            let mut any =
                |length: usize| -> Vec<u8> { (0..length).map(|_| random.u8(..)).collect() };
            // One byte in front makes addresses odd, wherever the vector begins.
            let (values, operands) = (any(1 + count * bytes), any(1 + (2 * count).max(2) * bytes));
            let (values, operands) = (&values[1..], &operands[1..]);
            let read = |from: &[u8], at: usize| {
                let mut wide = [0; 8];
                wide[..bytes].copy_from_slice(&from[at * bytes..][..bytes]);
                u64::from_le_bytes(wide)
            };
            let scaled = |at: usize, own: usize| {
                let product = read(operands, own).wrapping_mul(read(operands, own + 1));
                read(values, at).wrapping_add(product).to_le_bytes()[..bytes].to_vec()
            };
            let mut found = [&[0][..], values].concat();
            kernels.map_each(at, &mut found[1..], &operands[..2 * count * bytes]);
            let wanted: Vec<u8> = (0..count).flat_map(|at| scaled(at, 2 * at)).collect();
            assert_eq!(found[1..], wanted, "each of {count} of {width} bits");

            let mut found = [&[0][..], values].concat();
            kernels.map_same(at, &mut found[1..], &operands[..2 * bytes]);
            let wanted: Vec<u8> = (0..count).flat_map(|at| scaled(at, 0)).collect();
            assert_eq!(found[1..], wanted, "same of {count} of {width} bits");

            let wanted = (0..count).fold(7_u64, |sum, at| sum.wrapping_add(read(values, at)));
            assert_eq!(kernels.fold(at + 1, values, 7), wanted);

            let mut flags = vec![9; count];
            kernels.test(at + 2, values, &operands[..bytes], &mut flags);
            let wanted = (0..count).map(|at| u8::from(read(values, at) < read(operands, 0)));
            assert_eq!(flags, wanted.collect::<Vec<u8>>());
        }
    }
}

#[test]
fn functions_of_another_form_are_refused() {
    let text = "fn @narrow(%v: bits<7>) -> bits<7> {\nentry:\nret %v\n}\n\
        fn @other(%v: bits<8>, %a: bits<16>) -> bits<8> {\nentry:\nret %v\n}\n\
        fn @time(%v: bits<64>) -> bits<64> {\nentry:\n%now = now\nret %now\n}\n\
        fn @calls(%v: bits<64>) -> bits<64> {\nentry:\n\
        %later = call @time(%v) inline\nret %later\n}\n\
        fn @byte(%v: bits<8>, %sigma: bits<8>) -> bits<8> {\nentry:\nret %v\n}\n";
    let program = program(text);
    for (id, kind, message) in [
        (0, KernelKind::Map, "narrow: native code does not support the parameters"),
        (1, KernelKind::Map, "other: native code does not support the parameters"),
        (1, KernelKind::Test, "other: native code does not support the parameters"),
        (2, KernelKind::Map, "time: native code does not support an operation with effects"),
        (3, KernelKind::Map, "native code does not support an operation with effects"),
        (4, KernelKind::Fold, "byte: native code does not support the parameters"),
    ] {
        let error = build(&program, &[(id, kind)]).expect_err("no kernel");
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn calls_with_wrong_lengths_or_of_another_kind_panic() {
    let kernels = build(&program(&of_width(32)), &[(0, KernelKind::Map)]).expect("a kernel");
    let panics = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
    assert!(!panics(&|| kernels.map_same(0, &mut [0; 8], &[0; 8])));
    assert!(panics(&|| kernels.map_same(0, &mut [0; 7], &[0; 8])));
    assert!(panics(&|| kernels.map_same(0, &mut [0; 8], &[0; 4])));
    assert!(panics(&|| kernels.map_each(0, &mut [0; 8], &[0; 8])));
    assert!(panics(&|| kernels.map_same(1, &mut [0; 8], &[0; 8])));
    assert!(panics(&|| kernels.test(0, &[0; 8], &[0; 8], &mut [0; 2])));
    assert!(panics(&|| _ = kernels.fold(0, &[0; 8], 0)));
}
