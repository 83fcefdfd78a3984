// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of the batched protocol (docs/protocols/kv-batch.md): requests that are made in advance,
//! and the check of their replies.

use super::script::Replies;
use super::wire::Kind;
use anyhow::{Context, Result, bail, ensure};
use freeport_kv_functions::{Element, Update};
use freeport_kv_protocol::batch::{
    HEADER_BYTES, Header, Opcode, Operation, PacketLimits, PacketWriter, ReplyReader, Status,
};

/// Number of the first packet. memcached takes it for the end of a line, and replies with an error
/// at once instead of waiting for more.
const FIRST_NUMBER: u32 = u32::from_le_bytes(*b"\r\n\r\n");
/// Bytes of a reply beside its value: status and length.
const REPLY_BYTES: usize = 5;
/// Room for the text of an error, and for a datagram of usual length.
const ERROR_BYTES: usize = 2 << 10;
/// Longest reply that is accepted.
const PAYLOAD_MAX: u32 = 1 << 30;
const ONE: [u8; 8] = 1_u64.to_le_bytes();

/// The number of a packet in the protocol, from its place in the script.
pub fn number(packet: usize) -> u32 {
    FIRST_NUMBER.wrapping_add(packet as u32)
}

/// Bytes of a reply to `count` operations at most, or of an error of usual length.
pub fn reply_bytes(count: usize, value_bytes: usize) -> usize {
    HEADER_BYTES + (count * (REPLY_BYTES + value_bytes)).max(ERROR_BYTES)
}

/// Writes packets of a fixed number of operations.
pub struct Packer {
    operations: usize,
    packets: usize,
    open: Option<PacketWriter>,
}

impl Packer {
    /// Packets of this number of operations.
    pub fn new(operations: usize) -> Self {
        Self { operations, packets: 0, open: None }
    }

    /// Appends an operation; the packet before it is finished when it is full.
    pub fn push(&mut self, kind: Kind, key: &[u8], value: &[u8], bytes: &mut Vec<u8>) {
        let operation = match kind {
            Kind::Read => Operation::get(key),
            Kind::Write => Operation::put(key, value),
            Kind::Add => {
                let (add, element) = (Update::Add.id(), Element::U64.code());
                Operation::call(Opcode::Update, key, add, element, &ONE)
            }
        };
        if self.open.as_ref().is_some_and(|open| usize::from(open.count()) == self.operations) {
            self.finish(bytes);
        }
        let number = number(self.packets);
        let limits = PacketLimits { bytes: usize::MAX, operations: u16::MAX };
        let open =
            self.open.get_or_insert_with(|| PacketWriter::begin(bytes, limits, number, None));
        open.push(bytes, &operation).expect("there is no limit but the number of operations");
    }

    /// Finishes the last packet.
    pub fn finish(&mut self, bytes: &mut [u8]) {
        if let Some(open) = self.open.take() {
            open.finish(bytes);
            self.packets += 1;
        }
    }
}

/// A packet whose replies are awaited.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Number of the packet in the protocol.
    pub number: u32,
    /// Number of the first reply that is missing.
    pub first: usize,
    /// Replies that are missing.
    pub count: usize,
}

/// Returns whether a datagram has the first of the missing replies, or is no reply at all.
pub fn is_next(open: &Open, datagram: &[u8]) -> bool {
    match Header::parse_reply(datagram, PAYLOAD_MAX) {
        Ok(Some(header)) => {
            header.batch == open.number && (header.is_error || header.first as usize == open.first)
        }
        _ => true,
    }
}

/// Checks a packet of replies when all of it has been received. `check` gets the place of each
/// reply among those that were missing, and its value.
///
/// # Errors
/// The packet is malformed, or not a reply to the open one; or an operation has failed.
pub fn replies(
    open: &Open,
    received: &[u8],
    mut check: impl FnMut(usize, Option<&[u8]>) -> Result<()>,
) -> Result<Replies> {
    let header = Header::parse_reply(received, PAYLOAD_MAX);
    let Some(header) =
        header.with_context(|| format!("an unexpected reply: {}", text(received)))?
    else {
        return Ok(Replies::default());
    };
    let Some(payload) = received.get(header.bytes()..header.packet_bytes()) else {
        return Ok(Replies { next_bytes: header.packet_bytes(), ..Replies::default() });
    };
    if header.is_error {
        bail!("the server has refused a packet: {}", text(payload));
    }
    let (found, expected) = (header.batch, open.number);
    ensure!(found == expected, "a reply to packet {found}, not {expected}");
    let (first, count) = (usize::from(header.first), usize::from(header.count));
    ensure!(
        first == open.first && (1..=open.count).contains(&count),
        "{count} replies from {first} on, where {} from {} on are missing",
        open.count,
        open.first
    );
    for (place, reply) in ReplyReader::new(payload, header.count).enumerate() {
        let reply = reply?;
        if reply.status != Status::Done {
            let why = reply.value.map(|value| format!(": {}", text(value))).unwrap_or_default();
            bail!("an operation has failed, {:?}{why}", reply.status);
        }
        check(place, reply.value)?;
    }
    Ok(Replies { bytes: header.packet_bytes(), count, next_bytes: 0 })
}

/// Bytes of a reply that an error shows.
const SHOWN: usize = 200;

/// The first line of a text.
fn text(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
    String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into()
}
