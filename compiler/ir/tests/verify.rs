// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The verifier: a sound program passes, and each rule rejects a program that violates it.

use freeport_ir::interp::{Interpreter, Options};
use freeport_ir::text::{parse, print};
use freeport_ir::{
    EndpointId, FunctionId, LocalId, ObjectRef, Op, PortId, Program, Type, ValueId, verify,
};

const SOUND: &str = include_str!("text/sound.ir");

fn sound() -> Program {
    parse(SOUND).unwrap_or_else(|error| panic!("{error}"))
}

fn messages(program: &Program) -> Vec<String> {
    verify(program).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Asserts that one change of the sound program's text violates a rule.
#[track_caller]
fn rejected(from: &str, to: &str, want: &str) {
    assert_eq!(SOUND.matches(from).count(), 1, "`{from}` stands once");
    let text = SOUND.replace(from, to);
    let program = parse(&text).unwrap_or_else(|error| panic!("{to}: {error}"));
    let messages = messages(&program);
    assert!(messages.iter().any(|each| each.contains(want)), "{to}: {messages:#?}");
}

/// Asserts that one change of the sound program's parts violates a rule.
#[track_caller]
fn broken(change: impl FnOnce(&mut Program), want: &str) {
    let mut program = sound();
    change(&mut program);
    let messages = messages(&program);
    assert!(messages.iter().any(|each| each.contains(want)), "{messages:#?}");
}

#[test]
fn a_sound_program_passes_and_is_printed_as_written() {
    assert_eq!(messages(&sound()), [""; 0]);
    assert_eq!(print(&sound()), SOUND);
}

#[test]
fn an_error_says_where_it_is() {
    let text = SOUND.replace("%long to 16", "%long to 65 !0:7:3");
    let program = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let want = "function E.handler, entry, operation 19 (line 7:3): 64 bits are cut to 65";
    assert_eq!(messages(&program)[0], want);
}

#[test]
fn values_are_defined_once_and_before_use() {
    rejected("%next = add %i, %data", "%next: bits<32> = add %next, %data", LATE);
    rejected("b5:\n", "b5:\n      %far = add %next, %later\n      %later = not %word\n", LATE);
    rejected(
        "br %is_less, b1(%next), b2",
        "br %is_less, b1(%next), b6 b6: %x = not %y jump b5 \
        b7: %y = const 1:1 jump b2",
        LATE,
    );
    rejected(
        "stack key: bytes[16]\n    entry",
        "stack key: bytes[16] unused %gone: bits<1> entry: \
        br %gone, start, start start",
        "value 0 is used but not defined",
    );
    broken(
        |program| {
            let insts = &mut program.functions[3].blocks[0].insts;
            insts[1].result = insts[0].result;
        },
        "value 0 is defined twice",
    );
}

const LATE: &str = "is used where it may not be defined yet";

#[test]
fn every_index_is_in_range() {
    let handler = 3;
    broken(|program| program.elements[0].handler = FunctionId(70), "there is no function 70");
    broken(|program| program.functions[1].owner = Some(freeport_ir::ElementId(9)), "such owner");
    broken(|program| program.functions[1].blocks.clear(), "it has no block");
    broken(|program| program.functions[handler].blocks[1].params[0] = ValueId(99), "no value 99");
    broken(
        |program| {
            program.functions[handler].blocks[0].insts[5].op = Op::Take(PortId(7));
        },
        "it names no input port",
    );
    broken(
        |program| {
            let object = ObjectRef::Local(LocalId(3));
            let index = ValueId(0);
            let op = Op::LoadBytes { object, offset: index, bytes: 1 };
            program.functions[handler].blocks[0].insts[5].op = op;
        },
        "it names no local object",
    );
    broken(
        |program| {
            program.functions[handler].blocks[4].term =
                freeport_ir::Term::Jump(freeport_ir::Target::to(freeport_ir::BlockId(50)));
        },
        "there is no block 50",
    );
    broken(|program| program.functions[handler].values[0].ty = Type::Bits(0), "has no bits");
    broken(
        |program| {
            program.graph.instances[1].element = freeport_ir::ElementId(4);
        },
        "instance two has no element type",
    );
    rejected("one.out -> two.in", "#0.#9 -> two.in item flit", "a channel comes from nowhere");
    rejected("one.out -> two.in", "one.out -> #9", "a channel leads nowhere");
}

#[test]
fn operations_take_the_types_they_are_made_for() {
    rejected("add %word, %data", "add %wide, %data", "operands have 64 and 32 bits");
    rejected("add %word, %data", "add %frame, %data", "value 6 is not a bit vector");
    rejected("ult %word", "ult %odd", "operands have 9 and 32 bits");
    rejected("select %is_less, %word", "select %word, %word", "the condition has 32 bits, not 1");
    rejected("select %is_less, %word", "select %is_less, %ref", "have different types");
    rejected("byteswap %choice", "byteswap %odd", "not a number of whole bytes");
    rejected("zext %word to 64", "zext %word to 31", "32 bits extend to 31");
    rejected("trunc %long to 16", "trunc %long to 65", "64 bits are cut to 65");
    rejected("extract %word[24 +: 8]", "extract %word[25 +: 8]", "bits 25 to 33 are not all");
    rejected("insert %word[24]", "insert %word[25]", "bits 25 to 33 are not all");
    rejected(
        "%all = concat %word, %part",
        "%all: bits<40> = concat %word, %frame",
        "value 6 is not a bit vector",
    );
    rejected("%moved = adjust_head %frame", "%moved = adjust_head %word", "is not a packet");
    rejected("new_packet %length", "new_packet %frame", "value 6 is not a bit vector");
    rejected("%length = length %frame", "%length = length %word", "value 2 is not a packet");
    rejected("put out, %flit", "put out, %word", "the port has items of another type");
    rejected("packet_store %frame, %word, %data", "packet_store %frame, %word, %odd", "bytes");
    rejected("%data = packet_load", "%data: bits<33> = packet_load", "its result is Bits(32)");
    rejected("put out, %flit", "%none: bits<1> = put out, %flit", "it has no result");
    rejected("%swapped = byteswap", "%idle = const 0:1 not %idle %swapped = byteswap", "no name");
}

#[test]
fn objects_references_and_tables_are_used_as_declared() {
    rejected("memory[%zero][16 +: 16]", "memory[%zero][17 +: 16]", "bits 17 to 33 are not all");
    rejected("store memory[%zero][16],", "store memory[%zero][17],", "bits 17 to 33 are not all");
    rejected("mask %short", "mask %word", "operands have 16 and 32 bits");
    rejected("load_bytes key[%zero]", "load_bytes memory[%zero]", "addressed by Element");
    rejected("store_bytes fp[%zero], %bytes", "store_bytes fp[%zero], %odd", "whole bytes");
    rejected("store_bytes fp[%zero], %bytes", "store fp[%zero], %part", "addressed by Byte");
    rejected("lookup %flows, %word", "lookup %word, %word", "value 2 is not a table handle");
    rejected("lookup %flows, %word", "lookup %flows, %wide", "the key has 64 bits, not 32");
    rejected("%flows, %word, %wide", "%flows, %word, %word", "the value has 32 bits, not 64");
    rejected("is_valid %ref", "is_valid %word", "value 2 is not a reference");
    rejected("ref_offset %ref", "ref_offset %word", "value 2 is not a reference");
    rejected("ref_load %further, 32", "ref_load %further, 33", "not a number of whole bytes");
    rejected("ref_store %further, %value", "ref_store %further, %odd", "whole bytes");
}

#[test]
fn blocks_and_loops_are_well_formed() {
    rejected("jump b1(%word)", "jump b1", "b1 has other parameters");
    rejected("jump b1(%word)", "jump b1(%wide)", "b1 has other parameters");
    rejected("br %is_less, b1", "br %word, b1", "the condition has 32 bits, not 1");
    rejected("0x2 -> b4", "0x1 -> b4", "case 0x1 occurs twice");
    rejected("0x2 -> b4", "0x2:9 -> b4", "case 0x2:9 is not 32 bits wide");
    rejected(" loop(bound 8, unroll 2)", "", "the header of a loop says no bound");
    rejected("unroll 2", "unroll 1", "unrolled by 2 or more");
    rejected(
        "jump b1(%word)",
        "br %is_less, b1(%word), b2b b2b: br %is_less, b1b(%word), b2 \
        b1b(%j: bits<32>): br %is_less, b2b, b6 b6: br %is_less, b7, b8 b7: jump b8 \
        b8: br %is_less, b7, b2",
        "which is not its header",
    );
}

#[test]
fn a_cycle_that_suspends_needs_no_bound() {
    let text = SOUND.replace("suspend %mask, b4", "suspend %mask, b3");
    assert_eq!(messages(&parse(&text).expect("it parses")), [""; 0]);
}

#[test]
fn a_block_that_nothing_goes_to_may_lack_its_end() {
    let text = SOUND.replace("trap user 1\n", "trap user 1\n    b6:\n      ret\n");
    assert_eq!(messages(&parse(&text).expect("it parses")), [""; 0]);
}

#[test]
fn handlers_end_firings_and_functions_return() {
    rejected("b4:\n      done %mask", "b4:\n      ret", "a handler does not return");
    rejected("done %mask", "done %zero", "the mask has 1 bits, not 2");
    rejected("suspend %mask", "suspend %zero", "the mask has 1 bits, not 2");
    rejected("ret %signal", "done", "only a handler ends a firing");
    rejected("ret %signal", "ret", "it returns another type than declared");
    rejected("    ret %1", "    %2 = const 1:8 ret %2", "it returns another type than declared");
}

#[test]
fn calls_match_and_never_come_back() {
    rejected("call @plain(%a)", "call @second(%a)", "it calls itself");
    rejected("call @second(%word)", "call @second(%wide)", "second has other parameters");
    rejected("call @second(%word)", "call @second()", "second has other parameters");
    rejected("%swapped = ", "call @far() inline %swapped = ", "far belongs to another element");
    rejected("%swapped = ", "call @Far.handler() inline %swapped = ", "nothing calls it");
    let port = "%zero = const 0x0:1 put out, %to2 jump b1 b1:";
    let port = port.replace("%to2", "%big");
    let change = format!("%big = zext %to to 512 {port}");
    let from = "%zero = const 0x0:1\n      store count";
    rejected(from, &format!("{change} store count"), "outside firings and uses a port");
}

#[test]
fn only_what_has_no_ports_calls_methods_of_others() {
    let call = "%is_done = call_method one.reset(%to)";
    rejected(
        call,
        "%is_done: bits<1> = call_method one.clear()",
        "it has no result, and defines one",
    );
    rejected(call, "%is_done = call_method one.reset()", "E.reset has other parameters");
    rejected(call, "%is_done: bits<1> = call_method one.#9(%to)", "names no method of an instance");
    rejected(call, "%is_done: bits<1> = call_method #9.#0(%to)", "names no method of an instance");
    rejected(call, "%is_done = call_method manager.everything(%to)", "it calls itself");
    let with_port = "element Manager {\n  in in: flit";
    rejected("element Manager {", with_port, "only an element without ports calls methods");
    let handler = "visible\n  handler {\n    entry:\n      done";
    let calling = handler.replace("done", "call @helper() inline done");
    rejected(handler, &calling, "helper runs in a firing and calls a method");
    rejected("%swapped = ", "call_method two.#0() %swapped = ", "names no method of an instance");
    rejected("%swapped = ", "call_method one.clear() %swapped = ", "only an element without ports");
    let nested = "%zero = const 0x0:1\n      store count";
    let nested_call = format!("%x = call_method manager.everything(%to) {nested}");
    rejected(nested, &nested_call, "reset, entry, operation 0: only an element without ports");
    rejected(nested, &nested_call, "it calls itself");
}

#[test]
fn roles_have_their_signatures() {
    rejected("init {", "init(%x: bits<8>) {", "its init has other parameters");
    rejected("signal(%signal: bits<512>)", "signal(%signal: bits<511>)", "its signal has other");
    rejected("reset(%to: bits<64>)", "reset(%p: packet, %to: bits<64>)", "only pass bits");
    rejected("method clear()", "method reset()", "two methods are named reset");
    rejected(
        "handler {\n    entry:\n      %flit",
        "handler(%x: bits<1>) { entry: %flit",
        "its handler",
    );
    rejected("method clear() {\n    entry:\n      ret\n  }", "method clear = @far", "belongs to");
}

#[test]
fn declarations_make_sense() {
    rejected("out other: packet<64>", "out other: packet<0>", "the items of other are empty");
    rejected("reg total: bits<64>[1]", "reg count: bits<64>[1]", "two visible variables");
    rejected("reg total: bits<64>[1]", "reg total: bits<64>[0]", "total is empty");
    rejected("reg total: bits<64>[1]", "reg total: bits<64>[1] firing", "lives for a Firing");
    rejected("reg total: bits<64>[1]", "packet total: bits<64>[1]", "total is neither a packet");
    rejected("stack fp: bytes[64]", "stack fp: bits<9>[64] bytes", "has other elements");
    rejected("{0x7}", "{0x7, 0x8}", "the first contents of count do not fit it");
    rejected("{0x7}", "{0x7:63}", "the first contents of count do not fit it");
    rejected("bits<32> -> bits<64> [16]", "bits<32> -> bits<63> [16]", "not whole bytes");
    rejected("bits<32> -> bits<64> [16]", "bits<32> -> bits<64> [0]", "flows is empty");
    rejected("lpm bits<64>", "lpm bits<32>", "hold only a prefix length");
    rejected("table routes", "table flows", "two tables are named flows");
    rejected("element Far {", "element Far { interval 0", "its interval is 0 clocks");
    broken(|program| program.elements[0].inputs[1].name = "in".into(), "two input ports");
    broken(|program| program.elements[0].outputs[1].name = "out".into(), "two output ports");
    broken(
        |program| {
            let port = program.elements[1].inputs[0].clone();
            program.elements[1].inputs = vec![port; 65];
        },
        "it has 65 inputs, over 64",
    );
}

#[test]
fn every_port_is_joined_once() {
    rejected("  from_tor -> one.in\n", "", "one.in is connected to 0 channels");
    rejected("one.out -> two.in", "from_tor -> two.in", "from_tor is connected to 2 channels");
    rejected("one.out -> two.in", "one.out -> one.in", "one.in is connected to 2 channels");
    rejected("one.out -> two.in", "one.out -> two.in item bits<512>", "carries Bits(512)");
    rejected("from_tor: into flit", "from_tor: out_of flit", "leads out of the graph, not in");
    rejected("frames_out: out_of", "frames_out: into", "leads into the graph, not out");
    rejected("frames_out: out_of packet<64>", "frames_out: out_of packet<65>", "carries Packet");
    rejected("one.out -> two.in", "one.out -> two.in depth 0", "a channel has no room");
    broken(|program| program.graph.instances[1].name = "one".into(), "two instances are named one");
    broken(|program| program.graph.endpoints[1].name = "from_tor".into(), "two endpoints");
}

/// Returns the sound program with one of its words, in one to three places, replaced by another.
fn changed(random: &mut fastrand::Rng) -> String {
    let is_edge = |char: char| !char.is_ascii_alphanumeric() && char != '_';
    let mut words: Vec<&str> = SOUND.split_inclusive(is_edge).collect();
    for _ in 0..random.usize(1..=3) {
        let at = random.usize(..words.len());
        words[at] = words[random.usize(..words.len())];
    }
    words.concat()
}

#[test]
fn what_passes_can_be_run() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut runs = 0;
    for _ in 0..6_000 {
        let text = changed(&mut random);
        let Ok(program) = parse(&text) else { continue };
        if text == SOUND || verify(&program).is_err() {
            continue;
        }
        runs += 1;
        let options = Options { turn_limit: 1_000, ..Options::default() };
        let interpreter = Interpreter::new(&program, &options);
        let mut interpreter = interpreter.unwrap_or_else(|error| panic!("{error}: {text}"));
        for at in 0..program.graph.endpoints.len() {
            // Endpoints out of the graph, and those of records, accept no packet.
            let _ = interpreter.feed_packet(EndpointId::new(at), &[0x5a; 60]);
        }
        let _ = interpreter.run(100);
    }
    assert!(runs > 50, "{runs}");
}
