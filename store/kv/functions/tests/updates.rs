// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every update, for every type of elements, in every form, against the model.

use crate::model::{any_bits, any_operand, bytes, update as model};
use fastrand::Rng;
use freeport_kv_functions::{Deltas, Element, Scalar, Update};
use freeport_testbed::{seed, usual_or_long};

/// Calls `check` for every update and type, with a description for failures.
fn each_case(mut check: impl FnMut(&mut Rng, Update, Element, &str)) {
    for seed in seed()..seed() + usual_or_long(1, 50) {
        let mut rng = Rng::with_seed(seed);
        for update in Update::ALL {
            for element in Element::ALL {
                let case = format!("{} of {element}, seed {seed}", update.name());
                check(&mut rng, update, element, &case);
            }
        }
    }
}

#[test]
fn a_scalar_is_replaced_and_the_original_returned() {
    each_case(|rng, update, element, case| {
        for _ in 0..1000 {
            let v = any_bits(rng, element);
            let mut delta = any_operand(rng, element, update.operands().len());
            if update == Update::CompareExchange && rng.bool() {
                delta[0] = v;
            }
            let mut value = bytes(element, &[v]);
            let original = update.scalar(element, &mut value, &bytes(element, &delta)).unwrap();
            let result = Scalar::load(element, &value).unwrap();
            let expected = Scalar::from_bits(element, model(update, element, v, &delta));
            assert_eq!(original, Scalar::from_bits(element, v), "{case}");
            assert_eq!(result, expected, "{case}: {v:#x} and {delta:x?}");
        }
    });
}

#[test]
fn vectors_of_all_lengths_are_updated_at_any_address() {
    each_case(|rng, update, element, case| {
        let parts = update.operands().len();
        for length in (0..=320).chain([8192, 8200, 3 * 8192 + 8]) {
            let offset = rng.usize(..16);
            if !usize::is_multiple_of(length, element.width()) {
                continue;
            }
            let count = length / element.width();
            let elements = any_operand(rng, element, count);
            let deltas = any_operand(rng, element, count * parts);
            let before = bytes(element, &elements);
            let guarded = |value: &[u8]| [&vec![0xa5; offset], value, &[0x5a; 40]].concat();

            let each: Vec<u64> = (0..count)
                .map(|at| model(update, element, elements[at], &deltas[at * parts..][..parts]))
                .collect();
            let mut memory = guarded(&before);
            let mut original = vec![7];
            let own = guarded(&bytes(element, &deltas));
            let own = &own[offset..own.len() - 40];
            let value = &mut memory[offset..offset + length];
            update.vector(element, value, Deltas::Each(own), Some(&mut original)).unwrap();
            assert_eq!(memory, guarded(&bytes(element, &each)), "{case}: own, {length} bytes");
            assert_eq!(original, [&[7], before.as_slice()].concat(), "{case}");

            let delta = any_operand(rng, element, parts);
            let same: Vec<u64> =
                elements.iter().map(|v| model(update, element, *v, &delta)).collect();
            let mut memory = guarded(&before);
            let value = &mut memory[offset..offset + length];
            let delta = bytes(element, &delta);
            update.vector(element, value, Deltas::Same(&delta), None).unwrap();
            assert_eq!(memory, guarded(&bytes(element, &same)), "{case}: same, {length} bytes");
        }
    });
}

#[test]
fn wrong_lengths_are_refused_and_change_nothing() {
    let add = |value: &mut [u8], deltas| Update::Add.vector(Element::U32, value, deltas, None);
    let mut value = vec![1; 12];
    let error = add(&mut value[..10], Deltas::Same(&[1; 4])).unwrap_err();
    assert_eq!(error.to_string(), "the value has 10 bytes, not a multiple of 4 (u32)");
    let error = add(&mut value, Deltas::Same(&[1; 5])).unwrap_err();
    assert_eq!(error.to_string(), "the operand of `add` (amount) has 5 bytes; 4 are needed");
    let error = add(&mut value, Deltas::Each(&[1; 8])).unwrap_err();
    assert_eq!(error.to_string(), "the operand of `add` (amount) has 8 bytes; 12 are needed");

    let mut original = vec![];
    let swap = Update::CompareExchange;
    let deltas = Deltas::Each(&[1; 12]);
    let error = swap.vector(Element::U32, &mut value, deltas, Some(&mut original)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the operand of `compare_exchange` (expected, new) has 12 bytes; 24 are needed"
    );
    let error = swap.scalar(Element::U64, &mut value, &[1; 16]).unwrap_err();
    assert_eq!(error.to_string(), "the value has 12 bytes, not 8 (one u64)");
    assert!(swap.scalar(Element::U32, &mut value[..4], &[1; 4]).is_err());
    assert_eq!((value, original), (vec![1; 12], vec![]));
}

