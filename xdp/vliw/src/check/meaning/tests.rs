// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images that do the same as their programs in another way, and images that differ slightly.

use super::super::naive::naive;
use super::super::sample::{differs, image, load, program, set, store};
use super::super::{Paths, check_paths};
use super::*;
use crate::image::{Row, Slot};
use crate::operation::{Condition, Operand, Operation, Target, Width};

const EXIT: Operation = Operation::Exit;

fn save(bytes: u8, base: u8, offset: i16, source: u8) -> Operation {
    Operation::Store { bytes, base, offset, source: Operand::Register(source) }
}

fn speculative(operation: Operation) -> Operation {
    match operation {
        Operation::Load { bytes, is_signed, destination, base, offset, .. } => {
            let is_speculative = true;
            Operation::Load { bytes, is_signed, is_speculative, destination, base, offset }
        }
        other => other,
    }
}

fn bound(bytes: i32, target: Target) -> Operation {
    Operation::Bound { base: None, bytes, target }
}

/// Swaps the two addresses of an Ethernet header.
const SWAP: &str = "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr4 = r2\nr4 += 14\n\
                    if r4 > r3 goto short\n\
                    r5 = *(u32 *)(r2 + 0)\nr6 = *(u16 *)(r2 + 4)\n\
                    r7 = *(u32 *)(r2 + 6)\nr8 = *(u16 *)(r2 + 10)\n\
                    *(u32 *)(r2 + 6) = r5\n*(u16 *)(r2 + 10) = r6\n\
                    *(u32 *)(r2 + 0) = r7\n*(u16 *)(r2 + 4) = r8\n\
                    r0 = 3\nexit\nshort:\nr0 = 1\nexit";

/// The same with all features of the processor: `short` is the verdict for a short packet, `first`
/// loads the first address, `second` stores the other one there.
fn swap(short: u32, first: Operation, second: Operation) -> Image {
    image(&[
        &[(0, bound(14, Target::Exit(short)), &[4]), (1, load(4, 2, 1, 0), &[0])],
        &[(1, first, &[5, 6])],
        &[(2, load(6, 4, 2, 6), &[7, 8])],
        &[(1, save(6, 2, 6, 5), &[9, 10]), (2, second, &[11, 12])],
        &[(0, Operation::Goto(Target::Exit(3)), &[13, 14])],
    ])
}

#[test]
fn six_bytes_bounds_and_verdicts_are_what_they_are_made_of() {
    let (first, second) = (load(6, 5, 2, 0), save(6, 2, 0, 4));
    let mut good = swap(1, first, second);
    // Lane 2 reads in row 2 the result of lane 1 in row 0; row 1 reads it in its own lane.
    assert_eq!(differs(SWAP, &good), []);
    assert_eq!(differs(SWAP, &swap(2, first, second)), [Rule::Meaning], "another verdict");
    assert_eq!(differs(SWAP, &swap(1, load(6, 5, 2, 6), second)), [Rule::Meaning]);
    assert_eq!(differs(SWAP, &swap(1, first, save(6, 2, 0, 5))), [Rule::Meaning]);
    good.rows[0].lanes[0] = Some(Slot { operation: bound(13, Target::Exit(1)), origins: vec![4] });
    assert_eq!(differs(SWAP, &good), [Rule::Meaning], "a byte too few");
}

#[test]
fn operations_touch_what_they_are_made_of() {
    let mut image = swap(1, load(6, 5, 2, 0), save(6, 2, 0, 4));
    let load = image.rows[1].lanes[1].as_mut().expect("it loads");
    load.origins = vec![7, 8];
    let (program, analysis) = program(SWAP);
    let found = check_paths(&image, &program, &analysis, 10).expect_err("it says so wrongly");
    assert_eq!((found[0].row, found[0].rule), (1, Rule::Origin));
}

#[test]
fn a_load_before_its_check_is_speculative() {
    let early = |load: Operation| {
        let mut image = swap(1, load, save(6, 2, 0, 4));
        let check = image.rows[0].lanes[0].take();
        image.rows[2].lanes[0] = check;
        differs(SWAP, &image)
    };
    assert_eq!(early(load(6, 5, 2, 0)), [Rule::MayMiss]);
    assert_eq!(early(speculative(load(6, 5, 2, 0))), []);
}

