// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random packet programs in the ClickNP language: a graph of elements with random bodies.
//!
//! The back-end oracle runs each program on native code, records its choices, and replays them in
//! the interpreter. A program starts from its input endpoints and grows element by element: each
//! takes one or two of the open streams and adds up to two new ones; the remaining streams are
//! connected to the output endpoints. So every graph is connected and acyclic.

mod packets;

use super::writer::{Integer, Writer};
use std::fmt::Write;

/// Content of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Packets, as flits.
    Flit,
    /// Records of the struct `R`, 24 bytes.
    Record,
    /// Whole packets.
    Packet,
}

/// A program text and its endpoints.
pub struct GeneratedProgram {
    /// Source in the ClickNP language.
    pub text: String,
    /// Input endpoints, with the content of their streams.
    pub inputs: Vec<(&'static str, Kind)>,
    /// Output endpoints, with the content of their streams.
    pub outputs: Vec<(&'static str, Kind)>,
}

/// Bytes of a record on a channel.
pub const RECORD_BYTES: usize = 24;

const RECORD: &str = "\
struct R {
    ulong a;
    uint b;
    ushort c;
    uchar d;
    uchar e;
    uint40 f;
};
struct K {
    ushort c;
    uint40 f;
    uchar d;
};
struct V {
    ulong n;
    uint13 odd;
    uchar low : 3;
    uchar high : 5;
    ushort w[2];
};
";

const SOURCES: [&str; 4] = ["from_tor", "from_nic", "from_host", "from_memory"];
const SINKS: [&str; 4] = ["to_tor", "to_nic", "to_host", "to_memory"];

/// Generates the program of that seed; the same seed gives the same text.
pub fn generate(seed: u64) -> GeneratedProgram {
    let mut grower = Grower {
        writer: Writer::new(seed),
        elements: String::new(),
        declarations: String::new(),
        connections: String::new(),
        open: vec![],
        count: 0,
    };
    let count = grower.writer.random.usize(1..=3);
    let inputs: Vec<_> = SOURCES[..count].iter().map(|name| (*name, grower.kind())).collect();
    for (name, kind) in &inputs {
        grower.open.push((name.to_string(), *kind));
    }
    if grower.writer.random.u32(0..4) == 0 {
        grower.add_source();
    }
    for _ in 0..grower.writer.random.usize(1..=5) {
        grower.grow();
    }
    while grower.open.len() > SINKS.len() {
        grower.shrink();
    }
    let outputs: Vec<_> = SINKS.iter().zip(&grower.open).map(|(s, (_, k))| (*s, *k)).collect();
    for (sink, (stream, _)) in SINKS.iter().zip(std::mem::take(&mut grower.open)) {
        grower.connect(&stream, sink);
    }
    let Grower { elements, declarations, connections, .. } = grower;
    let text = format!("{RECORD}\n{elements}\n{declarations}\n{connections}");
    GeneratedProgram { text, inputs, outputs }
}

struct Grower {
    writer: Writer,
    elements: String,
    declarations: String,
    connections: String,
    /// Streams that are not read yet: their names in a chain, and their content.
    open: Vec<(String, Kind)>,
    count: u32,
}

impl Grower {
    fn kind(&mut self) -> Kind {
        [Kind::Flit, Kind::Record, Kind::Packet][self.writer.random.usize(..3)]
    }

    fn take(&mut self) -> (String, Kind) {
        let at = self.writer.random.usize(..self.open.len());
        self.open.swap_remove(at)
    }

    /// Returns a second stream of the same kind, if there is one.
    fn take_like(&mut self, kind: Kind) -> Option<String> {
        let at = self.open.iter().position(|(_, other)| *other == kind)?;
        Some(self.open.swap_remove(at).0)
    }

