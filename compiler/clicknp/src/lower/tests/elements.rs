// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements: ports, state, signals, async blocks.

use super::{errors, lowered, with_instance};
use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::{Bits, InstanceId, SIGNAL_BITS, SIGNAL_PARAM_BIT, Space};

const COUNT: &str = ".element Count (flit in -> flit out) { .state { ulong count; } .init { count = 0; } .handler { if (test_input_port(in)) { flit x; x = read_input_port(in); if (x.flit.fd.sop) count = count + 1; set_output_port(out, x); } } .signal { ClSignal p; p.Sig.LParam[0] = count; set_signal(p); } }";

#[test]
fn the_published_counter_counts_packets_and_answers_signals() {
    let program = with_instance(COUNT);
    let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
    let (input, output) =
        (interpreter.endpoint("in").unwrap(), interpreter.endpoint("out").unwrap());
    let packets: Vec<Vec<u8>> = (1..=5).map(|at| vec![at; 30 * at as usize]).collect();
    for packet in &packets {
        interpreter.feed_packet(input, packet).unwrap();
    }
    interpreter.run(10_000).unwrap();
    assert_eq!(interpreter.take_packets(output).unwrap(), packets);
    let answer = interpreter.signal(InstanceId(0), Bits::zero(SIGNAL_BITS)).unwrap();
    assert_eq!(answer.extract(SIGNAL_PARAM_BIT, 64).to_u64(), 5);
}

/// Runs an element with `uint` ports on what is fed to its first port; what leaves by its first.
fn outputs(text: &str, fed: &[u64]) -> Vec<u64> {
    let program = with_instance(text);
    let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
    let input = interpreter.endpoint(&program.elements[0].inputs[0].name).unwrap();
    let output = interpreter.endpoint(&program.elements[0].outputs[0].name).unwrap();
    for item in fed {
        interpreter.feed_item(input, Bits::from_u64(32, *item)).unwrap();
    }
    interpreter.run(100_000).unwrap();
    interpreter.take_items(output).unwrap().iter().map(Bits::to_u64).collect()
}

#[test]
fn async_blocks_change_the_locals_they_assign() {
    let text = ".element Cache (uint in -> uint out) {
        .state { uint line = 7; global uint memory[1000]; }
        .handler {
            uint key = read_input_port(in);
            uint value = 1;
            uint pair[2] = { 100, 200 };
            if (key != line) {
                .async { value = memory[key] + pair[1]; memory[key] = key; pair[0] = value; }
            }
            set_output_port(out, value + pair[0]);
        } }";
    assert_eq!(outputs(text, &[7, 5, 5]), [101, 400, 410]);
    let program = lowered(text).unwrap();
    let spaces: Vec<Space> = program.elements[0].state.iter().map(|one| one.space).collect();
    assert_eq!(spaces, [Space::Register, Space::Global]);
}

#[test]
fn port_arrays_are_indexed_by_computed_numbers() {
    let text = ".element Spread <uint N = 3> (uint in -> uint out[N]) {
        .handler {
            uint x = read_input_port(in);
            set_output_port(out[x % N], x);
            if (x == 4) { set_output_port(1, 44); }
        } }";
    assert_eq!(outputs(text, &[0, 1, 2, 3, 4, 5, 6]), [0, 3, 44, 6]);
    let program = lowered(text).unwrap();
    assert_eq!(program.elements[0].name, "Spread<3>");
    let names: Vec<_> = program.elements[0].outputs.iter().map(|port| &port.name).collect();
    assert_eq!(names, ["out[0]", "out[1]", "out[2]"]);
}

#[test]
fn a_mask_chooses_the_next_ports() {
    let text = ".element Turn (uint a, uint b -> uint out) {
        .state { bool turn; }
        .init { turn = false; }
        .handler {
            if (get_input_port() & a) { set_output_port(out, read_input_port(a) + 100); return b; }
            if (test_input_port(b)) { set_output_port(out, read_input_port(2)); }
            return a;
        } }";
    let program = with_instance(text);
    let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
    for (name, items) in [("a", [1, 2, 3]), ("b", [4, 5, 6])] {
        let port = interpreter.endpoint(name).unwrap();
        for item in items {
            interpreter.feed_item(port, Bits::from_u64(32, item)).unwrap();
        }
    }
    interpreter.run(10_000).unwrap();
    let output = interpreter.endpoint("out").unwrap();
    let items = interpreter.take_items(output).unwrap();
    let numbers: Vec<_> = items.iter().map(Bits::to_u64).collect();
    assert_eq!(numbers, [101, 4, 102, 5, 103, 6]);
}

#[test]
fn a_checksum_is_summed_over_flits() {
    let text = ".element Sum (flit in -> uint out) {
        .state { uint sum; }
        .handler {
            flit x = read_input_port(in);
            if (x.sop) { sum = 0; }
            ushort *words = (ushort *)x.fdata;
            for (int i = 0; i < 16; i++) { sum += ntohs(words[i]); }
            if (x.eop) {
                uint folded = (sum & 0xffff) + (sum >> 16);
                folded = (folded & 0xffff) + (folded >> 16);
                set_output_port(out, folded ^ 0xffff);
            }
        } }";
    let program = with_instance(text);
    let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
    let input = interpreter.endpoint("in").unwrap();
    // The IPv4 header of RFC 1071's kind, whose checksum field (bytes 10 and 11) is 0xb861.
    let header =
        [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
    let mut long = vec![0; 64];
    long[40..60].copy_from_slice(&header);
    for packet in [&header[..], &long] {
        interpreter.feed_packet(input, packet).unwrap();
    }
    interpreter.run(10_000).unwrap();
    let output = interpreter.endpoint("out").unwrap();
    let items = interpreter.take_items(output).unwrap();
    assert_eq!(items.iter().map(Bits::to_u64).collect::<Vec<_>>(), [0xb861, 0xb861]);
}

#[test]
fn many_errors_are_found_in_one_go() {
    let text = ".element E (uint in -> uint out) { .handler {
        uint a = missing;
        flit f; f.nothing = 1;
        set_output_port(in, 1);
        a = f;
        break;
    } }";
    let found = errors(text);
    for code in ["E0201", "E0204", "E0403", "E0206", "E0302"] {
        assert!(found.contains(code), "{code} is not in\n{found}");
    }
}
