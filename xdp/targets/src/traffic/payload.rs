// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payloads of segments and datagrams, for programs that parse them.

use fastrand::Rng;

/// Labels of names in queries; `blocked` and its subdomains may be on a blocklist.
const LABELS: [&str; 6] = ["www", "Example", "org", "blocked", "a", "mail-relay-with-a-long-name"];

/// Generates a DNS query for a name; some are malformed.
pub fn dns(random: &mut Rng) -> Vec<u8> {
    let mut query = vec![0x12, 0x34, if random.u32(..10) == 0 { 0x80 } else { 1 }, 0, 0, 1];
    query.extend([0; 6]);
    for _ in 0..random.usize(..5) {
        let label = LABELS[random.usize(..LABELS.len())];
        query.push(label.len() as u8);
        query.extend(label.bytes());
    }
    if random.u32(..10) == 0 {
        query.push(0xc0);
    }
    query.extend([0, 0, 1, 0, 1]);
    query
}

/// Generates an HTTP or memcached request with an arbitrary number.
pub fn request(random: &mut Rng) -> Vec<u8> {
    let numbers =
        ["0", "17", " 512", "99999", "100001", "-3", "12x", "x", "9223372036854775808", ""];
    let number = numbers[random.usize(..numbers.len())];
    let text = match random.u32(..6) {
        0 => "GET /index.html HTTP/1.1\r\nHost: example.org\r\n\r\n".to_owned(),
        1 => format!("POST /form HTTP/1.1\r\nContent-Length: {number}\r\n\r\n"),
        2 => format!("POST /f HTTP/1.1\r\nAccept: */*\r\ncontent-LENGTH:{number}\r\n\r\n"),
        3 => format!("set key-{} 0 60 {number}\r\n", random.u32(..40)),
        4 => "delete key\r\n".to_owned(),
        _ => format!("set k {number}"),
    };
    text.into_bytes()
}

/// Generates a QUIC packet with a long or a short header, whose connection id may contain a
/// server's number.
pub fn quic(random: &mut Rng) -> Vec<u8> {
    let id = [0x40 | random.u8(..64), 0, random.u8(..12), random.u8(..), 7, 7, 7, 7];
    let id = if random.u32(..4) == 0 { [random.u8(..); 8] } else { id };
    let mut packet = if random.bool() {
        vec![0x40]
    } else {
        vec![[0xc0, 0xe0, 0xf0][random.usize(..3)], 0, 0, 0, 1, random.u8(2..9)]
    };
    packet.extend(id);
    packet.extend([0; 20]);
    packet
}

/// Returns the acknowledgement of a TCP segment in an IPv4 frame without tags and options; its
/// checksum is not updated.
pub fn reply(sent: &[u8]) -> Option<Vec<u8>> {
    let is_tcp = sent.get(12..15)? == [8, 0, 0x45] && sent.get(23)? == &6;
    let mut reply = sent.get(..54).filter(|_| is_tcp)?.to_vec();
    let mut swap = |a: usize, b: usize, length: usize| {
        for at in 0..length {
            reply.swap(a + at, b + at);
        }
    };
    swap(0, 6, 6);
    swap(26, 30, 4);
    swap(34, 36, 2);
    let next = u32::from_be_bytes(reply[38..42].try_into().ok()?).wrapping_add(1);
    reply.copy_within(42..46, 38);
    reply[42..46].copy_from_slice(&next.to_be_bytes());
    reply[47] = 0x10;
    Some(reply)
}
