// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every filter, for every type of elements, against the model.

use crate::model::{any_operand, bytes, keeps};
use fastrand::Rng;
use freeport_kv_functions::{Element, Filter};
use freeport_testbed::{seed, usual_or_long};

#[test]
fn the_elements_that_fulfil_the_condition_are_kept_in_order() {
    for seed in seed()..seed() + usual_or_long(1, 50) {
        let mut rng = Rng::with_seed(seed);
        for filter in Filter::ALL {
            for element in Element::ALL {
                for count in (0..=200).chain([511, 512, 513, 2000]) {
                    check(&mut rng, filter, element, count, seed);
                }
            }
        }
    }
}

fn check(rng: &mut Rng, filter: Filter, element: Element, count: usize, seed: u64) {
    let case = format!("{} of {count} {element}, seed {seed}", filter.name());
    let mut elements = any_operand(rng, element, count);
    let mut operand = any_operand(rng, element, filter.operands().len());
    if filter == Filter::MaskedEqual && rng.bool() {
        operand[1] &= operand[0];
    }
    // Runs of equal elements: none or all of a block are kept.
    if let (0, [first, ..]) = (rng.u8(..8), operand.as_slice()) {
        elements.fill(*first);
    }
    let expected: Vec<u64> =
        elements.iter().copied().filter(|v| keeps(filter, element, *v, &operand)).collect();
    let offset = rng.usize(..16);
    let memory = [vec![0xa5; offset], bytes(element, &elements)].concat();
    let mut kept = vec![7; offset];
    filter.keep(element, &memory[offset..], &bytes(element, &operand), &mut kept).unwrap();
    assert_eq!(kept[..offset], vec![7; offset], "{case}");
    assert_eq!(kept[offset..], bytes(element, &expected), "{case}, operand {operand:x?}");
}

#[test]
fn comparisons_are_those_of_the_type() {
    let kept = |filter: Filter, element, values: &[u8], operand: &[u8]| {
        let mut kept = vec![];
        filter.keep(element, values, operand, &mut kept).unwrap();
        kept
    };
    assert_eq!(kept(Filter::Less, Element::U8, &[1, 128, 255], &[128]), [1]);
    assert_eq!(kept(Filter::Less, Element::I8, &[1, 128, 255], &[0]), [128, 255]);
    assert_eq!(kept(Filter::Within, Element::U8, &[1, 2, 3, 4], &[2, 3]), [2, 3]);
    assert_eq!(kept(Filter::Within, Element::U8, &[1, 2, 3, 4], &[3, 2]), []);
    assert_eq!(kept(Filter::MaskedEqual, Element::U8, &[1, 2, 3, 4], &[3, 3]), [3]);
    let zeros = [0.0_f32, -0.0, f32::NAN].map(f32::to_le_bytes).concat();
    assert_eq!(kept(Filter::Nonzero, Element::F32, &zeros, &[]), zeros[8..]);
    assert_eq!(kept(Filter::Equal, Element::F32, &zeros, &[0; 4]), zeros[..8]);
    assert_eq!(kept(Filter::NotEqual, Element::F32, &zeros, &zeros[8..]), zeros);
    assert_eq!(kept(Filter::AnyBit, Element::F32, &zeros, &[0, 0, 0, 0x80]), zeros[4..8]);
}

#[test]
fn wrong_lengths_are_refused_and_keep_nothing() {
    let mut kept = vec![1];
    let error = Filter::Equal.keep(Element::U64, &[0; 12], &[0; 8], &mut kept).unwrap_err();
    assert_eq!(error.to_string(), "the value has 12 bytes, not a multiple of 8 (u64)");
    let error = Filter::Within.keep(Element::U64, &[0; 16], &[0; 8], &mut kept).unwrap_err();
    assert_eq!(error.to_string(), "the operand of `within` (low, high) has 8 bytes; 16 are needed");
    let error = Filter::Nonzero.keep(Element::U64, &[0; 16], &[0; 8], &mut kept).unwrap_err();
    assert_eq!(error.to_string(), "the operand of `nonzero` has 8 bytes; 0 are needed");
    assert_eq!(kept, [1]);
}
