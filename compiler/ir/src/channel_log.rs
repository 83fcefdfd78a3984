// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Channel logs (ClickNP 3.7): an element inserted into a channel that logs each item and forwards
//! it. It is built from ordinary operations, so it works on every device, and its output is bounded
//! and counted like that of any probe.
//!
//! `a.out -> b.in` becomes `a.out -> log1.in` and `log1.out -> b.in`. A lossy channel still drops
//! in front of the log; the capacity doubles.

use crate::flit::{EOP_BIT, PAD_BIT, PAD_BITS, PAYLOAD_BYTES, SOP_BIT};
use crate::{
    Builder, Channel, ChannelId, CompareOp, Element, ElementId, Function, FunctionId, Instance,
    InstanceId, Item, Loc, OnFull, Op, Port, PortId, Probe, Program, Sink, Source, Target, Term,
    Type, UnaryOp, ValueId,
};

/// Number of bytes logged from the start of a packet.
const PACKET_BYTES: u32 = 32;

/// A requested channel does not exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no channel {name}; there are {}", .known.join(", "))]
pub struct NoChannel {
    /// Requested name.
    pub name: String,
    /// Names of the program's channels.
    pub known: Vec<String>,
}

/// Inserts logs into the named channels, such as `cnt.out -> tee.in`; `all` selects every channel.
///
/// # Errors
/// A requested channel does not exist.
pub fn log_channels(program: &mut Program, names: &[String]) -> Result<(), NoChannel> {
    let known = channel_names(program);
    match names.iter().find(|name| !is_meant(name, &known)) {
        Some(name) => Err(NoChannel { name: name.clone(), known }),
        None => {
            log_known_channels(program, names);
            Ok(())
        }
    }
}

/// Inserts logs into the channels that the program has; returns the requested names that it does
/// not have.
pub fn log_known_channels(program: &mut Program, names: &[String]) -> Vec<String> {
    let known = channel_names(program);
    for (at, channel) in known.iter().enumerate() {
        if names.iter().any(|name| means(name, channel)) {
            splice(program, ChannelId::new(at), channel);
        }
    }
    names.iter().filter(|name| !is_meant(name, &known)).cloned().collect()
}

fn channel_names(program: &Program) -> Vec<String> {
    program.graph.channels.iter().map(|channel| program.channel_name(channel)).collect()
}

/// Returns whether a name selects a channel.
fn is_meant(name: &str, known: &[String]) -> bool {
    name == "all" || known.iter().any(|channel| means(name, channel))
}

fn means(name: &str, channel: &str) -> bool {
    let squeezed = |name: &str| name.split_whitespace().collect::<String>();
    name == "all" || squeezed(name) == squeezed(channel)
}

/// Inserts a log into a channel, which keeps its number and its source.
fn splice(program: &mut Program, id: ChannelId, name: &str) {
    let item = program.graph.channels[id.index()].item;
    let element = ElementId::new(program.elements.len());
    let function = FunctionId::new(program.functions.len());
    program.functions.push(Function::new("", Some(element), Loc::default()));
    let port = |name: &str| Port { name: name.into(), item, loc: Loc::default() };
    let instance_name = unused_name(program);
    program.elements.push(Element {
        name: format!("ChannelLog({name})"),
        inputs: vec![port("in")],
        outputs: vec![port("out")],
        state: vec![],
        tables: vec![],
        init: None,
        handler: function,
        signal: None,
        methods: vec![],
        await_all: false,
        initiation_interval: 1,
        loc: Loc::default(),
    });
    program.functions[function.index()] = handler(element, item, name);
    let instance = InstanceId::new(program.graph.instances.len());
    program.graph.instances.push(Instance {
        name: instance_name,
        element,
        host: false,
        controlled: false,
        verilog: false,
        loc: Loc::default(),
    });
    let channel = &mut program.graph.channels[id.index()];
    let sink = std::mem::replace(&mut channel.sink, Sink::Port(instance, PortId::new(0)));
    let source = Source::Port(instance, PortId::new(0));
    let behind = Channel { source, sink, on_full: OnFull::Block, ..channel.clone() };
    program.graph.channels.push(behind);
}

fn unused_name(program: &Program) -> String {
    let is_used = |name: &str| program.graph.instances.iter().any(|it| it.name == name);
    let mut number = 1;
    while is_used(&format!("log{number}")) {
        number += 1;
    }
    format!("log{number}")
}

/// Builds a handler that takes an item, logs it and forwards it.
fn handler(element: ElementId, item: Item, name: &str) -> Function {
    let function = Function::new("ChannelLog.handler", Some(element), Loc::default());
    let mut build = Builder::new(function);
    let value = build.push(Op::Take(PortId::new(0)), item.value_type());
    match item {
        Item::Flit => {
            let fields = [(SOP_BIT, 1), (EOP_BIT, 1), (PAD_BIT, PAD_BITS)];
            let mut args = fields.map(|(lo, width)| build.extract(value, lo, width)).to_vec();
            let payload = build.extract(value, 0, 8 * PAYLOAD_BYTES as u32);
            args.push(in_order(&mut build, payload));
            let digits = 2 * PAYLOAD_BYTES;
            tell(&mut build, name, &format!("sop=%u eop=%u pad=%u %0{digits}x"), args);
        }
        Item::Bits(width) => {
            let digits = width.div_ceil(4);
            tell(&mut build, name, &format!("%0{digits}x"), vec![value]);
        }
        Item::Packet { window_bytes } => {
            tell_packet(&mut build, name, value, window_bytes.min(PACKET_BYTES));
        }
    }
    build.push_effect(Op::Put { port: PortId::new(0), value });
    build.end(Term::Done { mask: None });
    build.finish()
}

