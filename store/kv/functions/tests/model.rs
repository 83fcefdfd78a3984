// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plain models of the built-in functions, one element at a time. Integers are computed exactly
//! and then reduced to their width, floats by the operators of the language.

#![allow(clippy::useless_conversion, reason = "texts for the bits of both types of floats")]

use fastrand::Rng;
use freeport_kv_functions::{Element, Filter, Reduce, Scalar, Update};

/// The exact value of an integer.
pub fn exact(element: Element, bits: u64) -> i128 {
    match element.widest() {
        Element::I64 => (bits as i64).into(),
        _ => bits.into(),
    }
}

/// The bits of an integer, wrapped around at its width.
fn wrapped(element: Element, number: i128) -> u64 {
    Scalar::from_bits(element, number as u64).bits()
}

/// The range of an integer type.
fn range(element: Element) -> (i128, i128) {
    let bits = 8 * element.width();
    match element.widest() {
        Element::I64 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    }
}

/// Evaluates an expression for the float type of an element.
macro_rules! for_float {
    ($element:expr, $float:ident, $bits:ident => $body:expr) => {
        match $element {
            Element::F32 => {
                type $float = f32;
                type $bits = u32;
                $body
            }
            Element::F64 => {
                type $float = f64;
                type $bits = u64;
                $body
            }
            _ => unreachable!("an integer"),
        }
    };
}

/// Applies an update to an element, both given by their bits.
pub fn update(update: Update, element: Element, v: u64, delta: &[u64]) -> u64 {
    let width = 8 * element.width() as u64;
    match (update, delta) {
        (Update::Exchange, [new]) => *new,
        (Update::CompareExchange, [expected, new]) => {
            if v == *expected {
                *new
            } else {
                v
            }
        }
        (Update::And, [mask]) => v & mask,
        (Update::Or, [mask]) => v | mask,
        (Update::Xor, [mask]) => v ^ mask,
        (Update::ShiftLeft | Update::ShiftRight, [distance]) => {
            let distance = distance & (u64::MAX >> (64 - width));
            (0..distance.min(100)).fold(v, |v, _| match update {
                Update::ShiftLeft => Scalar::from_bits(element, v << 1).bits(),
                _ => Scalar::from_bits(element, (exact(element, v) >> 1) as u64).bits(),
            })
        }
        _ if element.widest() == Element::F64 => float_update(update, element, v, delta),
        _ => integer_update(update, element, v, delta),
    }
}

fn integer_update(update: Update, element: Element, v: u64, delta: &[u64]) -> u64 {
    let (least, greatest) = range(element);
    let v = exact(element, v);
    let delta: Vec<i128> = delta.iter().map(|bits| exact(element, *bits)).collect();
    let result = match (update, delta.as_slice()) {
        (Update::Add, [amount]) => v + amount,
        (Update::Subtract, [amount]) => v - amount,
        (Update::Multiply, [factor]) => v.wrapping_mul(*factor),
        (Update::AddSaturating, [amount]) => (v + amount).clamp(least, greatest),
        (Update::SubtractSaturating, [amount]) => (v - amount).clamp(least, greatest),
        (Update::Minimum, [other]) => v.min(*other),
        (Update::Maximum, [other]) => v.max(*other),
        (Update::Clamp, [low, high]) => v.max(*low).min(*high),
        (Update::AddWrappingAt, [amount, threshold]) if v + amount >= *threshold => {
            v + amount - threshold
        }
        (Update::AddWrappingAt, [amount, _]) => v + amount,
        (Update::AddIfAtMost, [amount, limit]) if v + amount <= *limit => v + amount,
        (Update::SubtractIfAtLeast, [amount, lowest]) if v - amount >= *lowest => v - amount,
        (Update::AddIfAtMost | Update::SubtractIfAtLeast, [_, _]) => v,
        (Update::SubtractRefilling, [amount, lowest, _]) if v - amount >= *lowest => v - amount,
        (Update::SubtractRefilling, [amount, _, refill]) => v - amount + refill,
        _ => panic!("{update:?} with {} parts", delta.len()),
    };
    wrapped(element, result)
}

