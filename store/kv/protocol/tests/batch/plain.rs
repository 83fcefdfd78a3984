// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations with flags chosen at random, encoded by the words of `docs/protocols/kv-batch.md`
//! and nothing else: the reference for reader and writer.

use fastrand::Rng;
use freeport_kv_protocol::batch::{Opcode, Operation};

pub const SAME_SIZE: u8 = 16;
pub const SAME_VALUE: u8 = 32;
pub const NO_RETURN: u8 = 64;
pub const WIDE: u8 = 128;

/// An operation that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub opcode: Opcode,
    pub no_return: bool,
    pub function: u8,
    pub element: u8,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Owned {
    pub fn of(operation: Operation<'_>) -> Self {
        let Operation { opcode, no_return, function, element, key, value } = operation;
        let (key, value) = (key.to_vec(), value.to_vec());
        Self { opcode, no_return, function, element, key, value }
    }

    pub fn borrowed(&self) -> Operation<'_> {
        let Self { opcode, no_return, function, element, .. } = *self;
        let (key, value) = (&self.key, &self.value);
        Operation { opcode, no_return, function, element, key, value }
    }
}

/// A packet of operations that often have sizes and values in common.
pub fn random(rng: &mut Rng, count: usize) -> Vec<Owned> {
    let sizes: Vec<usize> = (0..3).map(|_| size(rng)).collect();
    let values: Vec<Vec<u8>> = (0..3).map(|_| bytes(rng, sizes[0])).collect();
    let operation = |rng: &mut Rng| {
        let opcode = Opcode::ALL[rng.usize(..Opcode::ALL.len())];
        let has = |is_there: bool, value: u8| if is_there { value } else { 0 };
        let (function, element) = (rng.u8(..), rng.u8(..));
        let mut value = values[rng.usize(..3)].clone();
        if rng.u8(..4) == 0 {
            let length = sizes[rng.usize(..3)];
            value = bytes(rng, length);
        }
        let length = sizes[rng.usize(..3)];
        let key = bytes(rng, length);
        Owned {
            opcode,
            no_return: opcode.has_key() && rng.bool(),
            function: has(opcode.has_function(), function),
            element: has(opcode.has_function(), element),
            key: if opcode.has_key() { key } else { Vec::new() },
            value: if opcode.has_value() { value } else { Vec::new() },
        }
    };
    (0..count).map(|_| operation(rng)).collect()
}

fn size(rng: &mut Rng) -> usize {
    match rng.u8(..20) {
        0 => rng.usize(256..70_000),
        1..5 => rng.usize(10..256),
        _ => rng.usize(..10),
    }
}

fn bytes(rng: &mut Rng, length: usize) -> Vec<u8> {
    (0..length).map(|_| rng.u8(b'a'..=b'c')).collect()
}

/// Encodes operations. `choose` takes some of the flags that an operation could have.
pub fn encode(operations: &[Owned], mut choose: impl FnMut(u8) -> bool) -> Vec<u8> {
    let (mut payload, mut key_bytes, mut last) = (Vec::new(), None, None::<Vec<u8>>);
    for operation in operations {
        let Owned { opcode, key, value, .. } = operation;
        let has_value = opcode.has_value();
        let (mut first, mut wide) = (*opcode as u8, false);
        let is_same_value = has_value && last.as_ref() == Some(value) && choose(SAME_VALUE);
        if opcode.has_key() {
            let value_fits = !has_value
                || is_same_value
                || last.as_ref().is_some_and(|last| last.len() == value.len());
            let is_same_size = key_bytes == Some(key.len()) && value_fits && choose(SAME_SIZE);
            let is_long = key.len() > 255 || has_value && !is_same_value && value.len() > 65_535;
            wide = !is_same_size && (is_long || choose(WIDE));
            first |= if is_same_size { SAME_SIZE } else { 0 };
            first |= if operation.no_return { NO_RETURN } else { 0 };
        }
        first |= if is_same_value { SAME_VALUE } else { 0 } | if wide { WIDE } else { 0 };
        payload.push(first);
        if opcode.has_function() {
            payload.extend([operation.function, operation.element]);
        }
        if opcode.has_key() && first & SAME_SIZE == 0 {
            let sent = has_value && !is_same_value;
            payload.extend(&(key.len() as u32).to_le_bytes()[..if wide { 4 } else { 1 }]);
            let bytes = if wide { 4 } else { 2 };
            payload.extend(&(value.len() as u32).to_le_bytes()[..if sent { bytes } else { 0 }]);
        }
        payload.extend(key);
        if has_value && !is_same_value {
            payload.extend(value);
        }
        key_bytes = if opcode.has_key() { Some(key.len()) } else { key_bytes };
        last = if has_value { Some(value.clone()) } else { last };
    }
    payload
}
