// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of functions and elements, and operands, among the arguments.

use freeport_kv_functions::{Element, Kind, Registry, Scalar, Signature};
use freeport_kv_keyspace::OperationError;

use crate::error::Error;

/// Finds the function of a kind, by its name or its id.
///
/// # Errors
/// There is none.
pub fn find<'a>(registry: &'a Registry, kind: Kind, word: &[u8]) -> Result<Signature<'a>, Error> {
    let name = std::str::from_utf8(word).unwrap_or_default();
    let signature = match name.parse::<u8>() {
        Ok(id) => Some(registry.signature(id).map_err(Error::of)?),
        Err(_) => registry.named(kind, name),
    };
    let unknown = || {
        let name = excerpt(word);
        Error::new(format!("ERR no {kind} is named '{name}'; KV.FUNCTIONS lists all"))
    };
    signature.ok_or_else(unknown)
}

/// Reads the type of the elements.
///
/// # Errors
/// There is no such type.
pub fn element(word: &[u8]) -> Result<Element, Error> {
    let name = std::str::from_utf8(word).unwrap_or_default();
    name.parse().map_err(|error: freeport_kv_functions::Error| Error::of(error))
}

/// Reads an operand from its parts, each a number, as bytes.
///
/// # Errors
/// A part is missing, there are too many, or one is no number of that type.
pub fn operand(
    signature: &Signature<'_>,
    element: Element,
    words: &[&[u8]],
) -> Result<Vec<u8>, Error> {
    if words.len() != signature.operands.len() {
        let (name, wanted) = (signature.name, signature.operands.to_string());
        let wanted = if wanted.is_empty() { "none" } else { &wanted };
        let given = words.len();
        let text = format!("ERR {name} takes the operands ({wanted}), but {given} were given");
        return Err(Error::new(text));
    }
    let mut bytes = vec![];
    for (word, part) in words.iter().zip(signature.operands.iter()) {
        Scalar::parse(element, part, word).map_err(Error::of)?.append_to(&mut bytes);
    }
    Ok(bytes)
}

/// The beginning of a name, fit for a message.
fn excerpt(name: &[u8]) -> String {
    const LONGEST: usize = 64;
    name[..name.len().min(LONGEST)].escape_ascii().to_string()
}

/// The error of an operation that did nothing.
pub fn refused(error: OperationError) -> Error {
    match error {
        OperationError::Value(error) => error.into(),
        OperationError::Function(error) => Error::of(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_names_and_ids() {
        let registry = Registry::built_in();
        let found = |kind, word: &[u8]| find(&registry, kind, word).map(|found| found.id);
        assert_eq!(found(Kind::Update, b"add"), Ok(3));
        assert_eq!(found(Kind::Update, b"3"), Ok(3));
        assert_eq!(found(Kind::Reduce, b"MAXIMUM"), Ok(35));
        let error = |kind, word: &[u8]| found(kind, word).expect_err("no such").text().to_owned();
        let unknown = "ERR no reduction is named 'add'; KV.FUNCTIONS lists all";
        assert_eq!(error(Kind::Reduce, b"add"), unknown);
        assert_eq!(error(Kind::Reduce, b"99"), "ERR no function has id 99");
        assert!(error(Kind::Filter, b"\xff").contains("is named '\\xff'"));
        assert!(error(Kind::Filter, &[b'x'; 100_000]).len() < 200);
    }

    #[test]
    fn operands_are_counted_and_read() {
        let registry = Registry::built_in();
        let clamp = find(&registry, Kind::Update, b"clamp").expect("built in");
        let read = |words: &[&[u8]]| operand(&clamp, Element::I16, words);
        assert_eq!(read(&[b"-1", b"2"]), Ok(vec![0xFF, 0xFF, 2, 0]));
        let error = read(&[b"1"]).expect_err("one is missing");
        assert_eq!(error.text(), "ERR clamp takes the operands (low, high), but 1 were given");
        let error = read(&[b"1", b"x"]).expect_err("no number");
        assert_eq!(error.text(), "ERR high: `x` is no number (i16)");
        assert_eq!(
            element(b"u128").expect_err("no type").text().split(';').next(),
            Some("ERR no such element")
        );
    }
}
