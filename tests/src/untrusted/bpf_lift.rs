// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Untrusted eBPF instructions, lifted to the representation if possible: the result is a sound
//! program, and the reference interpreter gives the same results with it as the eBPF interpreter
//! with the instructions, if the program terminates and depends only on the packet.

use super::bpf_program::{LENGTHS, filled, instructions, load};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::interpreter::Packet;
use freeport_ebpf::lift::{Ports, lift};
use freeport_ir::interp::{Interpreter, Options, Schedule};
use freeport_ir::{EndpointId, Op, Program, TableKind};

/// Maximum number of firings for one packet.
const FIRINGS: u64 = 16;

/// Interprets the bytes as slots of a program.
pub fn bpf_lift(bytes: &[u8]) {
    let Some((mut machine, object)) = load(instructions(bytes)) else { return };
    let program = &object.programs[0];
    let lifted = match lift(&object, program, &Ports::Verdicts) {
        Ok(lifted) => lifted.program,
        Err(refusal) => return assert!(!refusal.explain(program).is_empty()),
    };
    if let Err(errors) = freeport_ir::verify(&lifted) {
        panic!("{errors:?}");
    }
    let analysis = Analysis::of(program, &object.maps).expect("it was lifted");
    let is_set = (0..analysis.graph().slots()).all(|slot| analysis.reads_unset(slot).is_none());
    if !is_set || !depends_on_its_packet(&lifted) {
        return;
    }
    let options = Options { schedule: Schedule::RoundRobin, ..Options::default() };
    let mut interpreter = Interpreter::new(&lifted, &options).expect("it is sound");
    let mut packet = Packet::new(&[]).expect("a short one");
    for length in LENGTHS {
        packet.fill(&filled(length)).expect("a short one");
        let expected = machine.run(0, &mut packet);
        if expected.aborted.is_some() {
            // Its effects before that differ, so the maps differ from here on.
            return;
        }
        interpreter.feed_packet(EndpointId(0), &filled(length)).expect("it takes packets");
        interpreter.run(FIRINGS).expect("it runs");
        let packets = interpreter.take_packets(EndpointId(1)).expect("they come out there");
        let verdicts = interpreter.take_items(EndpointId(2)).expect("they come out there");
        assert_eq!(verdicts.len(), 1, "{length} bytes");
        assert_eq!(verdicts[0].to_u64() as u32, expected.verdict, "{length} bytes");
        assert_eq!(packets, [packet.bytes()], "{length} bytes");
    }
}

/// Returns whether it uses no clock, no randomness and no tables that evict, and moves the packet's
/// ends at most once: bytes beyond an end are not the same everywhere.
fn depends_on_its_packet(program: &Program) -> bool {
    let tables = program.elements.iter().flat_map(|element| &element.tables);
    let tables: Vec<TableKind> = tables.map(|table| table.kind).collect();
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    let mut moves = 0;
    blocks.flat_map(|block| &block.insts).all(|inst| match &inst.op {
        Op::Now | Op::Random => false,
        Op::Handle(table) => tables[table.index()] != TableKind::LruHash,
        Op::PacketAdjustHead { .. } | Op::PacketAdjustTail { .. } => {
            moves += 1;
            moves <= 1
        }
        _ => true,
    })
}
