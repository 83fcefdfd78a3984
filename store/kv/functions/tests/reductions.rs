// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every reduction, for every type of elements, against the model, which has several copies of the
//! function.

use crate::model::{any_bits, any_operand, bytes, fold as model};
use fastrand::Rng;
use freeport_kv_functions::{Element, Reduce, Scalar};
use freeport_testbed::{seed, usual_or_long};

#[test]
fn the_number_of_copies_does_not_change_the_result() {
    for seed in seed()..seed() + usual_or_long(1, 50) {
        let mut rng = Rng::with_seed(seed);
        for reduce in Reduce::ALL {
            for element in Element::ALL {
                for count in (0..=200).chain([511, 512, 513, 2000]) {
                    check(&mut rng, reduce, element, count, seed);
                }
            }
        }
    }
}

fn check(rng: &mut Rng, reduce: Reduce, element: Element, count: usize, seed: u64) {
    let case = format!("{} of {count} {element}, seed {seed}", reduce.name());
    let (elements, sigma) = any_arguments(rng, reduce, element, count);
    let offset = rng.usize(..16);
    let memory = [vec![0xa5; offset], bytes(element, &elements)].concat();
    let result = reduce.fold(element, &memory[offset..], &sigma.to_le_bytes()).unwrap();
    assert_eq!(result.element(), reduce.sigma(element), "{case}");
    for copies in [1, 2, 4, 8, 16] {
        let expected = model(reduce, element, &elements, sigma, copies);
        assert_eq!(
            result,
            Scalar::from_bits(reduce.sigma(element), expected),
            "{case}, {copies} copies, sigma {sigma:#x}"
        );
    }
}

/// Returns the bits of elements and of a sigma.
fn any_arguments(rng: &mut Rng, reduce: Reduce, element: Element, count: usize) -> (Vec<u64>, u64) {
    let is_float = element.widest() == Element::F64;
    let float = |element: Element, value: f64| match element {
        Element::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    };
    match rng.u8(..4) {
        // Zeros, whose signs depend on the neutral elements and on the order. A minimum shows the
        // sign if sigma is greater.
        0 if is_float => {
            let share = rng.f64();
            let sigma = [0.0, -0.0, 1.0, -1.0][rng.usize(..4)];
            let mut any = || if rng.f64() < share { 0.0 } else { -0.0 };
            ((0..count).map(|_| float(element, any())).collect(), f64::to_bits(sigma))
        }
        // Plain numbers: with an infinity or a NaN, most sums would be one.
        1 | 2 if is_float => {
            let mut any = || rng.f64().mul_add(4.0, -2.0);
            ((0..count).map(|_| float(element, any())).collect(), any().to_bits())
        }
        _ => (any_operand(rng, element, count), any_bits(rng, reduce.sigma(element))),
    }
}

/// Folds the bytes of elements, beginning with the initial sigma.
fn fold(reduce: Reduce, element: Element, values: &[u8]) -> String {
    let sigma = reduce.initial(element).bits().to_le_bytes();
    reduce.fold(element, values, &sigma).unwrap().to_string()
}

#[test]
fn the_initial_sigma_does_not_change_the_result() {
    for element in Element::ALL {
        let mut three = vec![];
        Scalar::parse(element, "three", b"3").unwrap().append_to(&mut three);
        let bits = Scalar::load(element, &three).unwrap().bits().to_string();
        for reduce in Reduce::ALL {
            let is_float = element.widest() == Element::F64;
            let expected = match reduce {
                Reduce::CountNonzero => "1",
                Reduce::SumOfSquares => "9",
                Reduce::And | Reduce::Or | Reduce::Xor if is_float => &bits,
                _ => "3",
            };
            assert_eq!(fold(reduce, element, &three), expected, "{reduce:?} of {element}");
            assert_eq!(reduce.initial(element).element(), reduce.sigma(element));
        }
        assert_eq!(fold(Reduce::Sum, element, &[]), "0");
    }
    assert_eq!(fold(Reduce::Minimum, Element::F32, &[]), "inf");
    assert_eq!(fold(Reduce::Minimum, Element::I8, &[]), i64::MAX.to_string());
    assert_eq!(fold(Reduce::Maximum, Element::I8, &[]), i64::MIN.to_string());
    assert_eq!(fold(Reduce::And, Element::I8, &[]), "-1");
    assert_eq!(fold(Reduce::Product, Element::F64, &[]), "1");
}

#[test]
fn sigma_is_wider_than_the_elements() {
    assert_eq!(fold(Reduce::Sum, Element::U8, &[255; 1000]), "255000");
    assert_eq!(fold(Reduce::Sum, Element::I8, &[0x80; 1000]), "-128000");
    assert_eq!(fold(Reduce::SumOfSquares, Element::I8, &[0x80; 1000]), (16384 * 1000).to_string());
    assert_eq!(fold(Reduce::SumOfMagnitudes, Element::I8, &[0x80; 10]), "1280");
    assert_eq!(
        fold(Reduce::SumOfMagnitudes, Element::I64, &i64::MIN.to_le_bytes()),
        i64::MIN.to_string()
    );
    assert_eq!(fold(Reduce::CountNonzero, Element::F32, &[0, 0, 0, 0x80].repeat(9)), "0");
    assert_eq!(fold(Reduce::CountNonzero, Element::F32, &[0xff; 36]), "9");
    let values = 1e30_f32.to_le_bytes().repeat(4);
    assert_eq!(fold(Reduce::SumOfSquares, Element::F32, &values).len(), 61);
    // Sigma may lie out of the range of the elements.
    let least = Reduce::Minimum.fold(Element::U8, &[], &1000_u64.to_le_bytes()).unwrap();
    assert_eq!(least.bits(), 1000);
}

#[test]
fn a_minimum_leaves_out_elements_that_are_no_numbers() {
    let values = [f64::NAN, 3.0, f64::NAN, 2.0].map(f64::to_le_bytes).concat();
    assert_eq!(fold(Reduce::Minimum, Element::F64, &values), "2");
    assert_eq!(fold(Reduce::Maximum, Element::F64, &values), "3");
    assert_eq!(fold(Reduce::Minimum, Element::F64, &values[..8]), "inf");
    let sigma = (-f64::NAN).to_le_bytes();
    let result = Reduce::Minimum.fold(Element::F64, &values, &sigma).unwrap();
    assert_eq!(result.bits(), u64::from_le_bytes(sigma));
}

#[test]
fn wrong_lengths_are_refused() {
    let error = Reduce::Sum.fold(Element::U16, &[0; 3], &[0; 8]).unwrap_err();
    assert_eq!(error.to_string(), "the value has 3 bytes, not a multiple of 2 (u16)");
    let error = Reduce::Sum.fold(Element::U16, &[0; 4], &[0; 2]).unwrap_err();
    assert_eq!(error.to_string(), "the operand of `sum` (sigma) has 2 bytes; 8 are needed");
}
