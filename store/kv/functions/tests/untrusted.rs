// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of any bytes: they are carried out or refused, and a refused one changes nothing.

use fastrand::Rng;
use freeport_kv_functions::{Deltas, Element, Kind, Registry, Scalar, User};
use freeport_testbed::{seed, usual_or_long};
use std::sync::Arc;

/// Returns the built-in functions, and a user function of each kind for some elements.
fn registry() -> Registry {
    let mut builder = Registry::builder();
    let elements = [Element::U8, Element::I64, Element::F32];
    for (id, kind) in [(128, Kind::Update), (191, Kind::Reduce), (255, Kind::Filter)] {
        let user = User::new(kind, "user", elements, Arc::new(subtract));
        builder.register(id, user).unwrap();
    }
    builder.freeze()
}

fn subtract(value: u64, operands: &[u64]) -> u64 {
    value.wrapping_sub(operands[0])
}

/// Returns bytes, often of a length that fits a few elements.
fn any_bytes(rng: &mut Rng, element: Element) -> Vec<u8> {
    let unit = if rng.u8(..4) == 0 { 1 } else { element.width() };
    (0..rng.usize(..4) * unit).map(|_| rng.u8(..)).collect()
}

#[test]
fn requests_of_any_bytes_are_carried_out_or_refused() {
    let registry = registry();
    let known: Vec<u8> = registry.signatures().map(|signature| signature.id).collect();
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    let (mut carried_out, mut refused) = (0, 0);
    for request in 0..usual_or_long(50_000, 10_000_000) {
        let case = format!("request {request}, seed {seed}");
        let id = if rng.bool() { known[rng.usize(..known.len())] } else { rng.u8(..) };
        let Some(element) = Element::from_code(rng.u8(..16)) else { continue };
        let (mut value, operand) = (any_bytes(&mut rng, element), any_bytes(&mut rng, element));
        let before = value.clone();
        let mut output = vec![1, 2, 3];
        let result = match rng.u8(..5) {
            0 => registry.update(id).and_then(|update| {
                let original = update.scalar(element, &mut value, &operand)?;
                original.append_to(&mut output);
                Ok(before.len())
            }),
            form @ 1..=2 => registry.update(id).and_then(|update| {
                let same = Deltas::Same(&operand);
                let deltas = if form == 1 { same } else { Deltas::Each(&operand) };
                update.vector(element, &mut value, deltas, Some(&mut output))?;
                Ok(before.len())
            }),
            3 => registry.reduce(id).and_then(|reduce| {
                let sigma = reduce.fold(element, &value, &operand)?;
                assert_eq!(sigma.element(), reduce.sigma(element), "{case}");
                Ok(0)
            }),
            _ => registry.filter(id).and_then(|filter| {
                filter.keep(element, &value, &operand, &mut output)?;
                Ok(output.len() - 3)
            }),
        };
        assert_eq!(value.len(), before.len(), "{case}");
        assert_eq!(output[..3], [1, 2, 3], "{case}");
        match result {
            Ok(length) => {
                assert_eq!(output.len(), 3 + length, "{case}");
                assert!(length <= before.len(), "{case}");
                carried_out += 1;
            }
            Err(error) => {
                assert_eq!((value, output.len()), (before, 3), "{case}: {error}");
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(carried_out > 500 && refused > 500, "{carried_out} and {refused}");
}

#[test]
fn arguments_of_any_text_are_read_or_refused() {
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    let letters = b"0123456789abcdefxX+-.eEinfatyNA \xc3\xa9\0_";
    for _ in 0..usual_or_long(20_000, 5_000_000) {
        let longest = if rng.u8(..20) == 0 { 400 } else { 12 };
        let length = rng.usize(..longest);
        let text: Vec<u8> = (0..length).map(|_| letters[rng.usize(..letters.len())]).collect();
        for element in Element::ALL {
            match Scalar::parse(element, "argument", &text) {
                // The text of the result is read as the same element, except for bits of NaN.
                Ok(scalar) => {
                    let again = scalar.to_string();
                    let read = Scalar::parse(element, "argument", again.as_bytes()).unwrap();
                    assert!(read == scalar || again == "NaN", "{}", text.escape_ascii());
                }
                Err(error) => assert!(error.to_string().len() < 260, "{error}"),
            }
        }
    }
}
