// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies as they are written and read.

use fastrand::Rng;
use freeport_kv_protocol::batch::{Header, Reply, ReplyLimits, ReplyReader, ReplyWriter, Status};

type Owned = (Status, Option<Vec<u8>>);

fn random(rng: &mut Rng, count: usize) -> Vec<Owned> {
    let sizes = [rng.usize(..4), rng.usize(..300), rng.usize(..70_000)];
    let reply = |rng: &mut Rng| {
        let status = Status::ALL[rng.usize(..Status::ALL.len())];
        let size = sizes[[0, 0, 0, 0, 1, 1, 2][rng.usize(..7)]];
        (status, (rng.u8(..4) > 0).then(|| vec![rng.u8(..); size]))
    };
    (0..count).map(|_| reply(rng)).collect()
}

fn written(replies: &[Owned]) -> (Header, Vec<u8>) {
    let mut packet = b"before".to_vec();
    let mut writer = ReplyWriter::begin(&mut packet, 11, 5, ReplyLimits::default());
    for (status, value) in replies {
        let bytes = packet.len();
        match value {
            Some(value) => {
                let expected = writer.bytes_of_value(value.len());
                writer.status_with(&mut packet, *status, value);
                assert_eq!(packet.len() - bytes, expected);
                assert!(expected <= value.len() + ReplyWriter::OVERHEAD_BYTES);
            }
            None => writer.status(&mut packet, *status),
        }
    }
    assert_eq!(usize::from(writer.count()), replies.len());
    let header = writer.finish(&mut packet);
    let parsed = Header::parse_reply(&packet[6..], u32::MAX);
    assert_eq!(parsed, Ok(Some(header)));
    assert_eq!((header.batch, header.first, header.is_error), (11, 5, false));
    (header, packet.split_off(6 + header.bytes()))
}

fn read(payload: &[u8], count: u16) -> Option<Vec<Owned>> {
    let owned = |Reply { status, value }: Reply<'_>| (status, value.map(<[u8]>::to_vec));
    ReplyReader::new(payload, count).map(|reply| reply.map(owned).ok()).collect()
}

#[test]
fn replies_are_read_as_they_were_written() {
    let mut rng = Rng::with_seed(1);
    for round in 0..1_000 {
        let replies = random(&mut rng, round % 40);
        let (header, payload) = written(&replies);
        assert_eq!(read(&payload, header.count), Some(replies), "round {round}");
    }
}

#[test]
fn a_reply_that_was_read_is_written_again() {
    let mut rng = Rng::with_seed(3);
    let replies = random(&mut rng, 30);
    let (header, payload) = written(&replies);
    let mut packet = Vec::new();
    let mut writer = ReplyWriter::begin(&mut packet, 1, 0, ReplyLimits::default());
    for reply in ReplyReader::new(&payload, header.count) {
        writer.reply(&mut packet, &reply.expect("it is well formed"));
    }
    let header = writer.finish(&mut packet);
    assert_eq!(packet[header.bytes()..], payload);
}

#[test]
fn a_value_over_a_limit_becomes_an_error() {
    let text = b"the reply does not fit in a packet".to_vec();
    let failed = || (Status::Failed, Some(text.clone()));
    let mut packet = b"before".to_vec();
    let limits = ReplyLimits { value_bytes: 100, packet_bytes: 16 + 105 + 2 + 39 };
    let mut writer = ReplyWriter::begin(&mut packet, 1, 0, limits);
    writer.value(&mut packet, &[0; 101]);
    let header = writer.finish(&mut packet);
    assert_eq!(read(&packet[6 + header.bytes()..], 1), Some(vec![failed()]), "one value");

    packet.truncate(6);
    let mut writer = ReplyWriter::begin(&mut packet, 1, 0, limits);
    writer.value(&mut packet, &[0; 100]);
    assert!(!writer.fits(&packet, 100));
    for _ in 0..4 {
        writer.value(&mut packet, &[0; 100]);
    }
    let header = writer.finish(&mut packet);
    let bare = (Status::Failed, None);
    let expected =
        vec![(Status::Done, Some(vec![0; 100])), failed(), bare.clone(), bare.clone(), bare];
    assert_eq!(read(&packet[6 + header.bytes()..], 5), Some(expected), "all values");
}

#[test]
fn replies_that_are_cut_anywhere_are_an_error() {
    let mut rng = Rng::with_seed(2);
    for _ in 0..40 {
        let mut replies = random(&mut rng, 12);
        replies.iter_mut().for_each(|(_, value)| {
            value.iter_mut().for_each(|value| value.truncate(30));
        });
        let (header, payload) = written(&replies);
        for bytes in 0..payload.len() {
            assert_eq!(read(&payload[..bytes], header.count), None);
        }
        assert_eq!(read(&payload, header.count - 1), None, "bytes follow");
        assert_eq!(read(&payload, header.count + 1), None);
    }
}

#[test]
fn a_first_byte_that_is_no_reply_is_an_error() {
    for byte in 0..=u8::MAX {
        let flags = byte & 0xf0;
        let mut payload = vec![0x20, 1, 0, b'a', byte];
        payload.extend(match flags {
            0x20 => &[2, 0, b'b', b'c'][..],
            0x30 => b"b",
            0xa0 => &[2, 0, 0, 0, b'b', b'c'],
            _ => &[],
        });
        let is_valid = [0, 0x20, 0x30, 0xa0].contains(&flags) && byte & 15 < 9;
        assert_eq!(read(&payload, 2).is_some(), is_valid, "{byte:#x}");
        let errors = ReplyReader::new(&payload, 2).filter_map(Result::err);
        for error in errors {
            assert_eq!((error.reply, error.offset), (1, 4), "{error}");
        }
    }
    assert_eq!(read(&[0x30, b'a'], 1), None, "there is no value before");
}

#[test]
fn a_reader_ends_after_an_error() {
    let mut reader = ReplyReader::new(&[9, 9, 9], 3);
    assert!(reader.next().is_some_and(|reply| reply.is_err()));
    assert!(reader.next().is_none());
}

#[test]
fn statuses_have_the_codes_of_their_page() {
    for (code, status) in Status::ALL.into_iter().enumerate() {
        assert_eq!(status as usize, code);
        assert_eq!(Status::from_code(code as u8), Some(status));
        assert_eq!(status.is_error(), code > 1);
    }
    assert_eq!(Status::from_code(9), None);
}
