// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements: ports, state, signals, async blocks.

use super::{errors, lowered, with_instance};
use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::{Bits, InstanceId, SIGNAL_BITS, SIGNAL_PARAM_BIT, Space};

/// The counter of the publication, rewritten (ClickNP 2.3), character for character.
const COUNT: &str = "
.element Count (flit in -> flit out) {
  .state   { ulong count; }
  .init    { count = 0; }
  .handler {
    if (test_input_port(in)) {
      flit x;
      x = read_input_port(in);
      if (x.flit.fd.sop)
        count = count + 1;
      set_output_port(out, x);
    }
  }
  .signal {
    ClSignal p;
    p.Sig.LParam[0] = count;   // LParam[] = array of word parameters
    set_signal(p);
  }
}
";

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

/// Runs an element with `uint` ports on input to its first port; returns the output of its first
/// port.
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
    // An IPv4 header with a checksum as in RFC 1071; its checksum field (bytes 10 and 11) is
    // 0xb861.
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

#[test]
fn the_host_is_told_the_layout_of_state_and_methods() {
    let text = "struct Entry { uint address; uchar flags : 3; uchar kind : 5; int weight[2]; };
        .element Table <uint N = 4> (uint in -> uint out) {
        .state { Entry entries[N]; uint13 used = 2; const uint LIMIT = N * 2; }
        .handler { set_output_port(out, entries[read_input_port(in)].kind + LIMIT); }
        .method bool insert(uint at, Entry entry) { entries[at] = entry; used++; return true; }
        }";
    let loaded = crate::load::load_text(std::path::Path::new("test.cnp"), text, &[]);
    let mut lowering = super::Lowering::new(&loaded.files, &loaded.sources);
    lowering.check_file(&loaded.files, 0);
    let finished = lowering.finish();
    assert!(finished.diagnostics.is_empty(), "{:?}", finished.diagnostics);
    let layout = &finished.layouts.elements[0];
    let names: Vec<_> =
        layout.variables.iter().map(|one| (one.name.as_str(), one.ty.as_str())).collect();
    assert_eq!(names, [("entries", "Entry[4]"), ("used", "uint13")]);
    let fields: Vec<_> = layout.variables[0]
        .fields
        .iter()
        .map(|one| (one.path.as_str(), one.bit, one.width, one.is_signed))
        .collect();
    let wanted = [
        (".address", 0, 32, false),
        (".flags", 32, 3, false),
        (".kind", 35, 5, false),
        (".weight[0]", 64, 32, true),
        (".weight[1]", 96, 32, true),
    ];
    assert_eq!(fields, wanted);
    let method = &layout.methods[0];
    assert_eq!((method.name.as_str(), method.params[1].1.as_str()), ("insert", "Entry"));
    assert_eq!(method.result.as_ref().map(|result| result.0.as_str()), Some("bool"));
    let element = &finished.program.elements[0];
    assert_eq!(element.state[1].init, [Bits::from_u64(13, 2)]);
    assert_eq!((element.state[0].elem_bits, element.state[0].depth), (128, 4));
    assert_eq!(element.state[0].space, Space::Local);
}

#[test]
fn methods_change_state_between_firings() {
    let text = "struct Pair { uchar key; uint value; };
        .element Table (uint in -> uint out) {
        .state { uint values[256]; }
        .handler { set_output_port(out, values[read_input_port(in)]); }
        .method uint insert(Pair pair) {
            uint before = values[pair.key];
            values[pair.key] = pair.value;
            return before;
        } }";
    let program = with_instance(text);
    let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
    let mut insert = |value: u64| {
        let pair = Bits::from_u64(64, 9 | value << 32);
        interpreter.call_method(InstanceId(0), "insert", vec![pair]).unwrap().unwrap().to_u64()
    };
    assert_eq!([insert(70), insert(80)], [0, 70]);
    let (input, output) =
        (interpreter.endpoint("in").unwrap(), interpreter.endpoint("out").unwrap());
    interpreter.feed_item(input, Bits::from_u64(32, 9)).unwrap();
    interpreter.run(1_000).unwrap();
    assert_eq!(interpreter.take_items(output).unwrap(), [Bits::from_u64(32, 80)]);
}

#[test]
fn places_that_are_chosen_are_kept_and_others_follow_from_use() {
    let text = ".element Places (uint in -> uint out) {
        .state {
            local uint chosen; register uint few[128]; global uint board[2];
            uint scalar; uint fixed[4]; uint moving[4]; uint large[65];
        }
        .handler {
            uint x = read_input_port(in);
            set_output_port(out, moving[x & 3] + fixed[1] + large[2] + few[x & 127]);
        } }";
    let program = with_instance(text);
    let state = &program.elements[0].state;
    let places: Vec<_> =
        state.iter().map(|it| (it.name.as_str(), it.space, it.is_pinned)).collect();
    let wanted = [
        ("chosen", Space::Local, true),
        ("few", Space::Register, true),
        ("board", Space::Global, true),
        ("scalar", Space::Register, false),
        ("fixed", Space::Register, false),
        ("moving", Space::Local, false),
        ("large", Space::Local, false),
    ];
    assert_eq!(places, wanted);
}