/// Logs a packet's length, and its first bytes if the packet is long enough.
fn tell_packet(build: &mut Builder, name: &str, packet: ValueId, bytes: u32) {
    let length = build.push(Op::PacketLength(packet), Type::Bits(32));
    let (long, short, end) = (build.new_block(), build.new_block(), build.new_block());
    let least = build.number(32, u64::from(bytes));
    let is_short = build.compare(CompareOp::ULt, length, least);
    build.branch(is_short, short, long);
    build.switch_to(long);
    let offset = build.number(8, 0);
    let load = Op::PacketLoad { packet, offset, bytes };
    let beginning = build.push(load, Type::Bits(8 * bytes));
    let beginning = in_order(build, beginning);
    let digits = 2 * bytes;
    tell(build, name, &format!("%u bytes %0{digits}x"), vec![length, beginning]);
    build.end(Term::Jump(Target { block: end, args: vec![] }));
    build.switch_to(short);
    tell(build, name, "%u bytes", vec![length]);
    build.end(Term::Jump(Target { block: end, args: vec![] }));
    build.switch_to(end);
}

/// Converts bytes to a number whose first digits are those of the first byte.
fn in_order(build: &mut Builder, bytes: ValueId) -> ValueId {
    build.unary(UnaryOp::ByteSwap, bytes)
}

fn tell(build: &mut Builder, name: &str, format: &str, args: Vec<ValueId>) {
    let probe = Probe::Printf(format!("{} {format}", name.replace('%', "%%")));
    build.push_effect(Op::Probe { probe, args });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::{Interpreter, Options};
    use crate::{Bits, text, verify};

    /// Returns an element that forwards all items between endpoints that carry `item`.
    fn program(item: &str) -> Program {
        let source = format!(
            "program pass\n\
             element Pass {{\n in in: {item}\n out out: {item}\n\
             handler {{\n entry:\n %x = take in\n put out, %x\n done\n }}\n}}\n\
             graph {{\n instance log1: Pass\n endpoint a: into {item}\n\
             endpoint b: out_of {item}\n a -> log1.in\n log1.out -> b\n}}\n"
        );
        text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"))
    }

    /// Logs the channel out of the graph; returns the log, and checks that all items arrived.
    fn reported(item: &str, feed: impl Fn(&mut Interpreter<'_>)) -> Vec<String> {
        let mut program = program(item);
        log_channels(&mut program, &["log1.out->b".to_owned()]).unwrap();
        verify(&program).unwrap_or_else(|rules| panic!("{rules:?}"));
        let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
        feed(&mut interpreter);
        interpreter.run(1_000).unwrap();
        let reported = interpreter.take_probes().into_iter();
        assert!(interpreter.history(ChannelId::new(0)) == interpreter.history(ChannelId::new(2)));
        reported
            .map(|event| format!("{}: {}", program.instance(event.instance).name, event.text))
            .collect()
    }

    #[test]
    fn flits_are_told_with_their_marks_and_bytes_in_the_order_of_the_wire() {
        let packet: Vec<u8> = (1..=33).collect();
        let lines = reported("flit", |interpreter| {
            let input = interpreter.endpoint("a").unwrap();
            interpreter.feed_packet(input, &packet).unwrap();
        });
        let payload: String = packet[..32].iter().map(|byte| format!("{byte:02x}")).collect();
        let rest = format!("21{}", "00".repeat(31));
        assert_eq!(
            lines,
            [
                format!("log2: log1.out -> b sop=1 eop=0 pad=0 {payload}"),
                format!("log2: log1.out -> b sop=0 eop=1 pad=31 {rest}"),
            ]
        );
    }

    #[test]
    fn records_are_told_as_numbers_and_packets_with_their_beginning() {
        let lines = reported("bits<12>", |interpreter| {
            let input = interpreter.endpoint("a").unwrap();
            interpreter.feed_item(input, Bits::from_u64(12, 0xab)).unwrap();
        });
        assert_eq!(lines, ["log2: log1.out -> b 0ab"]);
        let lines = reported("packet<64>", |interpreter| {
            let input = interpreter.endpoint("a").unwrap();
            for length in [31, 40] {
                interpreter.feed_packet(input, &vec![7; length]).unwrap();
            }
        });
        let beginning = "07".repeat(32);
        assert_eq!(
            lines,
            [
                "log2: log1.out -> b 31 bytes".to_owned(),
                format!("log2: log1.out -> b 40 bytes {beginning}"),
            ]
        );
    }

    #[test]
    fn all_channels_keep_their_numbers_and_a_wrong_name_tells_which_there_are() {
        let mut program = program("flit");
        let error = log_channels(&mut program, &["a -> b".into()]).unwrap_err().to_string();
        assert_eq!(error, "there is no channel a -> b; there are a -> log1.in, log1.out -> b");
        log_channels(&mut program, &["all".into(), "a -> log1.in".into()]).unwrap();
        let names = program.graph.channels.iter().map(|it| program.channel_name(it));
        let expected =
            ["a -> log2.in", "log1.out -> log3.in", "log2.out -> log1.in", "log3.out -> b"];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        verify(&program).unwrap_or_else(|rules| panic!("{rules:?}"));
    }
}
