// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random elements on whole packets: they read and write at any offset, move both ends, copy, peek
//! before they take, and join packets with records.

use super::{Grower, Kind, handler};

/// Parts of a packet `p` that random bodies read and write: inside it, around its end, and beyond.
const PACKET_FIELDS: [(&str, u32); 6] = [
    ("p.data[3]", 8),
    ("(*(uint *)(p.data + 8))", 32),
    ("(*(uint48 *)(p.data + 58))", 48),
    ("p.data[s & 255]", 8),
    ("(*(ulong *)(p.data + (t & 127)))", 64),
    ("(*(ushort *)(p.data + p.length - 2))", 16),
];

impl Grower {
    pub(super) fn grow_packets(&mut self, stream: &str) {
        let joins = self.writer.random.u32(0..3) == 0;
        if joins && let Some(record) = self.take_like(Kind::Record) {
            let body = self.pair_packet();
            return self.add(
                "packet a, R b -> packet out) await all",
                &body,
                &[stream, &record],
                &[Kind::Packet],
            );
        }
        let (packet, record) = (Kind::Packet, Kind::Record);
        let (ports, body, outputs) = match self.writer.random.u32(0..6) {
            0 | 1 => ("packet in -> packet out", self.map_packet(), vec![packet]),
            2 => ("packet in -> packet one, packet two", self.copy_packet(), vec![packet; 2]),
            5 => ("packet in -> packet out", self.answer_packet(), vec![packet]),
            3 => ("packet in -> packet one, R two", self.summarise_packet(), vec![packet, record]),
            _ => ("packet in -> packet out", self.peek_packet(), vec![packet]),
        };
        self.add(ports, &body, &[stream], &outputs);
    }

    fn scramble_packet(&mut self) -> String {
        let mut text = self.scramble(&PACKET_FIELDS);
        for (end, most) in [("head", 40), ("tail", 300)] {
            if self.writer.random.u32(0..3) == 0 {
                let by = self.writer.random.i32(-most..most);
                let mask = [3, 31][self.writer.random.usize(..2)];
                text += &format!("            t += adjust_{end}(p, {by} + (int)(s & {mask}));\n");
            }
        }
        text
    }

    fn map_packet(&mut self) -> String {
        let (scramble, cond) = (self.scramble_packet(), self.condition());
        let put = match self.writer.random.u32(0..3) {
            0 => format!("if ({cond}) set_output_port(out, p);"),
            _ => "set_output_port(out, p);".into(),
        };
        handler(&format!(
            "        if (test_input_port(in)) {{\n            \
             packet p = read_input_port(in);\n{scramble}            {put}\n        }}\n"
        ))
    }

    /// Sends one packet twice, modified in between.
    fn copy_packet(&mut self) -> String {
        let (before, after) = (self.scramble_packet(), self.scramble_packet());
        let first = ["one", "two"][self.writer.random.usize(..2)];
        handler(&format!(
            "        if (test_input_port(in)) {{\n            \
             packet p = read_input_port(in);\n{before}            \
             if (p.data[5] & 3) set_output_port({first}, p);\n{after}            \
             set_output_port(two, p);\n        }}\n"
        ))
    }

    /// Sends a new packet for a received one, with a length that may be too large.
    fn answer_packet(&mut self) -> String {
        let scramble = self.scramble_packet();
        let length = ["60", "q.length", "q.length * 8", "(uint)s & 16383"];
        let length = length[self.writer.random.usize(..length.len())];
        let cond = self.condition();
        handler(&format!(
            "        if (test_input_port(in)) {{\n            \
             packet q = read_input_port(in);\n            \
             packet p = new_packet({length});\n            \
             *(ulong *)(p.data + 6) = *(ulong *)q.data;\n{scramble}            \
             set_output_port(out, p);\n            \
             if ({cond}) set_output_port(out, q);\n        }}\n"
        ))
    }

    /// Adds an element without inputs, which makes a number of packets.
    pub(super) fn add_source(&mut self) {
        let scramble = self.scramble_packet();
        let (count, cond) = (self.writer.random.u32(1..20), self.condition());
        let length = ["64", "(uint)(s & 1023)", "(uint)random() & 4095"];
        let length = length[self.writer.random.usize(..length.len())];
        let body = super::state(&format!("        uint left = {count};\n"))
            + &super::handler_only(&format!(
                "        if (left == 0) return;\n        left--;\n        \
                 packet p = new_packet({length});\n{scramble}        \
                 if ({cond}) set_output_port(out, p);\n"
            ));
        self.add("-> packet out", &body, &[], &[Kind::Packet]);
    }

    fn summarise_packet(&mut self) -> String {
        let scramble = self.scramble_record();
        handler(&format!(
            "        if (test_input_port(in)) {{\n            \
             packet p = read_input_port(in);\n            R r;\n            \
             r.a = *(ulong *)p.data;\n            r.b = p.length;\n            \
             r.c = *(ushort *)(p.data + 12);\n{scramble}            \
             set_output_port(two, r);\n            set_output_port(one, p);\n        }}\n"
        ))
    }

    /// Peeks first, and sometimes sends the peeked packet.
    fn peek_packet(&mut self) -> String {
        let scramble = self.scramble_packet();
        let change = self.writer.random.bool();
        let change = if change { "q.data[1] += 1; set_output_port(out, q);" } else { "t += 1;" };
        handler(&format!(
            "        if (test_input_port(in)) {{\n            \
             packet q = peek_input_port(in);\n            \
             m[q.data[0] & 31] += q.length;\n            \
             packet p = read_input_port(in);\n{scramble}            s += q.data[0];\n            \
             set_output_port(out, p);\n            \
             if ((s & 3) == 1) {{ {change} }}\n        }}\n"
        ))
    }

    pub(super) fn merge_packets(&mut self) -> String {
        let scramble = self.scramble_packet();
        handler(&format!(
            "        if (test_input_port(a)) {{\n            \
             packet p = read_input_port(a);\n            s += p.data[0];\n            \
             set_output_port(out, p);\n            return s & 1 ? b : a | b;\n        \
             }}\n        \
             if (test_input_port(b)) {{\n            packet p = read_input_port(b);\n\
             {scramble}            set_output_port(out, p);\n        }}\n        \
             return a | b;\n"
        ))
    }

    fn pair_packet(&mut self) -> String {
        let scramble = self.scramble_packet();
        handler(&format!(
            "        packet p = read_input_port(a);\n        R r = read_input_port(b);\n        \
             *(ulong *)(p.data + 6) = r.a;\n        s ^= r.b;\n{scramble}        \
             set_output_port(out, p);\n"
        ))
    }
}
