// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dividing a packet of replies into datagrams.

use freeport_kv_protocol::batch::{
    HEADER_BYTES, Header, Reply, ReplyLimits, ReplyReader, ReplyWriter,
};

/// Bytes of the replies to one datagram. A short request cannot ask for more.
const REPLIES_BYTES: usize = 1 << 20;
/// Bytes of the first reply in a datagram beside its value.
const OVERHEAD_BYTES: usize = HEADER_BYTES + 3;

/// Limits of the replies to a client that receives datagrams of up to `longest` bytes: each fits in
/// one.
pub fn limits(longest: usize) -> ReplyLimits {
    ReplyLimits { value_bytes: longest - OVERHEAD_BYTES, packet_bytes: REPLIES_BYTES }
}

/// Divides a packet that this server has written within [`limits`] into packets of at most
/// `longest` bytes. `part` is memory for one of them.
pub fn divide(packet: &[u8], longest: usize, part: &mut Vec<u8>, mut emit: impl FnMut(&[u8])) {
    if packet.len() <= longest {
        return emit(packet);
    }
    let Ok(Some(header)) = Header::parse_reply(packet, u32::MAX) else { return };
    let begin = |part: &mut Vec<u8>, first| {
        part.clear();
        ReplyWriter::begin(part, header.batch, first, limits(longest))
    };
    let mut writer = begin(part, 0);
    let replies = ReplyReader::new(&packet[HEADER_BYTES..], header.count).map_while(Result::ok);
    for (number, reply) in (0..).zip(replies) {
        if writer.bytes(part) + bytes(&writer, &reply) > longest {
            writer.finish(part);
            emit(part);
            writer = begin(part, number);
        }
        writer.reply(part, &reply);
    }
    writer.finish(part);
    emit(part);
}

/// Bytes that a reply takes now.
fn bytes(writer: &ReplyWriter, reply: &Reply<'_>) -> usize {
    reply.value.map_or(1, |value| writer.bytes_of_value(value.len()))
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::batch::Status;

    use super::*;
    use crate::datagrams::sessions::USUAL_BYTES;

    type Values = Vec<(Status, Option<Vec<u8>>)>;

    fn packet(values: &Values, limits: ReplyLimits) -> Vec<u8> {
        let mut packet = vec![];
        let mut writer = ReplyWriter::begin(&mut packet, 7, 0, limits);
        for (status, value) in values {
            match value {
                Some(value) => writer.status_with(&mut packet, *status, value),
                None => writer.status(&mut packet, *status),
            }
        }
        writer.finish(&mut packet);
        packet
    }

    /// Divides, and puts the parts together again.
    fn divided(values: &Values, limit: usize) -> (usize, Values) {
        let (mut parts, mut all) = (0, vec![]);
        divide(&packet(values, limits(limit)), limit, &mut vec![], |part| {
            assert!(part.len() <= limit, "{} bytes", part.len());
            let header = Header::parse_reply(part, u32::MAX).expect("a header").expect("whole");
            assert_eq!((header.batch, usize::from(header.first)), (7, all.len()));
            assert_eq!(header.packet_bytes(), part.len());
            for reply in ReplyReader::new(&part[HEADER_BYTES..], header.count) {
                let reply = reply.expect("it is well formed");
                all.push((reply.status, reply.value.map(<[u8]>::to_vec)));
            }
            parts += 1;
        });
        (parts, all)
    }

    #[test]
    fn what_fits_is_not_divided() {
        let values = vec![(Status::Done, Some(vec![1; 10])), (Status::NotFound, None)];
        assert_eq!(divided(&values, USUAL_BYTES), (1, values));
        assert_eq!(divided(&vec![], USUAL_BYTES), (1, vec![]));
    }

    #[test]
    fn parts_have_all_replies_in_their_order() {
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..500 {
            let longest = if round % 2 == 0 { 20 } else { limits(USUAL_BYTES).value_bytes };
            let mut last = 0;
            let values: Values = (0..random.usize(1..2_000))
                .map(|_| {
                    // Equal lengths in a row are written without them.
                    last = if random.bool() { last } else { random.usize(0..=longest) };
                    let status = Status::ALL[random.usize(0..Status::ALL.len())];
                    (status, random.bool().then(|| vec![random.u8(..); last]))
                })
                .collect();
            let (parts, all) = divided(&values, USUAL_BYTES);
            assert_eq!(all, values);
            assert!(parts >= packet(&values, limits(USUAL_BYTES)).len() / USUAL_BYTES);
        }
    }

    #[test]
    fn a_reply_that_fits_in_no_datagram_is_an_error() {
        let fitting = limits(USUAL_BYTES).value_bytes;
        let value = |bytes: usize| (Status::Done, Some(vec![5; bytes]));
        let (_, all) = divided(&vec![value(fitting), value(fitting + 1), value(2)], USUAL_BYTES);
        assert_eq!(all[0], value(fitting));
        assert_eq!(all[1].0, Status::Failed);
        assert_eq!(all[2], value(2));
    }
}
