// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words of the text form that the printer writes and the parser reads: names of operations, and
//! the quoting of names that are not identifiers.

use crate::{BinaryOp, CompareOp, Latency, Space, TableKind, UnaryOp};

/// Each unary operation and its word.
pub const UNARY: [(UnaryOp, &str); 9] = [
    (UnaryOp::Not, "not"),
    (UnaryOp::Neg, "neg"),
    (UnaryOp::ByteSwap, "byteswap"),
    (UnaryOp::ReduceAnd, "reduce_and"),
    (UnaryOp::ReduceOr, "reduce_or"),
    (UnaryOp::ReduceXor, "reduce_xor"),
    (UnaryOp::PopCount, "popcount"),
    (UnaryOp::LeadingZeros, "leading_zeros"),
    (UnaryOp::TrailingZeros, "trailing_zeros"),
];

/// Each binary operation and its word.
pub const BINARY: [(BinaryOp, &str); 13] = [
    (BinaryOp::Add, "add"),
    (BinaryOp::Sub, "sub"),
    (BinaryOp::Mul, "mul"),
    (BinaryOp::UDiv, "udiv"),
    (BinaryOp::SDiv, "sdiv"),
    (BinaryOp::URem, "urem"),
    (BinaryOp::SRem, "srem"),
    (BinaryOp::And, "and"),
    (BinaryOp::Or, "or"),
    (BinaryOp::Xor, "xor"),
    (BinaryOp::Shl, "shl"),
    (BinaryOp::LShr, "lshr"),
    (BinaryOp::AShr, "ashr"),
];

/// Each comparison and its word.
pub const COMPARE: [(CompareOp, &str); 6] = [
    (CompareOp::Eq, "eq"),
    (CompareOp::Ne, "ne"),
    (CompareOp::ULt, "ult"),
    (CompareOp::ULe, "ule"),
    (CompareOp::SLt, "slt"),
    (CompareOp::SLe, "sle"),
];

/// Each latency class and its word.
pub const LATENCY: [(Latency, &str); 3] =
    [(Latency::Inline, "inline"), (Latency::Element, "element"), (Latency::Async, "async")];

/// Every kind of table.
pub const TABLES: [TableKind; 4] =
    [TableKind::Hash, TableKind::LruHash, TableKind::Array, TableKind::LongestPrefix];

/// Returns the word for `key` in one of the lists above.
pub fn word<K: PartialEq>(list: &[(K, &'static str)], key: &K) -> &'static str {
    let found = list.iter().find(|(each, _)| each == key);
    found.map(|(_, word)| *word).expect("the lists hold every variant of their type")
}

/// Returns the meaning of `word` in one of the lists above.
pub fn meaning<K: Copy>(list: &[(K, &'static str)], word: &str) -> Option<K> {
    list.iter().find(|(_, each)| *each == word).map(|(key, _)| *key)
}

/// Returns the space of that name.
pub fn space(word: &str) -> Option<Space> {
    Space::ALL.into_iter().find(|space| space.name() == word)
}

/// Returns whether a name needs no quotes.
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(is_word)
}

/// Returns whether a character may be part of an identifier.
pub fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Spells a name: quoted unless it is an identifier.
pub fn name(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

/// Spells the name of a function after `@`: identifiers joined by dots need no quotes.
pub fn function_name(name: &str) -> String {
    if name.split('.').all(is_identifier) { name.to_owned() } else { quoted(name) }
}

/// Quotes a text.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}

/// Returns the default name of an element's function.
pub fn role_name(element: &str, role: &str) -> String {
    format!("{element}.{role}")
}
