// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets as C: operations on them, and their end of life. `runtime/packets.h` has the functions
//! used.

use super::Emitter;
use super::functions::FunctionEmitter;
use super::packet_flow::{Place, sites};
use super::types::{bytes_of, saturated, signed, signed_integer, zero};
use super::values::Operand;
use freeport_ir::{Bits, Function, Inst, Item, Op, PortId, Type, ValueId};

/// The text of `runtime/packets.h`.
pub(super) const RUNTIME: &str = include_str!("../../runtime/packets.h");

const HOST: &str = "activation->instance->runtime";
const OUT_OF_RANGE: &str = "activation->out_of_range++;";

/// Returns whether an item is a packet.
pub(super) fn is_packet(item: Item) -> bool {
    matches!(item, Item::Packet { .. })
}

/// Declares storage for the packets that a suspended handler keeps.
pub(super) fn kept_places(emitter: &Emitter<'_>, function: &Function) -> String {
    let count = sites(emitter.program, function).len();
    (0..count).map(|at| format!("    struct packet packet_{at};\n")).collect()
}

/// Emits statements that copy the packets of a suspended handler out of the host's frames.
pub(super) fn keep_suspended(emitter: &Emitter<'_>, function: &Function, frame: &str) -> String {
    let count = sites(emitter.program, function).len();
    let keep = |at| format!("    packet_keep(graph->runtime, &{frame}.packet_{at});\n");
    (0..count).map(keep).collect()
}

impl FunctionEmitter<'_, '_> {
    /// Declares storage for packets, unless the function keeps them elsewhere.
    pub(super) fn declare_packets(&mut self) {
        for at in 0..self.packets.sites.len() {
            self.line(&format!("struct packet packet_{at};"));
            self.line(&format!("packet_{at}.owner = OWNER_NONE;"));
        }
    }

    /// Returns the statements that end all packets of the function.
    pub(super) fn end_packets(&self) -> String {
        let prefix = self.prefix();
        let end = |at| format!("packet_end({HOST}, &{prefix}packet_{at}); ");
        self.packets.owners().map(end).collect()
    }

    /// Emits an operation on packets; returns false for any other.
    pub(super) fn packet_operation(&mut self, inst: &Inst, place: Place) -> bool {
        let to = inst.result.map(|result| self.name(result));
        match &inst.op {
            Op::Take(port) | Op::Peek(port) => {
                let Some(site) = self.packets.site_at(place) else { return false };
                self.read_packet(*port, site, place, matches!(inst.op, Op::Take(_)));
                if let Some(to) = to {
                    self.line(&format!("{to} = &{}packet_{site};", self.prefix()));
                }
            }
            Op::Put { port, value } if self.function.type_of(*value) == Type::Packet => {
                self.put_packet(*port, *value, self.packets.moves(place));
            }
            Op::Select { cond, if_true, if_false }
                if self.function.type_of(*if_true) == Type::Packet =>
            {
                let [cond, if_true, if_false] = [cond, if_true, if_false].map(|at| self.name(*at));
                let to = to.unwrap_or_default();
                self.line(&format!("{to} = {cond} ? {if_true} : {if_false};"));
            }
            Op::NewPacket { length } => {
                let Some(site) = self.packets.site_at(place) else { return false };
                self.make_packet(*length, site);
                if let Some(to) = to {
                    self.line(&format!("{to} = &{}packet_{site};", self.prefix()));
                }
            }
            Op::PacketLength(packet) => {
                let length = format!("(uint32_t){}->length", self.name(*packet));
                to.iter().for_each(|to| self.line(&format!("{to} = {length};")));
            }
            Op::PacketLoad { packet, offset, bytes } => {
                self.load_packet(*packet, *offset, *bytes, inst.result);
            }
            Op::PacketStore { packet, offset, value } => {
                self.store_packet(*packet, *offset, *value);
            }
            Op::PacketAdjustHead { packet, delta } => self.adjust("head", *packet, *delta, to),
            Op::PacketAdjustTail { packet, delta } => self.adjust("tail", *packet, *delta, to),
            _ => return false,
        }
        true
    }

