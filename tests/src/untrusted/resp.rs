// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients and replies of servers in RESP. The first byte gives the portions in which
//! the rest arrives, which must not change what is read.

use freeport_kv_protocol::resp::{ProtocolError, Read, RequestLimits, RequestReader};
use freeport_kv_protocol::resp::{ValueError, ValueLimits, ValueProgress, ValueReader};
use freeport_kv_protocol::resp::{Version, Writer};

/// Reads requests. They can be written, and are then read again.
pub fn resp_request(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let limits = RequestLimits {
        is_authenticated: first % 2 == 1,
        arguments: 100,
        argument_bytes: 20_000,
        request_bytes: 30_000,
    };
    let whole = requests(&[bytes], limits);
    let portions: Vec<&[u8]> = bytes.chunks(1 + usize::from(first)).collect();
    assert_eq!(requests(&portions, limits), whole, "portions do not matter");
    let mut written = vec![];
    for request in &whole.0 {
        let mut writer = Writer::new(&mut written, Version::Two);
        writer.array(request.len());
        request.iter().for_each(|argument| writer.bulk(argument));
    }
    let all = RequestLimits::default();
    assert_eq!(requests(&[&written], all), (whole.0, None), "what is written is read again");
}

fn requests(
    portions: &[&[u8]],
    limits: RequestLimits,
) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let (mut reader, mut requests) = (RequestReader::new(limits), vec![]);
    let (mut received, mut start) = (vec![], 0);
    for portion in portions {
        received.extend_from_slice(portion);
        loop {
            match reader.read(&received[start..]) {
                Ok(Read::Complete(request)) => {
                    start += request.bytes();
                    requests.push(request.iter().map(<[u8]>::to_vec).collect());
                }
                Ok(Read::Incomplete { missing }) => {
                    assert!((1..=20_002).contains(&missing), "limits hold");
                    break;
                }
                Err(error) => {
                    error.write_reply(&mut vec![]);
                    return (requests, Some(error));
                }
            }
        }
    }
    (requests, None)
}

/// Reads replies, and shows them as a tool would.
pub fn resp_value(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let limits = ValueLimits {
        line_bytes: 100,
        string_bytes: 1_000,
        elements: 100,
        depth: 10,
        reply_bytes: 5_000,
    };
    let portions: Vec<&[u8]> = bytes.chunks(1 + usize::from(first)).collect();
    assert_eq!(values(&portions, limits), values(&[bytes], limits), "portions do not matter");
    // These limits allow claims far above any memory.
    let most = ValueLimits { string_bytes: usize::MAX, reply_bytes: usize::MAX, ..limits };
    values(&[bytes], ValueLimits { elements: usize::MAX, ..most });
}

fn values(portions: &[&[u8]], limits: ValueLimits) -> (Vec<String>, Option<ValueError>) {
    let (mut reader, mut values) = (ValueReader::new(limits), vec![]);
    for mut portion in portions.iter().copied() {
        while !portion.is_empty() {
            match reader.read(portion) {
                Ok(ValueProgress::Complete { value, bytes }) => {
                    values.push(format!("{value:?} {value}"));
                    portion = &portion[bytes..];
                }
                Ok(ValueProgress::Incomplete { missing }) => {
                    assert!(missing > 0, "otherwise it would be complete");
                    break;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return (values, Some(error));
                }
            }
        }
    }
    (values, None)
}

/// The bytes are one reply, and nothing else.
pub(super) fn is_one_value(bytes: &[u8]) -> bool {
    let read = ValueReader::new(ValueLimits::default()).read(bytes);
    matches!(read, Ok(ValueProgress::Complete { bytes: read, .. }) if read == bytes.len())
}