    fn grow(&mut self) {
        let (stream, kind) = self.take();
        let joins = self.writer.random.u32(0..3) > 0;
        if joins && let Some(other) = self.take_like(kind) {
            return self.join(kind, &stream, &other);
        }
        if kind == Kind::Packet {
            return self.grow_packets(&stream);
        }
        let choice = self.writer.random.u32(0..7);
        let (ports, body, outputs) = match (kind, choice) {
            (Kind::Record, 0..3) => ("R in -> R out", self.map_record(), vec![kind]),
            (Kind::Record, 5 | 6) => ("R in -> R out", self.look_up_record(), vec![kind]),
            (Kind::Record, 3) => ("R in -> R one, R two", self.route_record(), vec![kind; 2]),
            (Kind::Record, _) => ("R in -> R out", self.repeat_record(), vec![kind]),
            (Kind::Flit, 0 | 1) => ("flit in -> flit out", self.map_flit(), vec![kind]),
            (Kind::Flit, 2) => ("flit in -> flit one, flit two", self.route_flit(), vec![kind; 2]),
            (Kind::Flit, _) => {
                let outputs = vec![Kind::Flit, Kind::Record];
                ("flit in -> flit one, R two", self.summarise_flit(), outputs)
            }
            (Kind::Packet, _) => return self.grow_packets(&stream),
        };
        self.add(ports, &body, &[&stream], &outputs);
    }

    fn shrink(&mut self) {
        let (stream, kind) = self.take();
        match self.take_like(kind) {
            Some(other) => self.join(kind, &stream, &other),
            None => {
                let (ty, read) = match kind {
                    Kind::Flit => ("flit", "read_input_port(in);"),
                    Kind::Record => ("R", "read_input_port(in);"),
                    Kind::Packet => ("packet", "packet p = read_input_port(in); seen ^= p.length;"),
                };
                let body = format!(
                    "    .state {{ ulong seen; }}\n    .handler {{\n        \
                     if (test_input_port(in)) {{ {read} seen += 1; }}\n    }}\n"
                );
                self.add(&format!("{ty} in ->"), &body, &[&stream], &[]);
            }
        }
    }

    fn join(&mut self, kind: Kind, first: &str, second: &str) {
        let (ports, body) = match (kind, self.writer.random.u32(0..3)) {
            (Kind::Flit, _) => ("flit a, flit b -> flit out", MERGE_FLITS.to_string()),
            (Kind::Packet, _) => ("packet a, packet b -> packet out", self.merge_packets()),
            (Kind::Record, 0) => ("R a, R b -> R out", self.merge_records()),
            (Kind::Record, 1) => ("R a, R b -> R out", self.alternate_records()),
            _ => ("R a, R b -> R out) await all (", self.pair_records()),
        };
        // `await all` follows the ports.
        let ports = ports.trim_end_matches(" (");
        self.add(ports, &body, &[first, second], &[kind]);
    }

    fn add(&mut self, ports: &str, body: &str, inputs: &[&str], outputs: &[Kind]) {
        self.count += 1;
        let number = self.count;
        let (ports, rest) = match ports.split_once(')') {
            Some((ports, rest)) => (ports, rest),
            None => (ports, ""),
        };
        let _ = writeln!(self.elements, ".element E{number} ({ports}){rest} {{\n{body}}}\n");
        let _ = writeln!(self.declarations, "E{number} :: e{number}");
        for (at, stream) in inputs.iter().enumerate() {
            let sink = format!("[{}] e{number}", at + 1);
            self.connect(stream, &sink);
        }
        for (at, kind) in outputs.iter().enumerate() {
            self.open.push((format!("e{number} [{}]", at + 1), *kind));
        }
    }

    fn connect(&mut self, stream: &str, sink: &str) {
        let edge = match self.writer.random.u32(0..8) {
            0 | 1 => format!("{{depth = {}}}", self.writer.random.u32(1..=4)),
            2 => format!("{{depth = {}, lossy}}", self.writer.random.u32(1..=8)),
            _ => String::new(),
        };
        // Outer ends belong to the host: only inner channels are lossy.
        let is_outer = stream.starts_with("from_") || sink.starts_with("to_");
        let edge = if is_outer { "" } else { &edge };
        let _ = writeln!(self.connections, "{stream} ->{edge} {sink}");
    }

    /// Writes random statements over the fields of `r` and the state `s`, `t`.
    fn scramble(&mut self, fields: &[(&str, u32)]) -> String {
        let writer = &mut self.writer;
        writer.text.clear();
        writer.indent = 3;
        let unsigned = |width| Integer { width, is_signed: false };
        let of = |(name, width): &(&str, u32)| (name.to_string(), unsigned(*width));
        writer.variables = fields.iter().map(of).collect();
        writer.variables.push(("s".into(), unsigned(64)));
        writer.variables.push(("t".into(), Integer { width: 23, is_signed: true }));
        if writer.random.u32(0..4) == 0 {
            let line = ["r.a += now() & 0xff;", "r.a ^= random();"][writer.random.usize(0..2)];
            writer.line(if fields[0].0 == "r.a" { line } else { "s ^= random();" });
        }
        if writer.random.u32(0..4) == 0 {
            writer.line("async { m[s & 15] = m[(s + 3) & 15] + (uint)s; t += 1; }");
        }
        writer.line("m[s & 31] += 1;");
        writer.statements(2, false);
        std::mem::take(&mut writer.text)
    }

