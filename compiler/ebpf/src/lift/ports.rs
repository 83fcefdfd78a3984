// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports of the element around a lifted program: inputs of packets, and outputs for each verdict.

use super::element::{TARGET, TURN_VARIABLE};
use crate::abi::verdict;
use freeport_ir::{
    BinaryOp, Bits, BlockId, Builder, CompareOp, Item, Loc, ObjectRef, Op, Port, PortId, Target,
    Term, Type, ValueId,
};

/// Bytes at the start of a packet that programs usually read.
const WINDOW_BYTES: u32 = 64;
const PACKETS: Item = Item::Packet { window_bytes: WINDOW_BYTES };

/// Port layout of an element. Packets that are dropped or aborted are discarded if there is no port
/// for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ports {
    /// `in`; `out` for every packet with any verdict, and `verdict` for the verdict: the upper 32
    /// bits are the verdict, the lower 32 bits the device.
    Verdicts,
    /// `in`; `pass`, `tx` and `redirect` for the packets with this verdict.
    ByVerdict,
    /// For each of these devices, which must differ, `in_N` for packets that it receives, and
    /// `out_N` for packets sent back or redirected to it; `pass`; and `redirect` for packets
    /// redirected to any other device.
    Devices(Vec<u32>),
}

impl Ports {
    pub(super) fn inputs(&self) -> Vec<Port> {
        match self {
            Self::Devices(all) => all.iter().map(|it| packets(format!("in_{it}"))).collect(),
            Self::Verdicts | Self::ByVerdict => vec![packets("in")],
        }
    }

    pub(super) fn outputs(&self) -> Vec<Port> {
        match self {
            Self::Verdicts => {
                let verdict =
                    Port { name: "verdict".into(), item: Item::Bits(64), loc: Loc::default() };
                vec![packets("out"), verdict]
            }
            Self::ByVerdict => ["pass", "tx", "redirect"].map(packets).to_vec(),
            Self::Devices(all) => {
                let devices = all.iter().map(|it| packets(format!("out_{it}")));
                devices.chain(["pass", "redirect"].map(packets)).collect()
            }
        }
    }

    /// Returns the device from which packets of an input come, if the input determines it.
    pub(super) fn device(&self, input: usize) -> Option<u32> {
        match self {
            Self::Devices(all) => all.get(input).copied(),
            Self::Verdicts | Self::ByVerdict => None,
        }
    }
}

fn packets(name: impl Into<String>) -> Port {
    Port { name: name.into(), item: PACKETS, loc: Loc::default() }
}

/// Builds the blocks in which a packet of each input is available, beginning in the open block;
/// with one input it is that block itself. If several inputs have packets, the one whose turn it is
/// goes first, so that none starves.
pub(super) fn choose(builder: &mut Builder, inputs: usize) -> Vec<BlockId> {
    if inputs == 1 {
        return vec![builder.block()];
    }
    let zero = builder.number(32, 0);
    let turn = builder.load(TURN_VARIABLE, zero, 0, 32);
    let numbers: Vec<ValueId> = (0..inputs).map(|at| builder.number(32, at as u64)).collect();
    let ready: Vec<ValueId> =
        (0..inputs).map(|at| builder.push(Op::Ready(PortId::new(at)), Type::Bits(1))).collect();
    let mut chosen = builder.number(32, inputs as u64);
    for is_in_turn in [false, true] {
        for at in (0..inputs).rev() {
            let mut takes = ready[at];
            if is_in_turn {
                let follows = builder.compare(CompareOp::ULe, turn, numbers[at]);
                takes = builder.binary(BinaryOp::And, takes, follows);
            }
            let select = Op::Select { cond: takes, if_true: numbers[at], if_false: chosen };
            chosen = builder.push(select, Type::Bits(32));
        }
    }
    let starts: Vec<BlockId> = (0..inputs).map(|_| builder.new_block()).collect();
    let (chooses, none) = (builder.block(), nothing(builder));
    builder.switch_to(chooses);
    switch(builder, chosen, (0..).zip(starts.iter().copied()).collect(), none);
    for (at, start) in starts.iter().enumerate() {
        builder.switch_to(*start);
        let (zero, next) = (builder.number(32, 0), builder.number(32, at as u64 + 1));
        builder.store(TURN_VARIABLE, zero, 0, next);
    }
    starts
}

/// Takes the packet of an input; returns it, and the block in which the program ends, whose
/// parameter is the verdict.
pub(super) fn begin(builder: &mut Builder, input: usize) -> (ValueId, BlockId) {
    let packet = builder.push(Op::Take(PortId::new(input)), Type::Packet);
    let epilogue = builder.new_block();
    builder.add_param(epilogue, Type::Bits(32), Some("verdict".into()));
    (packet, epilogue)
}

/// Sends a packet of an input to the output for the verdict.
pub(super) fn end(
    builder: &mut Builder,
    epilogue: BlockId,
    packet: ValueId,
    ports: &Ports,
    input: usize,
) {
    let found = builder.function().block(epilogue).params[0];
    match ports {
        Ports::Verdicts => {
            builder.switch_to(epilogue);
            let device = target(builder);
            let record = builder.push(Op::Concat(vec![found, device]), Type::Bits(64));
            builder.push_effect(Op::Put { port: PortId(0), value: packet });
            builder.push_effect(Op::Put { port: PortId(1), value: record });
            builder.end(Term::Done { mask: None });
        }
        Ports::ByVerdict => {
            let outputs = [verdict::PASS, verdict::TX, verdict::REDIRECT].into_iter().zip(0..);
            let cases = outputs.map(|(of, output)| (of, put(builder, output, packet))).collect();
            let dropped = nothing(builder);
            builder.switch_to(epilogue);
            switch(builder, found, cases, dropped);
        }
        Ports::Devices(devices) => {
            let passed = put(builder, devices.len(), packet);
            let sent_back = put(builder, input, packet);
            let (redirected, dropped) = (builder.new_block(), nothing(builder));
            builder.switch_to(epilogue);
            let cases = vec![
                (verdict::PASS, passed),
                (verdict::TX, sent_back),
                (verdict::REDIRECT, redirected),
            ];
            switch(builder, found, cases, dropped);
            let cases = devices.iter().zip(0..);
            let cases = cases.map(|(device, out)| (*device, put(builder, out, packet))).collect();
            let elsewhere = put(builder, devices.len() + 1, packet);
            builder.switch_to(redirected);
            let device = target(builder);
            switch(builder, device, cases, elsewhere);
        }
    }
}

/// Builds a block that sends a packet to an output.
fn put(builder: &mut Builder, output: usize, packet: ValueId) -> BlockId {
    let block = builder.new_block();
    builder.switch_to(block);
    builder.push_effect(Op::Put { port: PortId::new(output), value: packet });
    builder.end(Term::Done { mask: None });
    block
}

/// Builds a block in which a packet is discarded.
fn nothing(builder: &mut Builder) -> BlockId {
    let block = builder.new_block();
    builder.switch_to(block);
    builder.end(Term::Done { mask: None });
    block
}

fn switch(builder: &mut Builder, value: ValueId, cases: Vec<(u32, BlockId)>, default: BlockId) {
    let case = |(number, block): (u32, BlockId)| {
        (Bits::from_u64(32, u64::from(number)), Target::to(block))
    };
    let cases = cases.into_iter().map(case).collect();
    builder.end(Term::Switch { value, cases, default: Target::to(default) });
}

/// Returns the device to which the packet is redirected.
fn target(builder: &mut Builder) -> ValueId {
    let zero = builder.number(32, 0);
    builder.load(ObjectRef::Local(TARGET), zero, 0, 32)
}
