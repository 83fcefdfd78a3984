// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies: examples at every split, errors and limits, and random values of both versions that are
//! written and read again.

use fastrand::Rng;
use freeport_kv_protocol::resp::{
    Value, ValueError, ValueLimits, ValueProgress, ValueReader, Version, Writer,
};
use freeport_testbed::{seed, usual_or_long};

type History = (Vec<Value>, Option<ValueError>);

fn read_all<'a>(portions: impl IntoIterator<Item = &'a [u8]>, limits: ValueLimits) -> History {
    let (mut reader, mut values) = (ValueReader::new(limits), vec![]);
    let mut claimed = 0;
    for mut portion in portions {
        let (length, needed) = (portion.len(), claimed);
        while !portion.is_empty() {
            match reader.read(portion) {
                Ok(ValueProgress::Complete { value, bytes }) => {
                    assert!(length >= needed, "a lower bound of the bytes that were missing");
                    assert!(bytes > 0 && reader.is_at_start());
                    values.push(value);
                    portion = &portion[bytes..];
                    claimed = 0;
                }
                Ok(ValueProgress::Incomplete { missing }) => {
                    assert!(missing > 0 && !reader.is_at_start());
                    claimed = missing;
                    break;
                }
                Err(error) => {
                    assert_eq!(reader.read(portion), Err(error), "it stays");
                    return (values, Some(error));
                }
            }
        }
    }
    (values, None)
}

/// Reads `bytes` at once, in two portions with every split, and byte by byte.
#[track_caller]
fn check(bytes: &[u8], limits: ValueLimits, values: &[Value], error: Option<ValueError>) {
    let (expected, shown) = ((values.to_vec(), error), bytes.escape_ascii());
    for split in 0..=bytes.len() {
        let (first, second) = bytes.split_at(split);
        assert_eq!(read_all([first, second], limits), expected, "{shown} split at {split}");
    }
    assert_eq!(read_all(bytes.chunks(1), limits), expected, "{shown} byte by byte");
}

#[track_caller]
fn accepted(bytes: &str, value: Value) {
    // The next reply begins after it.
    let bytes = format!("{bytes}:7\r\n");
    let values = [value, Value::Integer(7)];
    check(bytes.as_bytes(), ValueLimits::default(), &values, None);
}