    fn read_packet(&mut self, port: PortId, site: usize, place: Place, takes: bool) {
        let (bit, at) = (self.port_bit(port), port.0);
        let to = format!("&{}packet_{site}", self.prefix());
        self.line(&format!("if (LIKELY(firing->ready & ~firing->taken & {bit})) {{"));
        let read = match takes {
            true => format!("packet_take({HOST}, {to}, firing->input_{at});"),
            false if self.packets.is_view_at(place) => {
                format!("packet_view({to}, firing->input_{at});")
            }
            false => format!("packet_copy({HOST}, {to}, firing->input_{at});"),
        };
        self.line(&format!("    {read}"));
        if takes {
            self.line(&format!("    firing->taken |= {bit};"));
            self.line("    activation->did_something = true;");
        }
        self.line(&format!("}} else {{ packet_clear({HOST}, {to});"));
        self.line("    activation->empty_reads++; }");
    }

    fn make_packet(&mut self, length: ValueId, site: usize) {
        let Operand { name, width } = self.operand(length);
        let (length, to) = (saturated(&name, width), format!("&{}packet_{site}", self.prefix()));
        self.line(&format!("packet_make({HOST}, activation, {to}, {length});"));
    }

    fn put_packet(&mut self, port: PortId, packet: ValueId, moves: bool) {
        let (at, from) = (port.0, self.name(packet));
        let how = if moves { "packet_move" } else { "packet_put" };
        let staged = format!("&firing->staged_{at}, firing->is_staged_{at}");
        let element = self.function.owner;
        match element.and_then(|element| self.emitter.passed(element, port)) {
            Some(_) => self.line(&format!("{from}->owner = OWNER_NONE;")),
            None => self.line(&format!("{how}({HOST}, {staged}, {from});")),
        }
        self.line(&format!("firing->is_staged_{at} = true;"));
        self.line("activation->did_something = true;");
    }

    /// Returns the condition under which `bytes` bytes from an offset are in a packet, and the
    /// offset.
    fn covers(&self, packet: ValueId, offset: ValueId, bytes: u32) -> (String, String) {
        let packet = self.name(packet);
        if let Some(offset) = self.constant(offset).and_then(Bits::checked_u64)
            && offset < 1 << 32
        {
            let end = offset + u64::from(bytes);
            return (format!("{packet}->length >= {end}"), offset.to_string());
        }
        let Operand { name, width } = self.operand(offset);
        let offset = saturated(&name, width);
        match width < 64 {
            true => (format!("{offset} + {bytes} <= {packet}->length"), offset),
            false => (format!("packet_covers({packet}, {offset}, {bytes})"), offset),
        }
    }

    fn load_packet(
        &mut self,
        packet: ValueId,
        offset: ValueId,
        bytes: u32,
        result: Option<ValueId>,
    ) {
        let (covers, offset) = self.covers(packet, offset, bytes);
        let Some(result) = result else {
            self.line(&format!("if (UNLIKELY(!({covers}))) {{ {OUT_OF_RANGE} }}"));
            return;
        };
        let Operand { name, width } = self.operand(result);
        let (zero, packet) = (zero(width), self.name(packet));
        self.line(&format!("{name} = {zero};"));
        let load = format!("memcpy(&{name}, {packet}->data + {offset}, {bytes});");
        self.line(&format!("if (LIKELY({covers})) {{ {load} }} else {{ {OUT_OF_RANGE} }}"));
    }

    fn store_packet(&mut self, packet: ValueId, offset: ValueId, stored: ValueId) {
        let Operand { name, width } = self.operand(stored);
        let bytes = bytes_of(width);
        let (covers, offset) = self.covers(packet, offset, bytes);
        let store = format!("memcpy({}->data + {offset}, &{name}, {bytes});", self.name(packet));
        self.line(&format!("if (LIKELY({covers})) {{ {store} }} else {{ {OUT_OF_RANGE} }}"));
    }

    fn adjust(&mut self, end: &str, packet: ValueId, delta: ValueId, to: Option<String>) {
        let Operand { name, width } = self.operand(delta);
        let delta = signed_integer(&name, width);
        let packet = self.name(packet);
        let call = format!("packet_adjust_{end}({HOST}, {packet}, (int64_t){delta})");
        // Packets are shorter than any length that does not fit 64 bits.
        let call = match width > 64 {
            true => format!("(({}){delta} == ({0})(int64_t){delta} && {call})", signed(width)),
            false => call,
        };
        match to {
            Some(to) => self.line(&format!("{to} = {call};")),
            None => self.line(&format!("(void){call};")),
        }
    }
}
