// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests: examples at every split, errors and limits, random pipelines, and random changes
//! compared with the slow reader.

use super::reference;
use fastrand::Rng;
use freeport_kv_protocol::resp::{ProtocolError, Read, RequestLimits, RequestReader};
use freeport_kv_protocol::resp::{Version, Writer};
use freeport_testbed::{seed, usual_or_long};

/// Requests in order, and the error that ended them.
pub type History = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Reads portions as a server does: it keeps bytes that are no complete request.
pub fn read_all<'a>(
    portions: impl IntoIterator<Item = &'a [u8]>,
    limits: RequestLimits,
) -> History {
    let (mut reader, mut buffer, mut requests) = (RequestReader::new(limits), vec![], vec![]);
    for portion in portions {
        buffer.extend_from_slice(portion);
        let mut start = 0;
        loop {
            match reader.read(&buffer[start..]) {
                Ok(Read::Complete(request)) => {
                    requests.push(request.iter().map(<[u8]>::to_vec).collect());
                    start += request.bytes();
                }
                Ok(Read::Incomplete { missing }) => {
                    assert!(missing > 0);
                    break;
                }
                Err(error) => {
                    assert_eq!(reader.read(&buffer[start..]).err(), Some(error), "it stays");
                    return (requests, Some(error));
                }
            }
        }
        buffer.drain(..start);
    }
    (requests, None)
}

fn expected(mut bytes: &[u8], limits: RequestLimits) -> History {
    let mut requests = vec![];
    loop {
        match reference::read(bytes, limits) {
            Ok(None) => return (requests, None),
            Err(error) => return (requests, Some(error)),
            Ok(Some((request, taken))) => {
                requests.push(request);
                bytes = &bytes[taken..];
            }
        }
    }
}

fn unauthenticated() -> RequestLimits {
    RequestLimits { is_authenticated: false, ..RequestLimits::default() }
}

/// Reads `bytes` at once, in two portions with every split, and byte by byte.
#[track_caller]
fn check(bytes: &[u8], limits: RequestLimits, requests: &[&[&[u8]]], error: Option<ProtocolError>) {
    let requests = requests.iter().map(|it| it.iter().map(|it| it.to_vec()).collect()).collect();
    let expected: History = (requests, error);
    let shown = bytes.escape_ascii();
    assert_eq!(self::expected(bytes, limits), expected, "the slow reader: {shown}");
    for split in 0..=bytes.len() {
        let (first, second) = bytes.split_at(split);
        assert_eq!(read_all([first, second], limits), expected, "{shown} split at {split}");
    }
    assert_eq!(read_all(bytes.chunks(1), limits), expected, "{shown} byte by byte");
}

#[track_caller]
fn accepted(bytes: &[u8], requests: &[&[&[u8]]]) {
    check(bytes, RequestLimits::default(), requests, None);
}

#[track_caller]
fn refused(bytes: &[u8], error: ProtocolError) {
    check(bytes, RequestLimits::default(), &[], Some(error));
}