#[test]
fn what_others_see_is_done_under_its_condition() {
    let text = "r2 = *(u32 *)(r1 + 12)\nif r2 == 0 goto out\nr1 = 1\nr2 = 0\ncall 0x17\nexit\n\
                out:\nr0 = 2\nexit";
    let jump = |target| Operation::Jump {
        width: Width::Bits64,
        condition: Condition::Equal,
        left: 6,
        right: Operand::Immediate(0),
        target,
    };
    let rows = |jump_row: usize, target| {
        let mut image = image(&[
            &[(0, load(4, 6, 1, 12), &[0])],
            &[],
            &[(1, set(1, 1), &[2]), (2, set(2, 0), &[3])],
            &[],
            &[(1, Operation::call(23), &[4])],
            &[],
            &[(0, EXIT, &[5])],
        ]);
        image.rows[jump_row].lanes[0] = Some(Slot { operation: jump(target), origins: vec![1] });
        differs(text, &image)
    };
    assert_eq!(rows(1, Target::Exit(2)), []);
    assert_eq!(rows(2, Target::Exit(2)), [], "what is behind it in its row is not done");
    assert_eq!(rows(5, Target::Exit(2)), [Rule::Meaning], "it is called before");
    assert_eq!(rows(1, Target::Exit(1)), [Rule::Meaning]);
    assert_eq!(rows(1, Target::Row(2)), [Rule::Meaning], "it is always called");
}

#[test]
fn bytes_that_are_put_together_are_a_wider_load() {
    let text = "r2 = *(u8 *)(r10 - 8)\nr3 = *(u8 *)(r10 - 7)\nr3 <<= 8\nr2 |= r3\nr2 = be16 r2\n\
                r0 = r2\nexit";
    let memory = "r4 = 8\nr3 = r10\nr3 += -8\nr2 = 0\ncall 0xbd\n";
    let swapped = |destination, bits| Operation::Swap {
        order: crate::operation::ByteOrder::Big,
        destination,
        source: 2,
        bits,
    };
    let rows = |bytes, bits| {
        let (_, analysis) = program(&format!("{memory}{text}"));
        let mut image = naive(&analysis, 4);
        image.rows.truncate(5);
        let operations: [(Operation, &[usize]); 3] =
            [(load(bytes, 2, 10, -8), &[5, 6, 7, 8]), (swapped(0, bits), &[9, 10]), (EXIT, &[11])];
        image.rows.extend(operations.map(|(operation, origins)| {
            let slot = Slot { operation, origins: origins.to_vec() };
            Row { lanes: vec![Some(slot), None, None, None] }
        }));
        differs(&format!("{memory}{text}"), &image)
    };
    assert_eq!(rows(2, 16), []);
    assert_eq!(rows(1, 16), [Rule::Meaning]);
    assert_eq!(rows(2, 32), [Rule::Meaning]);
}

/// Looks up a key of zero twice; in between, a helper writes the key's memory.
const KEYS: &str = "r6 = r1\n*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\n\
                    r4 = 4\nr3 = r10\nr3 += -4\nr2 = 0\nr1 = r6\ncall 0xbd\n\
                    *(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\nr0 = 1\nexit";

#[test]
fn zeros_are_there_at_first_but_not_again() {
    let without = |slot: usize| {
        let (_, analysis) = program(KEYS);
        let mut image = naive(&analysis, 4);
        let is_it = |found: &Option<Slot>| found.as_ref().is_some_and(|it| it.origins == [slot]);
        let row = image.rows.iter().position(|row| is_it(&row.lanes[0])).expect("it has a row");
        image.rows[row].lanes[0] = None;
        differs(KEYS, &image)
    };
    assert_eq!(without(1), [], "the stack is zero when a packet begins");
    assert_eq!(without(13), [Rule::Meaning]);
}