fn float_update(update: Update, element: Element, v: u64, delta: &[u64]) -> u64 {
    for_float!(element, F, B => {
        let original = v;
        let v = F::from_bits(v as B);
        let delta: Vec<F> = delta.iter().map(|bits| F::from_bits(*bits as B)).collect();
        let finite = |number: F| number.clamp(F::MIN, F::MAX);
        let result = match (update, delta.as_slice()) {
            (Update::Add, [amount]) => v + amount,
            (Update::Subtract, [amount]) => v - amount,
            (Update::Multiply, [factor]) => v * factor,
            (Update::AddSaturating, [amount]) => finite(v + amount),
            (Update::SubtractSaturating, [amount]) => finite(v - amount),
            // These return one of their arguments, with its bits.
            (Update::Minimum, [other]) => {
                return if *other < v { u64::from(other.to_bits()) } else { original };
            }
            (Update::Maximum, [other]) => {
                return if *other > v { u64::from(other.to_bits()) } else { original };
            }
            (Update::Clamp, [low, high]) => {
                let raised = if *low > v { *low } else { v };
                let bits = if *high < raised { high.to_bits() } else { raised.to_bits() };
                return u64::from(bits);
            }
            (Update::AddWrappingAt, [amount, threshold]) => {
                let sum = v + amount;
                if sum >= *threshold { sum - threshold } else { sum }
            }
            (Update::AddIfAtMost, [amount, limit]) => {
                if v + amount <= *limit { v + amount } else { return original }
            }
            (Update::SubtractIfAtLeast, [amount, lowest]) => {
                if v - amount >= *lowest { v - amount } else { return original }
            }
            (Update::SubtractRefilling, [amount, lowest, refill]) => {
                let rest = v - amount;
                if rest >= *lowest { rest } else { rest + refill }
            }
            _ => panic!("{update:?} with {} parts", delta.len()),
        };
        settled(element, result.to_bits().into())
    })
}

/// The bits of a result of arithmetic: one NaN stands for all.
pub fn settled(element: Element, bits: u64) -> u64 {
    match element {
        Element::F32 if f32::from_bits(bits as u32).is_nan() => 0x7fc0_0000,
        Element::F64 if f64::from_bits(bits).is_nan() => 0x7ff8_0000_0000_0000,
        _ => bits,
    }
}

/// Folds elements, given by their bits, into sigma. Floats take the documented order, in a machine
/// with this number of copies of the function; integers are folded one after the other.
pub fn fold(reduce: Reduce, element: Element, elements: &[u64], sigma: u64, copies: usize) -> u64 {
    let is_float = element.widest() == Element::F64;
    match reduce {
        Reduce::And => elements.iter().fold(sigma, |sigma, v| sigma & v),
        Reduce::Or => elements.iter().fold(sigma, |sigma, v| sigma | v),
        Reduce::Xor => elements.iter().fold(sigma, |sigma, v| sigma ^ v),
        Reduce::CountNonzero => {
            let is_zero = |v: &u64| number(element, *v) == 0.0;
            let zeros = elements.iter().filter(|v| is_zero(v)).count();
            sigma.wrapping_add((elements.len() - zeros) as u64)
        }
        _ if is_float => float_fold(reduce, element, elements, sigma, copies),
        _ => elements.iter().fold(sigma, |sigma, v| {
            let (sum, v) = (exact(element.widest(), sigma), exact(element, *v));
            let result = match reduce {
                Reduce::Sum => sum + v,
                Reduce::Product => sum.wrapping_mul(v),
                Reduce::Minimum => sum.min(v),
                Reduce::Maximum => sum.max(v),
                Reduce::SumOfSquares => sum.wrapping_add(v.wrapping_mul(v)),
                Reduce::SumOfMagnitudes => sum + v.abs(),
                _ => panic!("{reduce:?} is on bits"),
            };
            wrapped(element.widest(), result)
        }),
    }
}

fn float_fold(
    reduce: Reduce,
    element: Element,
    elements: &[u64],
    sigma: u64,
    copies: usize,
) -> u64 {
    if elements.is_empty() {
        return sigma;
    }
    let (neutral, merge): (f64, fn(f64, f64) -> f64) = match reduce {
        Reduce::Product => (1.0, |one, other| one * other),
        Reduce::Minimum => (f64::INFINITY, |one, other| if other < one { other } else { one }),
        Reduce::Maximum => (-f64::INFINITY, |one, other| if other > one { other } else { one }),
        _ => (-0.0, |one, other| one + other),
    };
    let term = |v: f64| match reduce {
        Reduce::SumOfSquares => v * v,
        Reduce::SumOfMagnitudes => v.abs(),
        _ => v,
    };
    // A copy takes each `copies`-th element, and owns as many of the lanes.
    let mut owned = vec![vec![neutral; 16 / copies]; copies];
    for (at, v) in elements.iter().enumerate() {
        let lane = &mut owned[at % copies][at / copies % (16 / copies)];
        *lane = merge(*lane, term(number(element, *v)));
    }
    let mut lanes: Vec<f64> = (0..16).map(|lane| owned[lane % copies][lane / copies]).collect();
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        lanes = lanes.into_iter().zip(upper).map(|(one, other)| merge(one, other)).collect();
    }
    let result = merge(f64::from_bits(sigma), lanes[0]).to_bits();
    match reduce {
        Reduce::Minimum | Reduce::Maximum => result,
        _ => settled(Element::F64, result),
    }
}

