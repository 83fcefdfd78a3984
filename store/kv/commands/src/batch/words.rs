// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command that an operation stands for, as words: for the log, for the rights of users, and
//! for those who monitor.

use freeport_kv_functions::{Element, Kind, Registry, Scalar};
use freeport_kv_protocol::batch::{Opcode, Operation};

/// Operands that are shown as numbers; no function has more. The others are one word of bytes.
const OPERANDS: usize = 16;

/// Calls a function with the words of the command that an operation stands for. The command has
/// the same result, apart from the reply: an update of a vector does not return the original.
pub fn with_words<R>(
    registry: &Registry,
    operation: &Operation<'_>,
    call: impl FnOnce(&[&[u8]]) -> R,
) -> R {
    let Operation { key, value, .. } = *operation;
    match operation.opcode {
        Opcode::Get => call(&[b"GET", key]),
        Opcode::Put => call(&[b"SET", key, value]),
        Opcode::Delete => call(&[b"DEL", key]),
        Opcode::Functions => call(&[b"KV.FUNCTIONS"]),
        // Its value has a password.
        Opcode::Hello => call(&[b"HELLO"]),
        _ => with_words_of_call(registry, operation, call),
    }
}

fn with_words_of_call<R>(
    registry: &Registry,
    operation: &Operation<'_>,
    call: impl FnOnce(&[&[u8]]) -> R,
) -> R {
    let Operation { opcode, key, value, .. } = *operation;
    let id = operation.function.to_string();
    let kind = match opcode {
        Opcode::Reduce => Kind::Reduce,
        Opcode::Filter => Kind::Filter,
        _ => Kind::Update,
    };
    let named = registry.signature(operation.function).ok().filter(|found| found.kind == kind);
    let function = named.map_or(&*id, |signature| signature.name);
    let element = Element::from_code(operation.element);
    let code = operation.element.to_string();
    let name = element.map_or(&*code, |element| element.name());
    let sigma = || Some(registry.reduce(operation.function).ok()?.sigma(element?));
    let (command, word, operand): (&[u8], Option<&[u8]>, _) = match opcode {
        Opcode::UpdateSame => (b"KV.UPDATEV", Some(b"DELTA"), element),
        Opcode::UpdateVector => (b"KV.UPDATEV", Some(b"DELTAS"), None),
        Opcode::Reduce => (b"KV.REDUCE", None, sigma()),
        Opcode::Filter => (b"KV.FILTER", None, element),
        _ => (b"KV.UPDATE", None, element),
    };
    let numbers = operand.and_then(|element| numbers(element, value));
    let mut words = vec![command, key, function.as_bytes(), name.as_bytes()];
    words.extend(word);
    match &numbers {
        Some(numbers) => words.extend(numbers.iter().map(String::as_bytes)),
        None => words.push(value),
    }
    call(&words)
}

/// Operands as texts that commands read as the same bits; none: they are no operands.
fn numbers(element: Element, value: &[u8]) -> Option<Vec<String>> {
    let width = element.width();
    if !value.len().is_multiple_of(width) || value.len() > OPERANDS * width {
        return None;
    }
    let text = |bytes: &[u8]| {
        let number = Scalar::load(element, bytes).ok()?;
        // Decimals of floats do not have the bits of what is no number.
        Some(match element {
            Element::F32 | Element::F64 => format!("{:#x}", number.bits()),
            _ => number.to_string(),
        })
    };
    value.chunks_exact(width).map(text).collect()
}