#[test]
fn requests_are_arrays_of_strings() {
    accepted(b"*1\r\n$4\r\nPING\r\n", &[&[b"PING"]]);
    accepted(b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$1\r\nx\r\n", &[&[b"GET", b""], &[b"x"]]);
    accepted(b"*1\r\n$6\r\n\r\n$1\r\n\r\n", &[&[b"\r\n$1\r\n"]]);
    accepted(b"*1\r\n$12\r\n\0\xff0123456789\r\n", &[&[b"\0\xff0123456789"]]);
}

#[test]
fn requests_without_arguments_are_passed() {
    accepted(b"*0\r\n*-1\r\n*-9223372036854775808\r\nPING\r\n", &[&[], &[], &[], &[b"PING"]]);
    accepted(b"\r\n\n  \r\n\t\nPING\n", &[&[], &[], &[], &[], &[b"PING"]]);
}

#[test]
fn inline_requests_have_words() {
    accepted(b"PING\n", &[&[b"PING"]]);
    accepted(
        b"SET key \"a\\x41 b\"\r\nget 'k\\'' \r\n",
        &[&[b"SET", b"key", b"aA b"], &[b"get", b"k'"]],
    );
    accepted(b"$3\r\n+OK\r\n", &[&[b"$3"], &[b"+OK"]]);
    accepted(b"a\rb\r\r\n", &[&[b"a", b"b"]]);
    refused(b"get \"a\r\n", ProtocolError::UnbalancedQuotes);
    refused(b"get 'a'b\n", ProtocolError::UnbalancedQuotes);
}

#[test]
fn any_byte_follows_a_carriage_return_and_any_two_a_string() {
    accepted(b"*1\rx$1\r*aXYPING\r\n", &[&[b"a"], &[b"PING"]]);
    accepted(b"*1\r\r$1\r\ra\r\r", &[&[b"a"]]);
}

#[test]
fn a_line_with_a_zero_byte_has_no_end() {
    accepted(b"PING\0\r\nPING\r\n", &[]);
    accepted(b"*1\0\r\n", &[]);
    accepted(b"*1\r\n$1\0\r\na\r\n", &[]);
    accepted(b"*1\r\n\0", &[]);
    let long = [&b"PI\0NG\r\n"[..], &[b'x'; 65_530]].concat();
    let too_big = Some(ProtocolError::InlineTooBig);
    assert_eq!(read_all(long.chunks(1_000), RequestLimits::default()), (vec![], too_big));
}

#[test]
fn malformed_counts_and_lengths_are_refused() {
    for text in [
        "",
        "a",
        "1a",
        "+1",
        " 1",
        "01",
        "-0",
        "-",
        "1 ",
        "1\n",
        "1048577",
        "2147483648",
        "99999999999999999999",
        "9223372036854775808",
    ] {
        refused(format!("*{text}\r\n").as_bytes(), ProtocolError::InvalidCount);
    }
    for text in [
        "",
        "a",
        "1a",
        "+1",
        "01",
        "-0",
        "-1",
        "-",
        "1\n",
        "536870913",
        "4294967296",
        "99999999999999999999",
        "9223372036854775807",
    ] {
        refused(format!("*1\r\n${text}\r\n").as_bytes(), ProtocolError::InvalidLength);
    }
    for got in *b"x*:\r\n+3\xff" {
        let bytes = [&b"*1\r\n"[..], &[got], b"3\r\n"].concat();
        refused(&bytes, ProtocolError::ExpectedBulk { got });
    }
    refused(b"*2\r\n$1\r\nab\r\n\r\n", ProtocolError::ExpectedBulk { got: b'\n' });
    // Nothing is known before the carriage return.
    accepted(b"*1\r\nx", &[]);
}

#[test]
fn a_client_that_has_not_authenticated_sends_little() {
    let count = ProtocolError::UnauthenticatedCount;
    check(b"*11\r\n", unauthenticated(), &[], Some(count));
    let length = ProtocolError::UnauthenticatedLength;
    check(b"*10\r\n$16385\r\n", unauthenticated(), &[], Some(length));
    check(b"*10\r\n$16384\r\n", unauthenticated(), &[], None);
    // Values that are never valid come first.
    check(b"*1048577\r\n", unauthenticated(), &[], Some(ProtocolError::InvalidCount));
    check(b"*1\r\n$536870913\r\n", unauthenticated(), &[], Some(ProtocolError::InvalidLength));

    let mut reader = RequestReader::new(unauthenticated());
    assert!(matches!(reader.read(b"*2\r\n"), Ok(Read::Incomplete { .. })));
    reader.set_limits(RequestLimits::default());
    let read = reader.read(b"*2\r\n$20000\r\n");
    assert!(matches!(read, Ok(Read::Incomplete { missing: 20_002 })), "{read:?}");
}

#[test]
fn limits_are_exact() {
    let limits = RequestLimits { arguments: 2, argument_bytes: 3, ..RequestLimits::default() };
    check(b"*2\r\n$3\r\nabc\r\n$0\r\n\r\n", limits, &[&[b"abc", b""]], None);
    check(b"*3\r\n", limits, &[], Some(ProtocolError::InvalidCount));
    check(b"*1\r\n$4\r\n", limits, &[], Some(ProtocolError::InvalidLength));
    let limits = RequestLimits { request_bytes: 20, ..RequestLimits::default() };
    check(b"*2\r\n$1\r\na\r\n$3\r\nabc\r\n", limits, &[&[b"a", b"abc"]], None);
    check(b"*2\r\n$1\r\na\r\n$4\r\n", limits, &[], Some(ProtocolError::RequestTooLarge));
    check(b"*1\r\n$10\r\n0123456789\r\n", limits, &[], Some(ProtocolError::RequestTooLarge));
    check(b"*1\r\n$9\r\n012345678\r\n", limits, &[&[b"012345678"]], None);
    check(b"*2\r\n$7\r\n0123456\r\n$0\r\n\r\n", limits, &[], Some(ProtocolError::RequestTooLarge));
    let all = RequestLimits { argument_bytes: usize::MAX, request_bytes: usize::MAX, ..limits };
    check(b"*1\r\n$9223372036854775807\r\n", all, &[], None);
}

#[test]
fn a_line_has_at_most_64_kib() {
    let limits = RequestLimits::default();
    for (begin, error) in [
        (&b"a"[..], ProtocolError::InlineTooBig),
        (b"*", ProtocolError::CountTooBig),
        (b"*1\r\n$", ProtocolError::LengthTooBig),
    ] {
        let line = if begin.len() > 1 { begin.len() - 1 } else { 0 };
        let mut bytes = begin.to_vec();
        bytes.resize(line + 65_536, b'1');
        assert_eq!(read_all([&bytes[..]], limits), (vec![], None));
        let too_long = [&bytes[..], b"1\r\n"].concat();
        for portion in [1, 1_000, 65_536, too_long.len()] {
            assert_eq!(read_all(too_long.chunks(portion), limits), (vec![], Some(error)));
        }
        // The end may be the next byte, however much follows it.
        let end = if error == ProtocolError::InlineTooBig { "\n" } else { "\r\n" };
        let longest = [&bytes[..], end.as_bytes(), &b" \n".repeat(35_000)].concat();
        let result = read_all(longest.chunks(10_000), limits);
        assert_ne!(result.1, Some(error));
        assert_eq!(result, expected(&longest, limits));
    }
}

/// Arguments, mostly short and plain.
fn arguments(random: &mut Rng) -> Vec<Vec<u8>> {
    let most = if random.u8(..20) == 0 { 300 } else { 5 };
    let count = random.usize(1..=most);
    let argument = |random: &mut Rng| {
        let most = if random.u8(..30) == 0 { 5_000 } else { 12 };
        let length = random.usize(0..=most);
        let plain = random.bool();
        let byte = |random: &mut Rng| match plain {
            true => random.u8(b'!'..=b'~'),
            false => *random.choice(b"\r\n\"'\\ x41$*\0\xff\t\x08\x07\x0b").expect("bytes"),
        };
        (0..length).map(|_| byte(random)).collect()
    };
    (0..count).map(|_| argument(random)).collect()
}

fn write(arguments: &[Vec<u8>], random: &mut Rng, output: &mut Vec<u8>) {
    if random.u8(..4) > 0 || arguments.iter().map(Vec::len).sum::<usize>() > 10_000 {
        let mut writer = Writer::new(output, Version::Two);
        writer.array(arguments.len());
        return arguments.iter().for_each(|argument| writer.bulk(argument));
    }
    for argument in arguments {
        let is_plain = !argument.is_empty()
            && argument.iter().all(|it| it.is_ascii_graphic() && !b"\"'*".contains(it));
        if is_plain {
            output.extend_from_slice(argument);
        } else {
            output.push(b'"');
            for &byte in argument {
                match byte {
                    b'"' | b'\\' => output.extend([b'\\', byte]),
                    b'!'..=b'~' => output.push(byte),
                    _ => output.extend(format!("\\x{byte:02x}").bytes()),
                }
            }
            output.push(b'"');
        }
        output.push(b' ');
    }
    output.extend_from_slice(if random.bool() { b"\n" } else { b"\r\n" });
}

/// Cuts bytes into portions.
fn cut<'a>(mut bytes: &'a [u8], random: &mut Rng) -> Vec<&'a [u8]> {
    let longest = *random.choice(&[1, 3, 20, 500, 100_000]).expect("a choice");
    let mut portions = vec![];
    while !bytes.is_empty() {
        let (portion, rest) = bytes.split_at(random.usize(1..=longest.min(bytes.len())));
        portions.push(portion);
        bytes = rest;
    }
    portions
}

