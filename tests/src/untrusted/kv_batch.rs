// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of the batched protocol: a request as a server reads it, and replies as a client does.
//! Packets that were read can be written, and are then read again.

use freeport_kv_protocol::batch::{
    HEADER_BYTES, Header, Hello, HelloReply, Opcode, Operation, Operations, PacketLimits,
    PacketWriter, Reply, ReplyLimits, ReplyReader, ReplyWriter, Status, read_functions,
    write_function,
};

/// Largest payload that the header may announce.
const PAYLOAD_LIMIT: u32 = 1 << 20;

/// Reads a packet of requests. The payload is all that follows the header, whatever the header says
/// of its length.
pub fn kv_batch_request(bytes: &[u8]) {
    let Ok(Some(header)) = Header::parse_request(bytes, PAYLOAD_LIMIT) else { return };
    let mut again = vec![];
    header.write(&mut again);
    assert_eq!(again, bytes[..header.bytes()], "a header is written as it was read");
    let payload = &bytes[header.bytes()..];
    let mut operations = Operations::default();
    if let Err(malformed) = operations.decode(payload, header.count) {
        assert!(malformed.offset as usize <= payload.len(), "{malformed}");
        assert!(operations.is_empty(), "nothing is executed");
        return;
    }
    for operation in operations.iter(payload).filter(|it| it.opcode == Opcode::Hello) {
        _ = Hello::decode(&operation);
    }
    // `SAME_VALUE` can make the operations longer than the packet by far, not what is written.
    let limits = PacketLimits { bytes: 1 << 30, operations: u16::MAX };
    let mut packet = vec![];
    let mut writer = PacketWriter::begin(&mut packet, limits, header.batch, header.token);
    for operation in operations.iter(payload) {
        writer.push(&mut packet, &operation).expect("the writer sends no more than the client did");
    }
    let written = writer.finish(&mut packet);
    assert!(packet.len() <= bytes.len(), "the writer chooses the shortest form");
    let mut again = Operations::default();
    let packet = &packet[written.bytes()..];
    again.decode(packet, written.count).expect("what is written is well formed");
    assert!(again.iter(packet).eq(operations.iter(payload)), "what is written is read again");
}

/// Reads a packet of replies, and the values of those to a hello and to the list of functions.
pub fn kv_batch_reply(bytes: &[u8]) {
    let Ok(Some(header)) = Header::parse_reply(bytes, PAYLOAD_LIMIT) else { return };
    let payload = &bytes[header.bytes()..];
    let replies: Result<Vec<Reply<'_>>, _> = ReplyReader::new(payload, header.count).collect();
    let replies = match replies {
        Ok(replies) => replies,
        Err(malformed) => {
            return assert!(malformed.offset as usize <= payload.len(), "{malformed}");
        }
    };
    let mut packet = vec![];
    let limits = ReplyLimits::default();
    let mut writer = ReplyWriter::begin(&mut packet, header.batch, header.first, limits);
    replies.iter().for_each(|reply| writer.reply(&mut packet, reply));
    let written = writer.finish(&mut packet);
    assert!(packet.len() <= bytes.len(), "the writer chooses the shortest form");
    let again = ReplyReader::new(&packet[HEADER_BYTES..], written.count);
    assert!(again.map(Result::ok).eq(replies.iter().copied().map(Some)), "and is read again");
    for value in replies.iter().filter_map(|reply| reply.value) {
        if let Some(reply) = HelloReply::decode(value) {
            assert_eq!(reply.value(), value);
        }
        if let Some(functions) = read_functions(value) {
            let mut again = vec![];
            functions.iter().for_each(|entry| write_function(&mut again, entry));
            assert_eq!(again, value);
        }
    }
}

/// Packets of both directions.
pub fn samples(reader: &str) -> Vec<Vec<u8>> {
    if reader == "kv_batch_reply" { replies() } else { requests() }
}

fn requests() -> Vec<Vec<u8>> {
    let hello = Hello { user: b"ann", password: b"secret", database: 1, worker: None }.value();
    let long = [b'v'; 300];
    let call = Operation::call;
    let packets: [&[Operation<'_>]; 3] = [
        &[Operation::hello(b"ann", &hello), Operation::functions()],
        &[
            Operation::get(b"key 1"),
            Operation::get(b"key 2").without_return(),
            Operation::put(b"key 3", b"12345678"),
            Operation::put(b"key 4", b"87654321"),
            Operation::put(b"key 5", b"87654321"),
            Operation::delete(b"other"),
            Operation::put(&long, &long),
        ],
        &[
            call(Opcode::Update, b"counter", 3, 3, &[1, 0, 0, 0, 0, 0, 0, 0]),
            call(Opcode::Update, b"another", 3, 3, &[1, 0, 0, 0, 0, 0, 0, 0]).without_return(),
            call(Opcode::UpdateSame, b"vector", 3, 0, &[1]),
            call(Opcode::UpdateVector, b"vector", 3, 0, &[1, 2, 3]),
            call(Opcode::Reduce, b"vector", 32, 0, &[0; 8]),
            call(Opcode::Filter, b"vector", 66, 0, &[2]),
        ],
    ];
    let packet = |(operations, token): (&[Operation<'_>], Option<u64>)| {
        let mut packet = vec![];
        let mut writer = PacketWriter::begin(&mut packet, PacketLimits::default(), 7, token);
        for operation in operations {
            writer.push(&mut packet, operation).expect("it fits");
        }
        writer.finish(&mut packet);
        packet
    };
    packets.into_iter().zip([None, Some(5), None]).map(packet).collect()
}

/// Status and value of a reply.
type Answer<'a> = (Status, Option<&'a [u8]>);

fn replies() -> Vec<Vec<u8>> {
    let hello = HelloReply { worker: 0, workers: 2, payload_limit: 1 << 26, token: 5 }.value();
    let functions = b"\x03\x00\xff\x03\x03add\x01\x20\x01\xff\x03\x03sum\x01";
    let long = [b'v'; 300];
    let packets: [&[Answer<'_>]; 2] = [
        &[(Status::Done, Some(&hello)), (Status::Done, Some(functions))],
        &[
            (Status::Done, Some(b"value")),
            (Status::Done, Some(b"other")),
            (Status::NotFound, None),
            (Status::WrongType, Some(b"a list is no string")),
            (Status::Done, Some(&long)),
        ],
    ];
    let packet = |replies: &[Answer<'_>]| {
        let mut packet = vec![];
        let mut writer = ReplyWriter::begin(&mut packet, 7, 0, ReplyLimits::default());
        for &(status, value) in replies {
            writer.reply(&mut packet, &Reply { status, value });
        }
        writer.finish(&mut packet);
        packet
    };
    packets.into_iter().map(packet).collect()
}