#[track_caller]
fn refused(bytes: &str, error: ValueError) {
    check(bytes.as_bytes(), ValueLimits::default(), &[], Some(error));
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn integers<const COUNT: usize>(numbers: [i64; COUNT]) -> Vec<Value> {
    numbers.map(Value::Integer).to_vec()
}

#[test]
fn values_of_version_2() {
    accepted("+OK\r\n", Value::Status("OK".into()));
    accepted("+\r\n", Value::Status(vec![]));
    accepted("-ERR no\r\n", Value::Error("ERR no".into()));
    accepted(":-9223372036854775808\r\n", Value::Integer(i64::MIN));
    accepted(":+5\r\n", Value::Integer(5));
    accepted("$0\r\n\r\n", bulk(""));
    accepted("$5\r\n\r\n$1x\r\n", bulk("\r\n$1x"));
    accepted("$-1\r\n", Value::Null);
    accepted("*-1\r\n", Value::Null);
    accepted("*0\r\n", Value::Array(vec![]));
    let inner = Value::Array(integers([1, 2]));
    let list = vec![inner, Value::Array(vec![]), Value::Null, bulk("ab")];
    accepted("*4\r\n*2\r\n:1\r\n:2\r\n*0\r\n$-1\r\n$2\r\nab\r\n", Value::Array(list));
}

#[test]
fn values_of_version_3() {
    accepted("_\r\n", Value::Null);
    accepted("#t\r\n", Value::Boolean(true));
    accepted("#f\r\n", Value::Boolean(false));
    accepted(",1.5\r\n", Value::Double(1.5));
    accepted(",-10\r\n", Value::Double(-10.0));
    accepted(",1e+19\r\n", Value::Double(1e19));
    accepted(",inf\r\n", Value::Double(f64::INFINITY));
    accepted(",-inf\r\n", Value::Double(f64::NEG_INFINITY));
    accepted("(-123456789012345678901\r\n", Value::BigNumber("-123456789012345678901".into()));
    accepted("!5\r\nERR x\r\n", Value::Error("ERR x".into()));
    accepted("=7\r\ntxt:a\r\n\r\n", Value::Verbatim { format: *b"txt", text: "a\r\n".into() });
    accepted("~2\r\n:1\r\n:1\r\n", Value::Set(integers([1, 1])));
    accepted(">1\r\n:1\r\n", Value::Push(integers([1])));
    let entry = (bulk("a"), Value::Map(vec![]));
    accepted("%1\r\n$1\r\na\r\n%0\r\n", Value::Map(vec![entry]));
    let reader = &mut ValueReader::new(ValueLimits::default());
    match reader.read(b",nan\r\n") {
        Ok(ValueProgress::Complete { value: Value::Double(number), .. }) => {
            assert!(number.is_nan());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn attributes_belong_to_the_next_value() {
    let ttl = vec![(Value::Status("ttl".into()), Value::Integer(9))];
    let of = |attributes: &[_], value| Value::Attributed {
        attributes: attributes.to_vec(),
        value: Box::new(value),
    };
    accepted("|1\r\n+ttl\r\n:9\r\n:1\r\n", of(&ttl, Value::Integer(1)));
    let list = vec![of(&ttl, Value::Array(integers([1]))), Value::Integer(2)];
    accepted("*2\r\n|1\r\n+ttl\r\n:9\r\n*1\r\n:1\r\n:2\r\n", Value::Array(list));
    let twice = of(&[], of(&ttl, Value::Push(vec![])));
    accepted("|0\r\n|1\r\n+ttl\r\n:9\r\n>0\r\n", twice);
}

#[test]
fn streamed_values_have_an_end() {
    accepted("$?\r\n;0\r\n", bulk(""));
    accepted("$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", bulk("Hello"));
    accepted("*?\r\n.\r\n", Value::Array(vec![]));
    accepted("*?\r\n:1\r\n*1\r\n:2\r\n.\r\n", {
        Value::Array(vec![Value::Integer(1), Value::Array(integers([2]))])
    });
    accepted("~?\r\n~?\r\n:1\r\n.\r\n$?\r\n;1\r\na\r\n;0\r\n.\r\n", {
        Value::Set(vec![Value::Set(integers([1])), bulk("a")])
    });
    accepted("%?\r\n+a\r\n:1\r\n.\r\n", {
        Value::Map(vec![(Value::Status("a".into()), Value::Integer(1))])
    });
}

#[test]
fn what_is_no_reply_is_refused() {
    refused("\r\n", ValueError::UnknownType(b'\r'));
    refused("PING\r\n", ValueError::UnknownType(b'P'));
    refused("+OK\n", ValueError::LineEnd);
    refused("+a\rb\r\n", ValueError::LineEnd);
    refused("$1\r\nab\n", ValueError::LineEnd);
    refused("$1\r\na\rb", ValueError::LineEnd);
    for text in ["", "a", "-2", "01", "+1", "1 ", "18446744073709551616"] {
        for kind in ["$", "*", "!", "=", "~", "%", ">", "|"] {
            refused(&format!("{kind}{text}\r\n"), ValueError::InvalidLength);
        }
    }
    for text in ["%-1", "~-1", "!-1", "!?", "=?", ">?", "|?"] {
        refused(&format!("{text}\r\n"), ValueError::InvalidLength);
    }
    for (kind, texts) in [
        (b':', &["", "a", "1.0", "++1", "+-1", "9223372036854775808"][..]),
        (b'#', &["", "true", "T", "1"]),
        (b'_', &["x"]),
        (b'.', &["x"]),
        (b',', &["", "x", "1.5x", "infinity", "NaN", "1 ", "1_0", "0x1", "e"]),
        (b'(', &["", "-", "1a", "1.0", "--1"]),
    ] {
        for text in texts {
            let line = format!("{}{text}\r\n", char::from(kind));
            refused(&line, ValueError::InvalidContent(kind));
        }
    }
    refused("=3\r\ntxt\r\n", ValueError::InvalidContent(b'='));
    refused("=5\r\ntxt-a\r\n", ValueError::InvalidContent(b'='));
}

#[test]
fn elements_have_their_places() {
    refused(".\r\n", ValueError::Misplaced(b'.'));
    refused("*1\r\n.\r\n", ValueError::Misplaced(b'.'));
    refused("%?\r\n+a\r\n.\r\n", ValueError::Misplaced(b'.'));
    refused("*?\r\n|1\r\n:1\r\n:1\r\n.\r\n", ValueError::Misplaced(b'.'));
    refused(";1\r\na\r\n", ValueError::Misplaced(b';'));
    refused("*1\r\n;0\r\n", ValueError::Misplaced(b';'));
    refused("$?\r\n:1\r\n", ValueError::Misplaced(b':'));
    refused("$?\r\n;1\r\na\r\n.\r\n", ValueError::Misplaced(b'.'));
    refused("*1\r\n>0\r\n", ValueError::Misplaced(b'>'));
}

#[test]
fn limits_are_exact() {
    let limits =
        ValueLimits { line_bytes: 6, string_bytes: 4, elements: 4, depth: 2, reply_bytes: 40 };
    let check = |bytes: &str, error| {
        let (values, found) = read_all(bytes.as_bytes().chunks(1), limits);
        assert_eq!(found, error, "{bytes:?}: {values:?}");
        assert_eq!(read_all([bytes.as_bytes()], limits), (values, found), "{bytes:?}");
    };
    check("+12345\r\n", None);
    check("+123456\r\n", Some(ValueError::LineTooLong(6)));
    check("+123456789", Some(ValueError::LineTooLong(6)));
    check("$4\r\nabcd\r\n", None);
    check("$5\r\n", Some(ValueError::StringTooLong(4)));
    check("$?\r\n;3\r\nabc\r\n;1\r\nd\r\n;0\r\n", None);
    check("$?\r\n;3\r\nabc\r\n;2\r\n", Some(ValueError::StringTooLong(4)));
    check("*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", None);
    check("*5\r\n", Some(ValueError::TooManyElements(4)));
    check("%2\r\n", None);
    check("%3\r\n", Some(ValueError::TooManyElements(4)));
    check("*?\r\n:1\r\n:2\r\n:3\r\n:4\r\n.\r\n", None);
    check("*?\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", Some(ValueError::TooManyElements(4)));
    check("*1\r\n*1\r\n:1\r\n", None);
    let of_five = ValueLimits { reply_bytes: 5, ..limits };
    let too_large = (vec![], Some(ValueError::TooLarge(5)));
    assert_eq!(read_all([&b"$0\r\n\r\n"[..]], of_five), too_large);
    check("*1\r\n*1\r\n*0\r\n", None);
    check("*1\r\n*1\r\n*1\r\n", Some(ValueError::TooDeep(2)));
    check("*1\r\n|1\r\n$?\r\n", Some(ValueError::TooDeep(2)));
    check("*4\r\n+1234\r\n+1234\r\n+1234\r\n+1234\r\n", None);
    check("*4\r\n+12345\r\n+12345\r\n+12345\r\n+12345\r\n", None);
    check(
        "*4\r\n*4\r\n$4\r\n1234\r\n$4\r\n1234\r\n$4\r\n1234\r\n:1\r\n",
        Some(ValueError::TooLarge(40)),
    );
    check("*4\r\n*4\r\n+12345\r\n+12345\r\n+12345\r\n+12345\r\n", None);
    check("*4\r\n*4\r\n+12345\r\n+12345\r\n+12345\r\n+12345\r\n:", Some(ValueError::TooLarge(40)));
}

#[test]
fn claimed_lengths_take_no_memory() {
    let mut reader = ValueReader::new(ValueLimits::default());
    let begin = b"*4294967295\r\n$536870912\r\n";
    let progress = reader.read(begin);
    assert_eq!(progress, Ok(ValueProgress::Incomplete { missing: 536_870_914 }));
    // The limits of a 64-bit peer, nested: far more than the memory of any machine.
    let limits = ValueLimits {
        string_bytes: usize::MAX,
        elements: usize::MAX,
        reply_bytes: usize::MAX,
        ..ValueLimits::default()
    };
    let mut reader = ValueReader::new(limits);
    let bytes =
        [&b"*9223372036854775807\r\n".repeat(100)[..], b"$9223372036854775807\r\na"].concat();
    let missing = i64::MAX as usize + 1;
    assert_eq!(reader.read(&bytes), Ok(ValueProgress::Incomplete { missing }));
}

/// A value of kinds that the version has.
fn value(random: &mut Rng, version: Version, depth: u32) -> Value {
    let is_three = version == Version::Three;
    let kinds = if is_three { 14 } else { 6 };
    match random.u8(..kinds) {
        0 => Value::Status(text(random, b' '..=b'~')),
        1 => Value::Error(text(random, b' '..=b'~')),
        2 => Value::Integer(random.i64(..) >> random.u8(..64)),
        3 => Value::Null,
        4 => Value::Bulk(text(random, 0..=255)),
        6 => Value::Boolean(random.bool()),
        7 => match f64::from_bits(random.u64(..)) {
            number if number.is_nan() => Value::Double(0.5),
            number => Value::Double(number),
        },
        8 => Value::BigNumber(format!("-{}{}", random.u64(1..), random.u64(..))),
        9 => Value::Verbatim { format: *b"mkd", text: text(random, 0..=255) },
        _ if depth == 0 => Value::Integer(0),
        10 => Value::Set(values(random, version, depth)),
        11 => Value::Map(entries(random, version, depth)),
        12 => Value::Attributed {
            attributes: entries(random, version, depth),
            value: Box::new(value(random, version, depth - 1)),
        },
        _ => Value::Array(values(random, version, depth)),
    }
}

fn text(random: &mut Rng, bytes: std::ops::RangeInclusive<u8>) -> Vec<u8> {
    let longest = *random.choice(&[3, 20, 20, 300]).expect("a choice");
    (0..random.usize(..longest)).map(|_| random.u8(bytes.clone())).collect()
}

fn values(random: &mut Rng, version: Version, depth: u32) -> Vec<Value> {
    (0..random.usize(..6)).map(|_| value(random, version, depth - 1)).collect()
}

fn entries(random: &mut Rng, version: Version, depth: u32) -> Vec<(Value, Value)> {
    let mut one = || value(random, version, depth - 1);
    let pairs = [(); 3].map(|()| (one(), one()));
    pairs.into_iter().take(random.usize(..=3)).collect()
}

fn write(writer: &mut Writer, value: &Value) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is ASCII");
    let each = |writer: &mut Writer, values: &[Value]| {
        values.iter().for_each(|value| write(writer, value));
    };
    let pairs = |writer: &mut Writer, entries: &[(Value, Value)]| {
        for (key, value) in entries {
            write(writer, key);
            write(writer, value);
        }
    };
    match value {
        Value::Null => writer.null(),
        Value::Status(bytes) => writer.status(&text(bytes)),
        Value::Error(bytes) => writer.error(&text(bytes)),
        Value::Integer(number) => writer.integer(*number),
        Value::Bulk(bytes) => writer.bulk(bytes),
        Value::Boolean(value) => writer.boolean(*value),
        Value::Double(number) => writer.double(*number),
        Value::BigNumber(digits) => writer.big_number(digits),
        Value::Verbatim { format, text } => writer.verbatim(*format, text),
        Value::Array(values) => {
            writer.array(values.len());
            each(writer, values);
        }
        Value::Set(values) => {
            writer.set(values.len());
            each(writer, values);
        }
        Value::Push(values) => {
            writer.push(values.len());
            each(writer, values);
        }
        Value::Map(entries) => {
            writer.map(entries.len());
            pairs(writer, entries);
        }
        Value::Attributed { attributes, value } => {
            assert!(writer.attribute(attributes.len()), "only version 3 has them");
            pairs(writer, attributes);
            write(writer, value);
        }
    }
}

#[test]
fn random_replies_are_read_as_they_were_written() {
    let first = seed();
    for seed in first..first + usual_or_long(400, 40_000) {
        let mut random = Rng::with_seed(seed);
        let version = if random.u8(..4) == 0 { Version::Two } else { Version::Three };
        let replies: Vec<Value> =
            (0..random.usize(1..6)).map(|_| value(&mut random, version, 4)).collect();
        let mut bytes = vec![];
        let writer = &mut Writer::new(&mut bytes, version);
        replies.iter().for_each(|reply| write(writer, reply));
        let longest = *random.choice(&[1, 3, 20, 500, 100_000]).expect("a choice");
        let read = read_all(bytes.chunks(longest), ValueLimits::default());
        assert_eq!(read, (replies, None), "FREEPORT_SEED={seed}");
    }
}

#[test]
fn portions_do_not_matter_for_changed_replies() {
    let first = seed();
    let mut errors = std::collections::BTreeSet::new();
    for seed in first..first + usual_or_long(3_000, 300_000) {
        let mut random = Rng::with_seed(seed);
        let mut bytes = vec![];
        write(&mut Writer::new(&mut bytes, Version::Three), &value(&mut random, Version::Three, 3));
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            let byte = *random.choice(b"\r\n*$+-:_,#(!=%~>|;.?019t").expect("bytes");
            match random.u8(..2) {
                0 => bytes[at] = byte,
                _ => bytes.insert(at, byte),
            }
        }
        let limits = ValueLimits {
            line_bytes: random.usize(10..400),
            string_bytes: random.usize(10..400),
            elements: random.usize(3..20),
            depth: random.usize(1..6),
            reply_bytes: random.usize(100..3_000),
        };
        let whole = read_all([&bytes[..]], limits);
        let parts = read_all(bytes.chunks(random.usize(1..20)), limits);
        let shown = bytes.escape_ascii();
        let text = |history: &History| format!("{history:?}");
        assert_eq!(text(&parts), text(&whole), "FREEPORT_SEED={seed}: {shown}");
        errors.insert(
            whole.1.map(|error| std::mem::discriminant(&error)).map(|it| format!("{it:?}")),
        );
    }
    assert!(errors.len() >= 9, "the samples have nearly all kinds of errors: {errors:?}");
}
