// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings, their bits, and numbers in them.

use super::server::{Reply, Server};
use super::with_server;
use fastrand::Rng;
use freeport_kv_types::bitfield::{self, FieldType, Overflow};
use freeport_kv_types::bits::{self, Bounds, Operation, Unit};
use freeport_kv_types::text::{self, TextError};
use freeport_kv_types::{Extended, Limits, lcs};

fn text_command(server: &mut Server, random: &mut Rng, limits: &Limits, bytes: &mut Vec<u8>) {
    let index = |random: &mut Rng| random.i64(-40..40);
    let (start, end) = (index(random), index(random));
    let (first, last) = (start.to_string(), end.to_string());
    let (name, unit) = if random.bool() { ("BIT", Unit::Bit) } else { ("BYTE", Unit::Byte) };
    let bit = random.bool();
    let digit = u8::from(bit).to_string();
    let (reply, expected): (Reply, Reply) = match random.u32(0..9) {
        0 => {
            let suffix = vec![random.u8(..); random.usize(0..4)];
            let reply = server.call(&[&"APPEND", &"t", &suffix]);
            (reply, text::append(limits, bytes, &suffix).map(|()| bytes.len()).into())
        }
        1 => {
            let new = vec![random.u8(..); random.usize(0..4)];
            let reply = server.call(&[&"SETRANGE", &"t", &first, &new]);
            (reply, text::set_range(limits, bytes, start, &new).map(|()| bytes.len()).into())
        }
        2 => (
            server.call(&[&"GETRANGE", &"t", &first, &last]),
            text::range(bytes, start, end).to_vec().into(),
        ),
        3 => {
            let offset = random.u64(0..400);
            let reply = server.call(&[&"SETBIT", &"t", &offset.to_string(), &digit]);
            (reply, bits::set(limits, bytes, offset, bit).into())
        }
        4 => {
            let offset = random.u64(0..400);
            let reply = server.call(&[&"GETBIT", &"t", &offset.to_string()]);
            (reply, bits::get(bytes, offset).into())
        }
        5 => (
            server.call(&[&"BITCOUNT", &"t", &first, &last, &name]),
            bits::count_range(bytes, Bounds { start, end, unit }).into(),
        ),
        6 => {
            let found = bits::position(bytes, bit, start, Some(end), unit);
            let reply = server.call(&[&"BITPOS", &"t", &digit, &first, &last, &name]);
            (reply, found.map_or(-1, |at| at as i64).into())
        }
        7 => {
            let found = bits::position(bytes, bit, start, None, Unit::Byte);
            let reply = server.call(&[&"BITPOS", &"t", &digit, &first]);
            (reply, found.map_or(-1, |at| at as i64).into())
        }
        _ => return field_command(server, random, limits, bytes),
    };
    assert_eq!(reply, expected, "{start} {end} {name} {bit}");
}