/// The value of an element, as a float. Large integers are rounded, but not to zero.
fn number(element: Element, bits: u64) -> f64 {
    match element {
        Element::F32 => f32::from_bits(bits as u32).into(),
        Element::F64 => f64::from_bits(bits),
        _ => exact(element, bits) as f64,
    }
}

/// Whether a filter keeps an element.
pub fn keeps(filter: Filter, element: Element, v: u64, operand: &[u64]) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let compare = |other: u64| match element.widest() {
        Element::F64 => number(element, v).partial_cmp(&number(element, other)),
        _ => Some(exact(element, v).cmp(&exact(element, other))),
    };
    match (filter, operand) {
        (Filter::Equal, [other]) => compare(*other) == Some(Equal),
        (Filter::NotEqual, [other]) => compare(*other) != Some(Equal),
        (Filter::Less, [bound]) => compare(*bound) == Some(Less),
        (Filter::AtMost, [bound]) => matches!(compare(*bound), Some(Less | Equal)),
        (Filter::Greater, [bound]) => compare(*bound) == Some(Greater),
        (Filter::AtLeast, [bound]) => matches!(compare(*bound), Some(Greater | Equal)),
        (Filter::Nonzero, []) => compare(0) != Some(Equal),
        (Filter::Within, [low, high]) => {
            keeps(Filter::AtLeast, element, v, &[*low])
                && keeps(Filter::AtMost, element, v, &[*high])
        }
        (Filter::AnyBit, [mask]) => v & mask != 0,
        (Filter::MaskedEqual, [mask, pattern]) => v & mask == *pattern,
        _ => panic!("{filter:?} with {} parts", operand.len()),
    }
}

/// Returns the bits of an element that is likely to be special.
pub fn any_bits(rng: &mut Rng, element: Element) -> u64 {
    let width = 8 * element.width() as u32;
    let bits = match element {
        Element::F32 | Element::F64 if rng.u8(..) < 160 => for_float!(element, F, B => {
            let special: [F; 16] = [
                0.0, -0.0, 1.0, -1.0, 2.5, 10.0, F::MAX, F::MIN, F::MIN_POSITIVE, F::EPSILON,
                F::MIN_POSITIVE / 4.0, F::INFINITY, F::NEG_INFINITY, 1.0 / 3.0, 1e30, -1e30,
            ];
            // Quiet and signalling NaN, of both signs, with and without payload.
            let exponent = F::INFINITY.to_bits();
            let nan = [F::NAN.to_bits(), exponent | 1, B::MAX, B::MAX / 2];
            match rng.u8(..16) {
                0 => nan[rng.usize(..nan.len())].into(),
                1..8 => special[rng.usize(..special.len())].to_bits().into(),
                _ => u64::from((F::from(rng.i8(..)) / 4.0).to_bits()),
            }
        }),
        _ => match rng.u8(..4) {
            0 => u64::from(rng.u8(..4)).wrapping_sub(2),
            1 => (1_u64 << (width - 1)).wrapping_add(rng.u64(..3)).wrapping_sub(1),
            2 => rng.u64(..) >> rng.u32(..64),
            _ => rng.u64(..),
        },
    };
    Scalar::from_bits(element, bits).bits()
}

/// Returns a function's operand: the bits of its parts.
pub fn any_operand(rng: &mut Rng, element: Element, parts: usize) -> Vec<u64> {
    (0..parts).map(|_| any_bits(rng, element)).collect()
}

/// The bytes of elements in memory.
pub fn bytes(element: Element, elements: &[u64]) -> Vec<u8> {
    let mut bytes = vec![];
    elements.iter().for_each(|bits| Scalar::from_bits(element, *bits).append_to(&mut bytes));
    bytes
}
