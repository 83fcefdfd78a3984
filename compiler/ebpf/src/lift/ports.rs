// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports of an element around a lifted program: by which a packet comes, and by which it leaves for
//! a verdict.

use super::element::{TARGET, TURN_VARIABLE};
use crate::abi::verdict;
use freeport_ir::{
    BinaryOp, Bits, BlockId, Builder, CompareOp, Item, Loc, ObjectRef, Op, Port, PortId, Target,
    Term, Type, ValueId,
};

/// Bytes of a packet that programs read first, as a rule.
const WINDOW_BYTES: u32 = 64;
const PACKETS: Item = Item::Packet { window_bytes: WINDOW_BYTES };

/// Which ports an element has. Packets that are dropped or aborted end where there is no port for
/// them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ports {
    /// `in`; `out` for every packet, whatever becomes of it, and `verdict` for what that is: 32
    /// bits of verdict, below 32 bits of device.
    Verdicts,
    /// `in`; `pass`, `tx` and `redirect` for the packets that get this verdict.
    ByVerdict,
    /// For each of these devices, of which none is there twice, `in_N` for packets that come from
    /// it, and `out_N` for those that are sent back or redirected there; `pass`; and `redirect` for
    /// those that are redirected to any other device.
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

    /// The device that packets of an input come from, if that is known by the input.
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

/// The blocks in which a packet of each input is there, begun from the block that is open: that, if
/// there is one input. Of several that have packets, the one whose turn it is goes first, so that
/// none waits for ever.
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

/// Takes the packet of an input; gives it, and the block that the program ends in, whose parameter
/// is the verdict.
pub(super) fn begin(builder: &mut Builder, input: usize) -> (ValueId, BlockId) {
    let packet = builder.push(Op::Take(PortId::new(input)), Type::Packet);
    let epilogue = builder.new_block();
    builder.add_param(epilogue, Type::Bits(32), Some("verdict".into()));
    (packet, epilogue)
}

/// Puts a packet of an input where the verdict says.
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

/// A block that puts a packet to an output.
fn put(builder: &mut Builder, output: usize, packet: ValueId) -> BlockId {
    let block = builder.new_block();
    builder.switch_to(block);
    builder.push_effect(Op::Put { port: PortId::new(output), value: packet });
    builder.end(Term::Done { mask: None });
    block
}

/// A block in which a packet ends.
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

/// The device that the packet is redirected to.
fn target(builder: &mut Builder) -> ValueId {
    let zero = builder.number(32, 0);
    builder.load(ObjectRef::Local(TARGET), zero, 0, 32)
}