fn field_command(server: &mut Server, random: &mut Rng, limits: &Limits, bytes: &mut Vec<u8>) {
    let kinds = ["u1", "i1", "u7", "i8", "u16", "i33", "u63", "i64", "i0", "u64"];
    let kind = kinds[random.usize(0..kinds.len())];
    let offset = random.u64(0..300);
    let value = random.i64(..) >> random.u32(0..64);
    let overflows =
        [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let (name, overflow) = overflows[random.usize(0..3)];
    let command = ["SET", "INCRBY"][random.usize(0..2)];
    let (text, number) = (offset.to_string(), value.to_string());
    let reply =
        server.call(&[&"BITFIELD", &"t", &"OVERFLOW", &name, &command, &kind, &text, &number]);
    let parsed = FieldType::parse(kind.as_bytes());
    let expected: Reply = match parsed {
        Err(error) => Err::<bool, _>(error).into(),
        Ok(kind) => {
            let call = if command == "SET" { bitfield::set } else { bitfield::increment };
            let result = call(limits, bytes, kind, offset, value, overflow);
            result.map(|result| vec![result]).into()
        }
    };
    assert_eq!(reply, expected, "{command} {kind} {offset} {value} {name}");
    if let Ok(parsed) = parsed {
        let reply = server.call(&[&"BITFIELD", &"t", &"GET", &kind, &text]);
        assert_eq!(reply, vec![bitfield::get(bytes, parsed, offset)].into());
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn strings() {
    with_server(40, |server, random| {
        let limits = Limits::default();
        let mut bytes = b"text".to_vec();
        server.call(&[&"SET", &"t", &bytes]);
        for _ in 0..500 {
            text_command(server, random, &limits, &mut bytes);
            let reply = server.call(&[&"GET", &"t"]);
            assert_eq!(reply, bytes.clone().into());
            if bytes.len() > 60 {
                bytes.truncate(random.usize(1..10));
                server.call(&[&"SET", &"t", &bytes]);
            }
        }
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn operations_on_several_strings() {
    with_server(200, |server, random| {
        let strings: Vec<Vec<u8>> = (0..random.usize(1..5))
            .map(|_| (0..random.usize(0..50)).map(|_| random.u8(..)).collect())
            .collect();
        for (at, string) in strings.iter().enumerate() {
            server.call(&[&"SET", &format!("k{at}"), string]);
        }
        let keys: Vec<String> = (0..strings.len()).map(|at| format!("k{at}")).collect();
        let all = [
            ("AND", Operation::And),
            ("OR", Operation::Or),
            ("XOR", Operation::Xor),
            ("NOT", Operation::Not),
        ];
        for (name, operation) in all {
            let count = if operation == Operation::Not { 1 } else { strings.len() };
            let mut command: Vec<&dyn AsRef<[u8]>> = vec![&"BITOP", &name, &"out"];
            command.extend(keys[..count].iter().map(|key| key as &dyn AsRef<[u8]>));
            let inputs: Vec<&[u8]> = strings[..count].iter().map(Vec::as_slice).collect();
            let result = bits::operate(operation, &inputs);
            assert_eq!(server.call(&command), result.len().into(), "{name}");
            let stored = (!result.is_empty()).then_some(result);
            assert_eq!(server.call(&[&"GET", &"out"]), stored.into(), "{name}");
        }
    });
}

/// Returns a text that is, or nearly is, a number.
fn number(random: &mut Rng) -> String {
    match random.u32(0..10) {
        0 => format!("{}", random.f64()),
        1 => format!("{:e}", f64::from_bits(random.u64(..))),
        2 => format!("{}e{}", random.u64(..), random.i32(-40..40)),
        3 => format!("-{}.{}", random.u32(..), random.u64(..)),
        4 => format!("{}e{}", random.u64(..), random.i32(-5100..5100)),
        5 => format!("0x{:x}.{:x}p{}", random.u64(..), random.u32(..), random.i32(-100..100)),
        6 => ["inf", "-inf", "nan", "", " 1", "1 ", "+5", ".5", "5.", "1e", "0x"]
            [random.usize(0..11)]
        .into(),
        7 => format!("{}{}", random.u128(..), random.u128(..)),
        _ => random.i64(..).wrapping_shr(random.u32(0..64)).to_string(),
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn numbers() {
    with_server(3000, |server, random| {
        let old = number(random);
        let by = number(random);
        server.call(&[&"SET", &"n", &old]);
        let reply = server.call(&[&"INCRBYFLOAT", &"n", &by]);
        let expected: Reply = match Extended::parse(old.as_bytes()) {
            None => Err::<bool, _>(TextError::NotAFloat).into(),
            Some(_) => match Extended::parse(by.as_bytes()) {
                None => Err::<bool, _>(TextError::NotAFloat).into(),
                Some(increment) => text::increment_float(Some(old.as_bytes()), increment).into(),
            },
        };
        assert_eq!(reply, expected, "{old} + {by}");
        let by = random.i64(..) >> random.u32(0..64);
        server.call(&[&"SET", &"n", &old]);
        let reply = server.call(&[&"INCRBY", &"n", &by.to_string()]);
        assert_eq!(reply, text::increment(Some(old.as_bytes()), by).into(), "{old} + {by}");
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn subsequences() {
    with_server(300, |server, random| {
        let limits = Limits::default();
        let letters = random.u8(1..6);
        let mut string = || {
            let length = random.usize(0..150);
            (0..length).map(|_| b'a' + random.u8(0..letters)).collect::<Vec<u8>>()
        };
        let (first, second) = (string(), string());
        server.call(&[&"MSET", &"{a}1", &first, &"{a}2", &second]);
        let found = lcs::longest(&limits, &first, &second, 2).expect("short");
        assert_eq!(server.call(&[&"LCS", &"{a}1", &"{a}2"]), found.text.clone().into());
        let length = lcs::length(&limits, &first, &second);
        assert_eq!(server.call(&[&"LCS", &"{a}1", &"{a}2", &"LEN"]), length.into());
        let command: [&dyn AsRef<[u8]>; 7] =
            [&"LCS", &"{a}1", &"{a}2", &"IDX", &"MINMATCHLEN", &"2", &"WITHMATCHLEN"];
        let range = |range: std::ops::Range<usize>| vec![range.start, range.end - 1].into();
        let matches = found.matches.into_iter().map(|found| {
            let length = found.first.len();
            Reply::Array(vec![range(found.first), range(found.second), length.into()])
        });
        let name = |name: &str| Reply::Text(name.as_bytes().to_vec());
        let expected = [
            name("matches"),
            Reply::Array(matches.collect()),
            name("len"),
            found.text.len().into(),
        ];
        assert_eq!(server.call(&command), Reply::Array(expected.to_vec()));
    });
}
