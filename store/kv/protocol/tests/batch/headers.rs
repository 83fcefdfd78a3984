// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Headers.

use freeport_kv_protocol::batch::{HEADER_BYTES, Header, Refusal, write_error};

const LIMIT: u32 = 1 << 20;

fn request() -> Header {
    Header { batch: 0x0403_0201, payload_bytes: 0x0507, count: 9, ..Header::default() }
}

fn bytes(header: Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    assert_eq!(bytes.len(), header.bytes());
    bytes
}

#[test]
fn a_header_has_the_fields_of_its_page() {
    let plain = [b'K', b'V', 1, 0, 1, 2, 3, 4, 7, 5, 0, 0, 9, 0, 0, 0];
    assert_eq!(bytes(request()), plain);
    let token = Some(0x1817_1615_1413_1211);
    let mut with_token = plain.to_vec();
    with_token[3] = 1;
    with_token.extend(0x11..=0x18);
    assert_eq!(bytes(Header { token, ..request() }), with_token);
    let reply = Header { is_reply: true, first: 0x0201, ..request() };
    let mut expected = plain;
    (expected[3], expected[14], expected[15]) = (2, 1, 2);
    assert_eq!(bytes(reply), expected);
    let mut error = Vec::new();
    write_error(&mut error, 5, "no");
    assert_eq!(error, [b'K', b'V', 1, 6, 5, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'n', b'o']);
}

#[test]
fn a_header_that_is_cut_needs_more_bytes() {
    for token in [None, Some(7)] {
        let header = Header { token, ..request() };
        let bytes = bytes(header);
        for end in 0..bytes.len() {
            assert_eq!(Header::parse_request(&bytes[..end], LIMIT), Ok(None));
        }
        let more = [&bytes[..], b"payload"].concat();
        assert_eq!(Header::parse_request(&more, LIMIT), Ok(Some(header)));
        assert_eq!(header.packet_bytes(), bytes.len() + 0x0507);
    }
}

#[test]
fn a_header_that_breaks_a_rule_is_refused_with_its_batch() {
    let good = bytes(request());
    let refused = |at: usize, byte: u8, batch: u32| {
        let mut bad = good.clone();
        bad[at] = byte;
        let error = Header::parse_request(&bad, LIMIT).expect_err("it breaks a rule");
        assert_eq!(error.batch, batch);
        error.refusal
    };
    let batch = request().batch;
    assert_eq!(refused(0, b'*', 0), Refusal::Magic([b'*', b'V']));
    assert_eq!(refused(1, 0, 0), Refusal::Magic([b'K', 0]));
    assert_eq!(refused(2, 2, batch), Refusal::Version(2));
    assert_eq!(refused(14, 1, batch), Refusal::First(1));
    assert_eq!(refused(15, 1, batch), Refusal::First(256));
    assert_eq!(refused(11, 1, batch), Refusal::Payload { bytes: 0x0100_0507, limit: LIMIT });
    for flags in 2..=u8::MAX {
        assert_eq!(refused(3, flags, batch), Refusal::Flags(flags));
    }
    // A client sees at once that the server speaks another protocol, and a server that its client
    // does.
    let error = Header::parse_request(b"*1\r\n", LIMIT).expect_err("this is RESP");
    assert!(error.to_string().contains("4b 56"), "{error}");
}

#[test]
fn replies_are_no_requests() {
    let reply = Header { is_reply: true, is_error: true, first: 3, ..request() };
    assert_eq!(Header::parse_reply(&bytes(reply), LIMIT), Ok(Some(reply)));
    let error = Header::parse_reply(&bytes(request()), LIMIT).expect_err("it is a request");
    assert_eq!(error.refusal, Refusal::Flags(0));
    let error = Header::parse_reply(&bytes(Header { token: Some(1), ..reply }), LIMIT);
    assert_eq!(error.expect_err("replies have no token").refusal, Refusal::Flags(7));
    assert_eq!(HEADER_BYTES, reply.bytes());
}
