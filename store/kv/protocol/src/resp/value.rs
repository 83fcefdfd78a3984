// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reply as a value that owns its bytes, and its form for people, which is that of `redis-cli` on
//! a terminal:
//!
//! ```text
//! 1) "name"
//! 2) 1) (integer) 7
//!    2) (nil)
//! ```

use super::number;
use std::fmt::{self, Display, Formatter, Write};

/// A reply. Strings are bytes, which need not be UTF-8.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The absence of a value or an array.
    Null,
    /// A status, such as `OK`.
    Status(Vec<u8>),
    /// An error, whose first word is its code. It may have been a line or a string.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A string, in one piece or streamed.
    Bulk(Vec<u8>),
    /// A boolean.
    Boolean(bool),
    /// A double, which may be infinite or not a number.
    Double(f64),
    /// An integer of any size, as its digits with an optional sign.
    BigNumber(String),
    /// Text in a format.
    Verbatim {
        /// The format, such as `txt`.
        format: [u8; 3],
        /// The text.
        text: Vec<u8>,
    },
    /// Values in order.
    Array(Vec<Value>),
    /// Keys with their values, in the order in which they arrived. Keys may be repeated.
    Map(Vec<(Value, Value)>),
    /// Values without an order. They may be repeated.
    Set(Vec<Value>),
    /// Data that is no reply to a request, such as a published message.
    Push(Vec<Value>),
    /// A value with attributes, which a client may ignore.
    Attributed {
        /// Keys of attributes with their values.
        attributes: Vec<(Value, Value)>,
        /// The value.
        value: Box<Value>,
    },
}

impl Display for Value {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write_value(formatter, self, 0)
    }
}

/// Writes a value without a line end. `indent` is the column of its further lines.
fn write_value(output: &mut Formatter<'_>, value: &Value, indent: usize) -> fmt::Result {
    match value {
        Value::Null => output.write_str("(nil)"),
        Value::Status(text) => write_text(output, text),
        Value::Error(text) => {
            output.write_str("(error) ")?;
            write_text(output, text)
        }
        Value::Integer(number) => write!(output, "(integer) {number}"),
        Value::Bulk(bytes) => write_quoted(output, bytes),
        Value::Boolean(value) => write!(output, "({value})"),
        Value::Double(number) => {
            output.write_str("(double) ")?;
            write_text(output, number::double(*number).as_bytes())
        }
        Value::BigNumber(digits) => write!(output, "(big number) {digits}"),
        Value::Verbatim { text, .. } => write_text(output, text),
        Value::Array(values) => write_list(output, values, ')', "array", indent),
        Value::Set(values) => write_list(output, values, '~', "set", indent),
        Value::Push(values) => write_list(output, values, '>', "push", indent),
        Value::Map(entries) => write_entries(output, entries, '#', "hash", indent),
        Value::Attributed { attributes, value } => {
            write_entries(output, attributes, '|', "attribute", indent)?;
            write!(output, "\n{:indent$}", "")?;
            write_value(output, value, indent)
        }
    }
}

fn write_list(
    output: &mut Formatter<'_>,
    values: &[Value],
    mark: char,
    kind: &str,
    indent: usize,
) -> fmt::Result {
    if values.is_empty() {
        return write!(output, "(empty {kind})");
    }
    let width = digits(values.len());
    for (place, value) in values.iter().enumerate() {
        write_mark(output, place, width, mark, indent)?;
        write_value(output, value, indent + width + 2)?;
    }
    Ok(())
}

fn write_entries(
    output: &mut Formatter<'_>,
    entries: &[(Value, Value)],
    mark: char,
    kind: &str,
    indent: usize,
) -> fmt::Result {
    if entries.is_empty() {
        return write!(output, "(empty {kind})");
    }
    let width = digits(entries.len());
    for (place, (key, value)) in entries.iter().enumerate() {
        write_mark(output, place, width, mark, indent)?;
        write_value(output, key, indent + width + 2)?;
        output.write_str(" => ")?;
        // Its lines are aligned with the key, not with the arrow.
        if has_lines(value) {
            write!(output, "\n{:1$}", "", indent + width + 2)?;
        }
        write_value(output, value, indent + width + 2)?;
    }
    Ok(())
}

/// Begins the line of an element. The first is on the line of its aggregate.
fn write_mark(
    output: &mut Formatter<'_>,
    place: usize,
    width: usize,
    mark: char,
    indent: usize,
) -> fmt::Result {
    if place > 0 {
        write!(output, "\n{:indent$}", "")?;
    }
    write!(output, "{:>width$}{mark} ", place + 1)
}