    fn scramble_record(&mut self) -> String {
        let fields = [("r.a", 64), ("r.b", 32), ("r.c", 16), ("r.d", 8), ("r.e", 8), ("r.f", 40)];
        self.scramble(&fields)
    }

    fn condition(&mut self) -> String {
        self.writer.expression(2)
    }

    fn map_record(&mut self) -> String {
        let scramble = self.scramble_record();
        let cond = self.condition();
        let put = match self.writer.random.u32(0..3) {
            0 => format!("if ({cond}) set_output_port(out, r);"),
            _ => "set_output_port(out, r);".into(),
        };
        handler(&format!(
            "        if (test_input_port(in)) {{\n            R r = read_input_port(in);\n\
             {scramble}            {put}\n        }}\n"
        ))
    }

    fn route_record(&mut self) -> String {
        let (scramble, cond) = (self.scramble_record(), self.condition());
        handler(&format!(
            "        if (test_input_port(in)) {{\n            R r = read_input_port(in);\n\
             {scramble}            if ({cond}) set_output_port(one, r);\n            \
             if (r.a & 4) set_output_port(two, r);\n        }}\n"
        ))
    }

    /// Counts records by some of their bits in a table with few entries, which records fill, evict,
    /// and delete while they are referenced.
    fn look_up_record(&mut self) -> String {
        let (scramble, cond) = (self.scramble_record(), self.condition());
        let random = &mut self.writer.random;
        let capacity = random.u32(1..=6);
        let mask = [1, 3, 7][random.usize(0..3)];
        let part = ["r.b", "r.c", "r.d + r.e"][random.usize(0..3)];
        let kinds = ["", "lru ", "lpm ", "array "];
        let kind = kinds[random.usize(0..kinds.len())];
        let (ty, key) = match (kind, random.u32(0..3)) {
            ("lpm ", _) => ("uint", format!("(({part}) & {mask}) * 0x10204081")),
            ("array ", _) => ("uchar", format!("({part}) & {mask}")),
            (_, 0) => ("K", String::new()),
            (_, 1) => ("uint100", format!("(uint100)(({part}) & {mask}) << 70")),
            _ => ("uint", format!("({part}) & {mask}")),
        };
        let key = match ty {
            "K" => format!("K key = {{ r.c & {mask}, r.f & 1, r.d & 1 }};"),
            ty => format!("{ty} key = {key};"),
        };
        let length = if kind == "lpm " { ", r.d % 34" } else { "" };
        let body = format!(
            "        if (test_input_port(in)) {{
            R r = read_input_port(in);
            {key}
            V *v = entries.lookup(key);
            if (v) {{
                v->n += r.a;
                v->odd ^= r.b;
                v->low += 1;
                v->w[r.e & 3] += r.c;
                r.b ^= v->w[0] + v->high;
            }} else {{
                V fresh = {{ r.a, r.b }};
                if (!entries.update(key{length}, fresh)) r.e += 1;
            }}
{scramble}            if ({cond}) r.d += entries.delete(key{length});
            if (v && v->n != 7) {{ v->n += 1; v->high = r.c; }}
            V *again = entries.lookup(key);
            if (again != 0) r.a += again->n;
            else r.c += 1;
            set_output_port(out, r);
        }}
"
        );
        state(&format!("        {kind}table<{ty}, V> entries[{capacity}];\n"))
            + &handler_only(&body)
    }

    /// Sends each record several times, by firings that do not wait for input.
    fn repeat_record(&mut self) -> String {
        let scramble = self.scramble_record();
        let body = format!(
            "        if (left > 0) {{\n            left -= 1;\n            R r = kept;\n\
             {scramble}            set_output_port(out, r);\n            \
             return left > 0 ? 0 : in;\n        }}\n        \
             if (test_input_port(in)) {{\n            kept = read_input_port(in);\n            \
             left = kept.b & 3;\n            set_output_port(out, kept);\n        }}\n        \
             return left > 0 ? 0 : in;\n"
        );
        state("        R kept;\n        uchar left;\n") + &handler_only(&body)
    }

    fn merge_records(&mut self) -> String {
        let (scramble, cond) = (self.scramble_record(), self.condition());
        handler(&format!(
            "        R r;\n        uint ready = get_input_port();\n        \
             if (test_input_port(a) && (!test_input_port(b) || (peek_input_port(a).a & 1))) {{\n\
             \x20           r = read_input_port(a);\n{scramble}        \
             }} else if (ready & b) {{\n            r = read_input_port(b);\n        }} else {{\n\
             \x20           return a | b;\n        }}\n        if ((ready & 3) || ({cond})) \
             set_output_port(out, r);\n"
        ))
    }

    fn alternate_records(&mut self) -> String {
        let scramble = self.scramble_record();
        handler(&format!(
            "        R r;\n        if (test_input_port(a)) {{\n            \
             r = read_input_port(a);\n{scramble}            set_output_port(out, r);\n            \
             return b;\n        }}\n        if (test_input_port(b)) {{\n            \
             r = read_input_port(b);\n            r.f += 1;\n            \
             set_output_port(out, r);\n        }}\n        return a;\n"
        ))
    }

    fn pair_records(&mut self) -> String {
        let scramble = self.scramble_record();
        handler(&format!(
            "        R r = read_input_port(a);\n        R q = read_input_port(b);\n        \
             r.a += q.a;\n        r.f ^= q.f;\n{scramble}        set_output_port(out, r);\n"
        ))
    }

    fn map_flit(&mut self) -> String {
        let fields = [("r.fdata[3]", 8), ("r.fdata[12]", 8), ("r.data", 256), ("r.fdata[31]", 8)];
        let scramble = self.scramble(&fields);
        let mut body = format!(
            "        if (test_input_port(in)) {{\n            flit r = read_input_port(in);\n\
             {scramble}            *(uint *)(r.fdata + 8) += (uint)s;\n            \
             set_output_port(out, r);\n        }}\n"
        );
        if self.writer.random.bool() {
            body = body.replace("r.data", "(*(ulong *)(r.fdata + 16))");
        }
        handler(&body)
    }

    fn route_flit(&mut self) -> String {
        let cond =
            ["fdata[5] & 1", "data[9:4] > 20", "fdata[0] % 3 == 0"][self.writer.random.usize(0..3)];
        handler(&format!(
            "        if (test_input_port(in)) {{\n            \
             flit r = read_input_port(in);\n            \
             if (r.sop) s = r.{cond} ? 1 : 2;\n            \
             m[(uint)s & 31] += 1;\n            t += 1;\n            \
             if (s == 1) set_output_port(one, r);\n            \
             else set_output_port(two, r);\n        }}\n"
        ))
    }

    fn summarise_flit(&mut self) -> String {
        let scramble = self.scramble_record();
        handler(&format!(
            "        if (test_input_port(in)) {{\n            \
             flit x = read_input_port(in);\n            \
             set_output_port(one, x);\n            \
              if (x.flit.fd.eop) {{\n            R r;\n            \
             r.a = *(ulong *)x.fdata;\n            r.b = x.pad;\n            r.c = \
             *(ushort *)(x.fdata + 12);\n\
              {scramble}            set_output_port(two, r);\n            \
             }}\n            s += 1;\n        }}\n"
        ))
    }
}

/// Keeps the chosen port from sop to eop, as every arbiter of packets must.
const MERGE_FLITS: &str = "
    .state { uchar holds; ulong s; }
    .handler {
        flit r;
        if (holds != 2 && test_input_port(a)) {
            r = read_input_port(a);
            holds = r.eop ? 0 : 1;
        } else if (holds != 1 && test_input_port(b)) {
            r = read_input_port(b);
            holds = r.eop ? 0 : 2;
        } else {
            return holds == 1 ? a : holds == 2 ? b : a | b;
        }
        s += r.fdata[0];
        set_output_port(out, r);
        return holds == 1 ? a : holds == 2 ? b : a | b;
    }
";

fn state(more: &str) -> String {
    format!(
        "    .state {{\n        ulong s;\n        int23 t;\n        uint m[32];\n{more}    }}\n"
    )
}

fn handler(body: &str) -> String {
    state("") + &handler_only(body)
}

fn handler_only(body: &str) -> String {
    format!("    .handler {{\n{body}    }}\n")
}
