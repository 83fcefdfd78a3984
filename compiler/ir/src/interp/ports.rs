// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations on ports, by the snapshot of the firing (a port that received an item since the
//! firing began still counts as empty), and creation of packets.

use super::channel::Token;
use super::frame::Datum;
use super::machine::Machine;
use super::packet::{MOST_NEW_PACKETS, PacketBuffer, TAIL_LIMIT_BYTES};
use crate::{Bits, Item, PortId};

impl Machine<'_> {
    /// Returns the next item of a port, by the snapshot of the firing.
    pub fn read(&mut self, port: PortId, takes: bool) -> Datum {
        let activation = &mut self.activation;
        let bit = 1 << port.0;
        let exists = activation.ready & !activation.taken & bit != 0;
        activation.counters.empty_reads += u64::from(!exists);
        let token = match self.instance.inputs.get(port.index()) {
            Some(channel) if exists && takes => {
                activation.taken |= bit;
                activation.did_something = true;
                self.channels[channel.index()].take()
            }
            Some(channel) if exists => self.channels[channel.index()].front().cloned(),
            _ => None,
        };
        let packet = match (token, self.input_item(port)) {
            (Some(Token::Bits(bits)), _) => return Datum::Bits(bits),
            (Some(Token::Packet(packet)), _) => packet,
            (None, Item::Flit) => return Datum::Bits(Bits::zero(crate::flit::FLIT_BITS)),
            (None, Item::Bits(width)) => return Datum::Bits(Bits::zero(width)),
            (None, Item::Packet { .. }) => PacketBuffer::new(&[]),
        };
        self.instance.packets.push(packet);
        Datum::Packet(self.instance.packets.len() - 1)
    }

    fn input_item(&self, port: PortId) -> Item {
        self.program.element_of(self.id).inputs[port.index()].item
    }

    /// Creates a packet of zeros; empty and counted if it exceeds a limit.
    pub fn new_packet(&mut self, length: u64) -> Datum {
        let activation = &mut self.activation;
        let is_made =
            length <= TAIL_LIMIT_BYTES as u64 && activation.new_packets < MOST_NEW_PACKETS;
        activation.new_packets += u32::from(is_made);
        activation.counters.out_of_range += u64::from(!is_made);
        let length = if is_made { length as usize } else { 0 };
        self.instance.packets.push(PacketBuffer::new(&vec![0; length]));
        Datum::Packet(self.instance.packets.len() - 1)
    }

    /// Stages an item. A packet is copied, so that later changes to it have no effect.
    pub fn put(&mut self, port: PortId, datum: &Datum) {
        if !self.activation.has_ports {
            return;
        }
        let token = match datum {
            Datum::Bits(bits) => Token::Bits(bits.clone()),
            Datum::Packet(at) => {
                let packet = self.instance.packets.get(*at).cloned();
                Token::Packet(packet.unwrap_or_else(|| PacketBuffer::new(&[])))
            }
            Datum::Reference(_) | Datum::Table(_) => return,
        };
        self.activation.did_something = true;
        self.instance.staged[port.index()] = Some(token);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, done, pass, put, run_to_idle, take};
    use super::super::{Interpreter, MOST_NEW_PACKETS, Options};
    use crate::oracle::InstanceCounters;
    use crate::*;

    const WORD: Item = Item::Bits(64);
    const PACKET: Item = Item::Packet { window_bytes: 64 };

    /// Returns the output of an element that puts a new packet of the given length, and its
    /// counters.
    fn made(width: u32, length: &Bits) -> (Vec<u8>, InstanceCounters) {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[Item::Bits(width)], &[PACKET], |b| {
            let length = take(b, 0, width);
            let packet = b.push(Op::NewPacket { length }, Type::Packet);
            put(b, 0, packet);
            done(b);
        });
        let program = fixture.alone(element);
        let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
        interpreter.feed_item(EndpointId(0), length.clone()).unwrap();
        run_to_idle(&mut interpreter);
        let mut packets = interpreter.take_packets(EndpointId(1)).unwrap();
        (packets.remove(0), interpreter.counters(InstanceId(0)).clone())
    }

    #[test]
    fn a_new_packet_has_its_length_or_is_empty_and_counted() {
        for length in [0, 1, 60, 9_216] {
            let (packet, counters) = made(16, &Bits::from_u64(16, length));
            assert_eq!((packet, counters.out_of_range), (vec![0; length as usize], 0));
        }
        let beyond = Bits::zero(100).insert(64, &Bits::from_u64(1, 1));
        for length in [Bits::from_u64(16, 9_217), Bits::ones(64), beyond] {
            let (packet, counters) = made(length.width(), &length);
            assert_eq!((packet, counters.out_of_range), (vec![], 1));
        }
    }

    #[test]
    fn a_firing_makes_so_many_packets_with_the_room_of_others() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[PACKET], |b| {
            let length = take(b, 0, 64);
            let minus_head = b.number(16, 256_u64.wrapping_neg());
            let tail = b.number(16, 9_216 - 60);
            let mut last = None;
            for _ in 0..MOST_NEW_PACKETS + 2 {
                let packet = b.push(Op::NewPacket { length }, Type::Packet);
                last.get_or_insert(packet);
                b.push(Op::PacketLoad { packet, offset: length, bytes: 1 }, Type::Bits(8));
            }
            let packet = last.unwrap();
            b.push(Op::PacketAdjustHead { packet, delta: minus_head }, Type::Bits(1));
            b.push(Op::PacketAdjustTail { packet, delta: tail }, Type::Bits(1));
            b.push(Op::PacketAdjustTail { packet, delta: length }, Type::Bits(1));
            put(b, 0, packet);
            done(b);
        });
        let program = fixture.alone(element);
        let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
        for _ in 0..2 {
            interpreter.feed_item(EndpointId(0), Bits::from_u64(64, 60)).unwrap();
        }
        run_to_idle(&mut interpreter);
        let sizes = interpreter.take_packets(EndpointId(1)).unwrap();
        assert_eq!(sizes, [[0; 256 + 9_216], [0; 256 + 9_216]]);
        // In each of two firings: two packets too many, and a load beyond the end of every packet.
        let counted = u64::from(2 * (2 + MOST_NEW_PACKETS + 2));
        assert_eq!(interpreter.counters(InstanceId(0)).out_of_range, counted);
    }

    #[test]
    fn ports_follow_the_snapshot() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD, WORD], &[WORD], |b| {
            let mask = b.push(Op::ReadyMask, Type::Bits(2));
            let first = b.push(Op::Ready(PortId(0)), Type::Bits(1));
            let second = b.push(Op::Ready(PortId(1)), Type::Bits(1));
            let peeked = b.push(Op::Peek(PortId(0)), Type::Bits(64));
            let taken = take(b, 0, 64);
            let again = take(b, 0, 64);
            let still = b.push(Op::Ready(PortId(0)), Type::Bits(1));
            let bytes = [peeked, taken, again].map(|value| b.extract(value, 0, 8));
            let mut parts = vec![mask, first, second, still];
            parts.extend(bytes);
            let all = b.push(Op::Concat(parts), Type::Bits(29));
            let all = b.resize(all, 64, false);
            let lost = b.number(64, 99);
            put(b, 0, lost);
            put(b, 0, all);
            done(b);
        });
        let program = fixture.alone(element);
        let words = [5_u64, 6].map(|word| Bits::from_u64(64, word));
        let (outputs, interpreter) = pass(&program, &words);
        let want = |byte: u64| 0b1_0101 | byte << 5 | byte << 13;
        assert_eq!(outputs.iter().map(Bits::to_u64).collect::<Vec<_>>(), [want(5), want(6)]);
        assert_eq!(interpreter.counters(InstanceId(0)).empty_reads, 2);
    }

    #[test]
    fn packets_change_in_place_and_are_put_as_they_are() {
        const PACKET: Item = Item::Packet { window_bytes: 64 };
        let mut fixture = Fixture::default();
        let element = fixture.element(&[PACKET], &[PACKET, WORD], |b| {
            let packet = b.push(Op::Take(PortId(0)), Type::Packet);
            let one = b.number(8, 1);
            let minus_two = b.number(8, 0xfe);
            let loaded = Op::PacketLoad { packet, offset: one, bytes: 2 };
            let loaded = b.push(loaded, Type::Bits(16));
            let value = b.number(8, 0xee);
            b.push_effect(Op::PacketStore { packet, offset: one, value });
            let head = b.push(Op::PacketAdjustHead { packet, delta: minus_two }, Type::Bits(1));
            let tail = b.push(Op::PacketAdjustTail { packet, delta: one }, Type::Bits(1));
            let length = b.push(Op::PacketLength(packet), Type::Bits(32));
            let result = b.push(Op::Concat(vec![length, loaded, head, tail]), Type::Bits(50));
            let result = b.resize(result, 64, false);
            put(b, 1, result);
            put(b, 0, packet);
            b.push_effect(Op::PacketStore { packet, offset: one, value });
            done(b);
        });
        let program = fixture.alone(element);
        let options = Options::default();
        let mut interpreter = Interpreter::new(&program, &options).unwrap();
        let find = |name| interpreter.endpoint(name).unwrap();
        let ends = [find("to_in0"), find("from_out0"), find("from_out1")];
        interpreter.feed_packet(ends[0], &[1, 2, 3]).unwrap();
        interpreter.feed_packet(ends[0], &[1]).unwrap();
        run_to_idle(&mut interpreter);
        let packets = interpreter.take_packets(ends[1]).unwrap();
        assert_eq!(packets, [vec![0, 0, 1, 0xee, 3, 0], vec![0, 0, 1, 0]]);
        let words = interpreter.take_items(ends[2]).unwrap();
        let words: Vec<u64> = words.iter().map(Bits::to_u64).collect();
        assert_eq!(words, [6 | 0x0302 << 32 | 3 << 48, 4 | 3 << 48]);
        assert_eq!(interpreter.counters(InstanceId(0)).out_of_range, 2);
        assert!(interpreter.instances[0].packets.is_empty(), "packets end with their firing");
    }
}