/// The value has more than one line.
fn has_lines(value: &Value) -> bool {
    match value {
        Value::Array(values) | Value::Set(values) | Value::Push(values) => match &values[..] {
            [] => false,
            [value] => has_lines(value),
            _ => true,
        },
        Value::Map(entries) => match &entries[..] {
            [] => false,
            [(key, value)] => has_lines(key) || has_lines(value),
            _ => true,
        },
        Value::Verbatim { text, .. } => text.contains(&b'\n'),
        Value::Attributed { .. } => true,
        _ => false,
    }
}

fn digits(count: usize) -> usize {
    count.ilog10() as usize + 1
}

fn write_text(output: &mut Formatter<'_>, text: &[u8]) -> fmt::Result {
    text.utf8_chunks().try_for_each(|chunk| {
        output.write_str(chunk.valid())?;
        chunk.invalid().iter().try_for_each(|byte| write!(output, "\\x{byte:02x}"))
    })
}

/// Writes bytes so that an inline request with them has the same argument.
fn write_quoted(output: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    output.write_char('"')?;
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => write!(output, "\\{}", char::from(byte))?,
            b'\n' => output.write_str("\\n")?,
            b'\r' => output.write_str("\\r")?,
            b'\t' => output.write_str("\\t")?,
            0x07 => output.write_str("\\a")?,
            0x08 => output.write_str("\\b")?,
            b' '..=b'~' => output.write_char(char::from(byte))?,
            _ => write!(output, "\\x{byte:02x}")?,
        }
    }
    output.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    #[track_caller]
    fn check(value: Value, expected: &str) {
        assert_eq!(value.to_string(), expected);
    }

    #[test]
    fn values_without_elements_are_one_line() {
        check(Value::Null, "(nil)");
        check(Value::Status("OK".into()), "OK");
        check(Value::Error("ERR no".into()), "(error) ERR no");
        check(Value::Integer(-7), "(integer) -7");
        check(
            Value::Bulk(b"a \"b\"\\\r\n\t\x07\x08\0\xff".to_vec()),
            r#""a \"b\"\\\r\n\t\a\b\x00\xff""#,
        );
        check(Value::Boolean(true), "(true)");
        check(Value::Double(1.5e300), "(double) 1.5e+300");
        check(Value::BigNumber("-12".into()), "(big number) -12");
        check(Value::Verbatim { format: *b"txt", text: b"a\nb\xff".to_vec() }, "a\nb\\xff");
        check(Value::Array(vec![]), "(empty array)");
        check(Value::Set(vec![]), "(empty set)");
        check(Value::Push(vec![]), "(empty push)");
        check(Value::Map(vec![]), "(empty hash)");
    }

    #[test]
    fn elements_are_numbered_and_aligned() {
        let inner = Value::Array(vec![Value::Integer(7), Value::Null]);
        let nested = Value::Array(vec![bulk("name"), inner.clone()]);
        check(nested, "1) \"name\"\n2) 1) (integer) 7\n   2) (nil)");
        let mut ten = vec![Value::Null; 9];
        ten.push(inner);
        let expected: Vec<String> = (1..10).map(|place| format!(" {place}~ (nil)")).collect();
        let expected = format!("{}\n10~ 1) (integer) 7\n    2) (nil)", expected.join("\n"));
        check(Value::Set(ten), &expected);
    }

    #[test]
    fn entries_have_arrows() {
        let inner = Value::Push(vec![bulk("x"), bulk("y")]);
        let map = Value::Map(vec![(bulk("a"), Value::Integer(1)), (bulk("b"), inner)]);
        check(map.clone(), "1# \"a\" => (integer) 1\n2# \"b\" => \n   1> \"x\"\n   2> \"y\"");
        let one = Value::Array(vec![map.clone()]);
        let expected = "1# (nil) => \n   1) 1# \"a\" => (integer) 1\n      2# \"b\" => \n         \
                        1> \"x\"\n         2> \"y\"";
        check(Value::Map(vec![(Value::Null, one)]), expected);
        let one = Value::Map(vec![(bulk("c"), Value::Set(vec![Value::Null]))]);
        check(Value::Map(vec![(bulk("a"), one)]), "1# \"a\" => 1# \"c\" => 1~ (nil)");
        let key = Value::Array(vec![Value::Null, Value::Null]);
        check(Value::Map(vec![(key, Value::Null)]), "1# 1) (nil)\n   2) (nil) => (nil)");
        let attributes = vec![(bulk("ttl"), Value::Integer(9))];
        let value = Box::new(bulk("v"));
        let attributed = Value::Attributed { attributes, value };
        check(attributed.clone(), "1| \"ttl\" => (integer) 9\n\"v\"");
        let expected = "1) 1| \"ttl\" => (integer) 9\n   \"v\"";
        check(Value::Array(vec![attributed]), expected);
    }
}
