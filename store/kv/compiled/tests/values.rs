// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options, values and calls that the tests share.

use freeport_kv_compiled::{Code, Options};
use freeport_kv_functions::{Deltas, Element, Kind, Registry, Signature};
use freeport_testbed::cache::Cache;

/// Types of elements that the language has.
pub const INTEGERS: [Element; 8] = [
    Element::U8,
    Element::U16,
    Element::U32,
    Element::U64,
    Element::I8,
    Element::I16,
    Element::I32,
    Element::I64,
];

/// Options for native code, in the cache of tests.
pub fn native() -> Options {
    let cache = Some(Cache::of("native").path().to_owned());
    let native = freeport_native::Options { cache, ..freeport_native::Options::default() };
    Options { code: Code::Native(Box::new(native)), ..Options::default() }
}

/// Returns random bytes, of which runs are 0, 255 or 127.
pub fn any_bytes(rng: &mut fastrand::Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![];
    while bytes.len() < length {
        let run = rng.usize(1..=8);
        match rng.u8(..8) {
            0 => bytes.extend(vec![0; run]),
            1 => bytes.extend(vec![0xff; run]),
            2 => bytes.extend([0xff, 0xff, 0xff, 0x7f]),
            3 => bytes.extend([0, 0, 0, 0x80]),
            4 => bytes.extend([rng.u8(..), 0, 0, 0, 0, 0, 0, 0]),
            _ => bytes.extend((0..run).map(|_| rng.u8(..))),
        }
    }
    bytes.truncate(length);
    bytes
}

/// Returns operands for a call of a function with `count` elements.
pub fn any_operands(
    rng: &mut fastrand::Rng,
    signature: &Signature<'_>,
    element: Element,
    count: usize,
) -> Vec<u8> {
    let own = signature.operands.len() * element.width();
    let length = match signature.kind {
        Kind::Update => count * own,
        Kind::Reduce => 8,
        Kind::Filter => own,
    };
    any_bytes(rng, length)
}

/// Results of a function for elements with operands of their own, and for all with the operands of
/// the first; for a reduction, only sigma.
#[derive(Debug, PartialEq, Eq)]
pub enum Results {
    Update { each: Vec<u8>, same: Vec<u8> },
    Reduce { sigma: u64 },
    Filter { kept: Vec<u8> },
}

/// Calls function `id` with operands from [`any_operands`].
pub fn call(
    registry: &Registry,
    id: u8,
    element: Element,
    values: &[u8],
    operands: &[u8],
) -> Results {
    let signature = registry.signature(id).expect("a function");
    let own = signature.operands.len() * element.width();
    match signature.kind {
        Kind::Update => {
            let update = registry.update(id).expect("an update");
            let (mut each, mut same) = (values.to_vec(), values.to_vec());
            update.vector(element, &mut each, Deltas::Each(operands), None).expect("elements");
            let first = Deltas::Same(&operands[..own]);
            update.vector(element, &mut same, first, None).expect("elements");
            let mut one = values[..element.width()].to_vec();
            update.scalar(element, &mut one, &operands[..own]).expect("an element");
            assert_eq!(one, same[..element.width()], "a scalar is a vector of one element");
            Results::Update { each, same }
        }
        Kind::Reduce => {
            let reduce = registry.reduce(id).expect("a reduction");
            let sigma = reduce.fold(element, values, &operands[..8]).expect("elements");
            Results::Reduce { sigma: sigma.bits() }
        }
        Kind::Filter => {
            let filter = registry.filter(id).expect("a filter");
            let mut kept = vec![];
            filter.keep(element, values, &operands[..own], &mut kept).expect("elements");
            Results::Filter { kept }
        }
    }
}

/// Returns what [`call`] has to return, given the function for one element.
pub fn wanted(
    registry: &Registry,
    id: u8,
    (element, values, operands): (Element, &[u8], &[u8]),
    model: &dyn Fn(Element, i128, &[i128]) -> i128,
) -> Results {
    let signature = registry.signature(id).expect("a function");
    let (width, parts) = (element.width(), signature.operands.len());
    let read = |bytes: &[u8]| number(element, bytes);
    let own = |at: usize| -> Vec<i128> {
        operands[at * parts * width..][..parts * width].chunks(width).map(read).collect()
    };
    let store = |value: i128| value.to_le_bytes()[..width].to_vec();
    let elements = || values.chunks(width).enumerate();
    match signature.kind {
        Kind::Update => Results::Update {
            each: elements().flat_map(|(at, v)| store(model(element, read(v), &own(at)))).collect(),
            same: elements().flat_map(|(_, v)| store(model(element, read(v), &own(0)))).collect(),
        },
        Kind::Reduce => {
            let sigma = number(Element::U64, &operands[..8]) as u64;
            let fold = |sigma: u64, (_, v)| model(element, read(v), &[i128::from(sigma)]) as u64;
            Results::Reduce { sigma: elements().fold(sigma, fold) }
        }
        Kind::Filter => {
            let keeps = |v: &[u8]| model(element, read(v), &own(0)) != 0;
            let kept = elements().filter(|(_, v)| keeps(v)).flat_map(|(_, v)| v.to_vec());
            Results::Filter { kept: kept.collect() }
        }
    }
}

/// Returns the number that an element is.
pub fn number(element: Element, bytes: &[u8]) -> i128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    wrapped(i128::from_le_bytes(wide), bytes.len() as u32 * 8, is_signed(element))
}

/// Returns whether elements have a sign.
pub fn is_signed(element: Element) -> bool {
    element.widest() == Element::I64
}

/// Returns a number as it is while the language computes with elements: at least 32 bits, with a
/// sign if it was widened.
pub fn computed(element: Element, value: i128) -> i128 {
    match element.width() {
        1 | 2 => wrapped(value, 32, true),
        width => wrapped(value, width as u32 * 8, is_signed(element)),
    }
}

/// Returns a number cut to a width.
pub fn wrapped(value: i128, width: u32, is_signed: bool) -> i128 {
    let shift = 128 - width;
    match is_signed {
        true => value << shift >> shift,
        false => ((value as u128) << shift >> shift) as i128,
    }
}
