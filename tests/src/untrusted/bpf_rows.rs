// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Untrusted eBPF instructions, compiled for the small processor: the rows keep all rules, and
//! behave like the interpreter if the program terminates and reads nothing uninitialised.

use super::bpf_program::{LENGTHS, filled, instructions, load};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::interpreter::Packet;
use freeport_vliw::encode::{decode, encode};
use freeport_vliw::model::{Mode, Model};
use freeport_vliw::{Options, PASSES, compile_analysed};

/// The first bytes select the disabled passes and the number of lanes, the others are slots.
pub fn bpf_rows(bytes: &[u8]) {
    let Some((options, slots)) = bytes.split_first_chunk().map(|(it, rest)| (options(*it), rest))
    else {
        return;
    };
    let Some((mut machine, object)) = load(instructions(slots)) else { return };
    let program = &object.programs[0];
    let Ok(analysis) = Analysis::of(program, &object.maps) else { return };
    let image = match compile_analysed(program, &analysis, &options) {
        Ok(image) => image,
        Err(unsupported) => return assert!(!unsupported.to_string().is_empty()),
    };
    if let Ok(bytes) = encode(&image) {
        let rows = decode(&bytes, image.machine.lanes.into()).expect("what is encoded is rows");
        assert_eq!(rows.len(), image.rows.len());
    }
    let is_set = (0..analysis.graph().slots()).all(|slot| analysis.reads_unset(slot).is_none());
    let (mut other, _) = load(instructions(slots)).expect("it was loaded before");
    let model = Model::new(vec![Some(image)], Mode::Strict);
    let [mut packet, mut expected] = [(); 2].map(|()| Packet::new(&[]).expect("a short one"));
    for length in LENGTHS {
        packet.fill(&filled(length)).expect("a short one");
        expected.fill(&filled(length)).expect("a short one");
        let wanted = machine.run(0, &mut expected);
        let run = model.run(&mut other, 0, &mut packet).unwrap_or_else(|fault| panic!("{fault}"));
        if wanted.aborted.is_some() || run.outcome.aborted.is_some() || !is_set {
            // The effects of an aborted program differ, so the maps differ from here on.
            return;
        }
        assert_eq!(run.outcome.verdict, wanted.verdict, "{length} bytes");
        assert_eq!(packet.bytes(), expected.bytes(), "{length} bytes");
    }
}

fn options([passes, lanes]: [u8; 2]) -> Options {
    let mut options = match passes {
        0xff => Options::keeping_all(),
        0xfe => Options::plain(),
        _ => Options::default(),
    };
    options.machine.lanes = lanes % 8 + 1;
    let name = PASSES.get(usize::from(passes)).copied().unwrap_or_default();
    if let Some(is_on) = options.pass_mut(name) {
        *is_on = false;
    }
    options
}