#[test]
fn stores_keep_their_order_where_they_may_meet() {
    let text = "r6 = r1\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\nif r0 == 0 goto out\n\
                r2 = *(u32 *)(r6 + 12)\nr2 &= 7\nr3 = r0\nr3 += r2\n*(u8 *)(r3 + 0) = 1\n\
                *(u8 *)(r0 + 4) = 2\n*(u8 *)(r0 + 12) = 3\nout:\nr0 = 1\nexit";
    let (_, analysis) = program(text);
    let swapped = |one: usize, other: usize| {
        let mut image = naive(&analysis, 4);
        let rows = [one, other].map(|slot| {
            let origin = |row: &Row| row.lanes[0].as_ref().map(|it| it.origins[0]);
            image.rows.iter().position(|row| origin(row) == Some(slot)).expect("it has a row")
        });
        image.rows.swap(rows[0], rows[1]);
        differs(text, &image)
    };
    assert_eq!(swapped(12, 13), [], "they are apart");
    assert_eq!(swapped(11, 12), [Rule::Meaning], "they may be the same byte");
    let (program, analysis) = program(text);
    let mut image = naive(&analysis, 4);
    let third = image.rows.iter_mut().flat_map(|row| &mut row.lanes).flatten();
    for slot in third.filter(|slot| slot.origins == [13]) {
        slot.operation = store(1, 0, 12, 4);
    }
    let found = check_paths(&image, &program, &analysis, 100).expect_err("another value");
    assert!(found[0].to_string().contains("memory differs at the end"), "{}", found[0]);
}

#[test]
fn functions_are_followed_and_those_that_helpers_call_are_looked_at_alone() {
    let text = "r1 = 5\ncall double\nr6 = r0\nr1 = 4\nr2 = function again\nr3 = 0\nr4 = 0\n\
                call 0xb5\nr0 = r6\nexit\n\
                double:\nr0 = r1\nr0 += r1\nexit\nagain:\nr0 = 0\nexit";
    let (program, analysis) = program(text);
    let good = naive(&analysis, 4);
    let paths = check_paths(&good, &program, &analysis, 10);
    assert_eq!(paths, Ok(Paths { validated: 2, abandoned: 0, is_complete: true }));
    for (slot, constant) in [(0, 6), (14, 1)] {
        let mut other = good.clone();
        for found in other.rows.iter_mut().flat_map(|row| &mut row.lanes).flatten() {
            if found.origins == [slot] {
                found.operation = set(found.operation.written().unwrap_or(0), constant);
            }
        }
        assert_eq!(differs(text, &other), [Rule::Meaning], "{slot}");
    }
}

#[test]
fn an_image_that_never_ends_is_wrong() {
    let text = "r0 = 1\nexit";
    let mut image = image(&[&[(0, set(0, 1), &[0])], &[(0, EXIT, &[1])]]);
    assert_eq!(differs(text, &image), []);
    image.rows[1].lanes[0] =
        Some(Slot { operation: Operation::Goto(Target::Row(0)), origins: vec![1] });
    assert_eq!(differs(text, &image), [Rule::Meaning]);
}

#[test]
fn what_a_comparison_says_is_known_behind_it() {
    let text = "r1 = map[0]\nr2 = r10\nr2 += -4\ncall 0x1\nif r0 == 0 goto out\n\
                r1 = *(u64 *)(r0 + 0)\nif r1 == 1 goto one\nr0 = *(u64 *)(r0 + 8)\n\
                out:\nexit\none:\nr0 = 1\nexit";
    let (_, analysis) = program(text);
    let good = naive(&analysis, 4);
    let early = Some(Slot { operation: load(8, 12, 0, 8), origins: vec![8] });
    let mut other = good.clone();
    other.rows[5].lanes[1] = early.clone();
    assert_eq!(differs(text, &other), [], "it is loaded on both ways on, where one needs it");
    // The check of the lookup's result is one row later, and the load before it.
    let check = std::mem::replace(&mut other.rows[4].lanes[0], early);
    other.rows[5].lanes = vec![check, other.rows[5].lanes[0].take(), None, None];
    other.rows[6].lanes.swap(0, 1);
    assert_eq!(differs(text, &other), [Rule::MayMiss], "there may be nothing to load");
    let null = |verdict| {
        let mut other = good.clone();
        let jump = other.rows[4].lanes[0].as_mut().expect("it jumps");
        *jump.operation.target_mut().expect("it leads somewhere") = Target::Exit(verdict);
        differs(text, &other)
    };
    assert_eq!([null(0), null(1)], [vec![], vec![Rule::Meaning]]);
}