#[test]
fn random_pipelines_are_read_as_they_were_written() {
    let first = seed();
    for seed in first..first + usual_or_long(150, 20_000) {
        let mut random = Rng::with_seed(seed);
        let requests: Vec<_> = (0..random.usize(1..20)).map(|_| arguments(&mut random)).collect();
        let mut bytes = vec![];
        requests.iter().for_each(|request| write(request, &mut random, &mut bytes));
        let read = read_all(cut(&bytes, &mut random), RequestLimits::default());
        assert_eq!(read, (requests, None), "FREEPORT_SEED={seed}");
    }
}

#[test]
fn changed_pipelines_are_read_as_the_slow_reader_does() {
    let first = seed();
    let mut errors = std::collections::BTreeSet::new();
    for seed in first..first + usual_or_long(3_000, 300_000) {
        let mut random = Rng::with_seed(seed);
        let mut bytes = vec![];
        for _ in 0..random.usize(1..4) {
            let mut arguments = arguments(&mut random);
            arguments.truncate(12);
            arguments.iter_mut().for_each(|argument| argument.truncate(30));
            write(&arguments, &mut random, &mut bytes);
        }
        for _ in 0..random.usize(0..5) {
            let at = random.usize(..bytes.len());
            let byte = *random.choice(b"\r\n*$0129-+\"'\\\0 x").expect("bytes");
            match random.u8(..3) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ if bytes.len() > 1 => _ = bytes.remove(at),
                _ => {}
            }
        }
        let limits = RequestLimits {
            is_authenticated: random.bool(),
            arguments: random.usize(1..20),
            argument_bytes: random.usize(5..40),
            request_bytes: random.usize(50..1_000),
        };
        let read = read_all(cut(&bytes, &mut random), limits);
        let shown = bytes.escape_ascii();
        assert_eq!(read, expected(&bytes, limits), "FREEPORT_SEED={seed}: {shown}");
        errors.insert(read.1.map(|error| error.to_string()));
    }
    assert!(errors.len() >= 7, "the samples have all kinds of errors: {errors:?}");
}