#[test]
fn a_value_without_elements_stays_empty() {
    for element in Element::ALL {
        let delta = vec![0; element.width()];
        let mut original = vec![];
        Update::Add.vector(element, &mut [], Deltas::Same(&delta), Some(&mut original)).unwrap();
        Update::Add.vector(element, &mut [], Deltas::Each(&[]), Some(&mut original)).unwrap();
        assert_eq!(original, []);
        assert!(Update::Add.scalar(element, &mut [], &delta).is_err());
    }
}

/// Runs an update of one element given as text.
fn after(update: Update, element: Element, v: &str, delta: &[&str]) -> String {
    let bytes = |text: &str| {
        let mut bytes = vec![];
        Scalar::parse(element, "argument", text.as_bytes()).unwrap().append_to(&mut bytes);
        bytes
    };
    let mut value = bytes(v);
    let delta: Vec<u8> = delta.iter().flat_map(|part| bytes(part)).collect();
    update.scalar(element, &mut value, &delta).unwrap();
    Scalar::load(element, &value).unwrap().to_string()
}

#[test]
fn results_at_the_edges_are_the_documented_ones() {
    let cases: &[(Update, Element, &str, &[&str], &str)] = &[
        (Update::Add, Element::U8, "250", &["10"], "4"),
        (Update::Add, Element::I8, "127", &["1"], "-128"),
        (Update::AddSaturating, Element::U8, "250", &["10"], "255"),
        (Update::SubtractSaturating, Element::I8, "-100", &["100"], "-128"),
        (
            Update::AddSaturating,
            Element::F32,
            "3e38",
            &["3e38"],
            "340282350000000000000000000000000000000",
        ),
        (Update::Add, Element::F32, "3e38", &["3e38"], "inf"),
        (Update::Minimum, Element::F64, "nan", &["1"], "NaN"),
        (Update::Minimum, Element::F64, "1", &["nan"], "1"),
        (Update::Maximum, Element::F64, "-0", &["0"], "-0"),
        (Update::Clamp, Element::I16, "5", &["10", "1"], "1"),
        (Update::ShiftLeft, Element::U8, "1", &["8"], "0"),
        (Update::ShiftLeft, Element::I32, "1", &["-1"], "0"),
        (Update::ShiftRight, Element::I64, "-8", &["2"], "-2"),
        (Update::ShiftRight, Element::I64, "-8", &["64"], "-1"),
        (Update::ShiftRight, Element::U64, "8", &["64"], "0"),
        // A cyclic counter, also at the width of the type.
        (Update::AddWrappingAt, Element::U8, "98", &["1", "100"], "99"),
        (Update::AddWrappingAt, Element::U8, "99", &["1", "100"], "0"),
        (Update::AddWrappingAt, Element::U8, "250", &["10", "255"], "5"),
        (Update::AddWrappingAt, Element::U8, "7", &["1", "0"], "8"),
        // A quota and a balance, which do not wrap around.
        (Update::AddIfAtMost, Element::U8, "250", &["10", "255"], "250"),
        (Update::AddIfAtMost, Element::U8, "245", &["10", "255"], "255"),
        (Update::SubtractIfAtLeast, Element::U8, "5", &["6", "0"], "5"),
        (Update::SubtractIfAtLeast, Element::I64, "5", &["6", "-1"], "-1"),
        // The stock of TPC-C.
        (Update::SubtractRefilling, Element::U16, "20", &["10", "10", "91"], "10"),
        (Update::SubtractRefilling, Element::U16, "20", &["11", "10", "91"], "100"),
        (Update::SubtractRefilling, Element::U16, "3", &["10", "10", "91"], "84"),
    ];
    for (update, element, v, delta, expected) in cases {
        assert_eq!(after(*update, *element, v, delta), *expected, "{update:?} {element} {v}");
    }
}
