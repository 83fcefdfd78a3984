// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The text form: a program that uses everything survives a round trip, and errors are reported at
//! their position.

use freeport_ir::text::{parse, print};
use freeport_ir::{BlockId, Program, ValueId, verify};
use std::collections::BTreeSet;

const EVERYTHING: &str = include_str!("text/everything.ir");

/// Names of all operations, as the type spells them.
const OPERATIONS: &str = "Const Unary Binary Compare Select ZeroExtend SignExtend Truncate Extract \
    ExtractDynamic Insert InsertDynamic Concat Handle NullRef RefIsValid RefOffset RefLoad \
    RefStore Load Store LoadBytes StoreBytes TableLookup TableUpdate TableDelete ReadyMask Ready \
    Peek Take Put NewPacket PacketLength PacketLoad PacketStore PacketAdjustHead \
    PacketAdjustTail Now Random Call CallMethod Probe";

const TERMINATORS: &str = "Jump Branch Switch Done Suspend Return Trap";

fn parsed(text: &str) -> Program {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the first word of the debug form, which is the name of the variant.
fn variant(thing: &impl std::fmt::Debug) -> String {
    let text = format!("{thing:?}");
    text.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

#[test]
fn everything_is_printed_as_it_was_written() {
    let program = parsed(EVERYTHING);
    let printed = print(&program);
    for (at, (want, got)) in EVERYTHING.lines().zip(printed.lines()).enumerate() {
        assert_eq!(got, want, "line {}", at + 1);
    }
    assert_eq!(printed, EVERYTHING);
    assert_eq!(parsed(&printed), program);
}

#[test]
fn the_program_that_uses_everything_does() {
    let program = parsed(EVERYTHING);
    let blocks: Vec<_> = program.functions.iter().flat_map(|each| &each.blocks).collect();
    let ops: BTreeSet<String> =
        blocks.iter().flat_map(|block| &block.insts).map(|inst| variant(&inst.op)).collect();
    assert_eq!(ops, OPERATIONS.split_whitespace().map(str::to_owned).collect());
    let terms: BTreeSet<String> = blocks.iter().map(|block| variant(&block.term)).collect();
    assert_eq!(terms, TERMINATORS.split_whitespace().map(str::to_owned).collect());
}

#[test]
fn values_and_functions_in_any_order_keep_their_indexes() {
    let mut program = parsed(EVERYTHING);
    program.functions.swap(0, 1);
    program.functions.swap(2, 6);
    for function in &mut program.functions {
        let last = function.values.len().saturating_sub(1);
        if last == 0 {
            continue;
        }
        function.values.swap(0, last);
        let swap = |value: ValueId| match value.index() {
            0 => ValueId::new(last),
            at if at == last => ValueId(0),
            _ => value,
        };
        for block in &mut function.blocks {
            block.params.iter_mut().for_each(|value| *value = swap(*value));
            for inst in &mut block.insts {
                inst.result = inst.result.map(swap);
                inst.op.map_operands(swap);
            }
            block.term.map_operands(swap);
        }
    }
    let text = print(&program);
    let again = parsed(&text);
    assert_eq!(again, program, "{text}");
    assert_eq!(print(&again), text);
}

#[test]
fn what_the_verifier_would_reject_has_a_text_too() {
    let mut program = parsed(EVERYTHING);
    let handler = program.elements[0].handler;
    program.functions[handler.index()].values[6].ty = freeport_ir::Type::Bits(3);
    program.elements[0].inputs[1].name = "in".to_owned();
    program.elements[1].handler = handler;
    program.graph.instances[1].element.0 = 77;
    let text = print(&program);
    assert_eq!(parsed(&text), program, "{text}");
}

#[test]
fn labels_and_names_are_free_and_several_things_may_share_a_line() {
    let text = "element E { in in: flit; out out: flit; handler { \
        start: %r = ready in; br %r, take, end \
        take: %f = take in; put out, %f; jump end \
        end: done } } // all of it";
    let handler = &parsed(text).functions[0];
    assert_eq!(handler.name, "E.handler");
    assert_eq!(handler.blocks.len(), 3);
    assert_eq!(handler.blocks[0].term.targets()[1].block, BlockId(2));
    assert_eq!(handler.values[1].name.as_deref(), Some("f"));
}

/// Returns a text with one to three of its words replaced by others from it, removed, or doubled.
fn shuffled(text: &str, random: &mut fastrand::Rng) -> String {
    let is_edge = |char: char| !char.is_ascii_alphanumeric() && char != '_';
    let mut words: Vec<&str> = text.split_inclusive(is_edge).collect();
    for _ in 0..random.usize(1..=3) {
        let at = random.usize(..words.len());
        match random.u8(0..4) {
            0 => drop(words.remove(at)),
            1 => words.insert(at, words[at]),
            _ => words[at] = words[random.usize(..words.len())],
        }
    }
    words.concat()
}

#[test]
fn a_damaged_text_is_an_error_or_another_program_and_never_a_panic() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut parsed_count, mut sound_count) = (0, 0);
    for round in 0..2_000 {
        let whole = [EVERYTHING, include_str!("text/sound.ir")][round % 2];
        let text = shuffled(whole, &mut random);
        let Ok(program) = parse(&text) else { continue };
        parsed_count += 1;
        sound_count += usize::from(verify(&program).is_ok());
        let printed = print(&program);
        assert_eq!(parse(&printed).as_ref(), Ok(&program), "{text}");
        assert_eq!(print(&parsed(&printed)), printed, "{text}");
    }
    assert!(parsed_count > 50 && sound_count > 5, "{parsed_count}, {sound_count}");
}

#[test]
fn instances_may_have_the_names_of_words() {
    let text = "element E { in in: flit out out: flit handler { entry: done } }
        graph { endpoint drop: into flit endpoint item: out_of flit
        instance instance: E instance host: E
        instance.out -> host.in drop -> instance.in host.out -> item }";
    let program = parsed(text);
    assert_eq!(program.graph.channels.len(), 3);
    assert!(!program.graph.instances[1].host);
    assert_eq!(parsed(&print(&program)), program);
}

/// Asserts the error for an invalid text.
fn rejected(text: &str, want: &str) {
    let error = parse(text).expect_err(text);
    let got = format!("{}:{}: {}", error.line, error.column, error.message);
    assert_eq!(got, want, "{text}");
}

#[test]
fn an_error_points_at_its_place() {
    let error = parse("element E {\n  in in: flat\n}").expect_err("`flat` is no item");
    let want = "2:10: expected `flit`, `bits<width>` or `packet<window bytes>`, found `flat`\n    \
        2 |   in in: flat\n      |          ^";
    assert_eq!(error.to_string(), want);
}

#[test]
fn mistakes_are_reported_where_they_are() {
    let body = |body: &str| format!("fn @f(%a: bits<8>) {{\nentry:\n{body}\nret\n}}");
    rejected("element E { }", "1:11: this element has no handler");
    rejected("fn @f() { }", "1:4: a function has at least one block");
    rejected("fn @f() { entry: jump there }", "1:23: no block has that name");
    rejected("fn @f() { entry: ret %x }", "1:22: this value is defined nowhere");
    rejected(&body("%a = const 1:8"), "3:1: this value is defined above");
    rejected(&body("%5 = const 1:8"), "3:1: values are numbered without gaps, here from 0 to 1");
    rejected(&body("%0 = const 1:8"), "3:1: another value has that number");
    rejected(&body("%b = const 256:8"), "3:12: this does not fit 8 bits");
    rejected(&body("%b = const -129:8"), "3:12: this does not fit 8 bits");
    rejected(&body("%b = const 12"), "4:1: expected `:` and the constant's width, found `ret`");
    rejected(&body("%b = const 0xg:8"), "3:12: `0xg` is not a number");
    rejected(&body("%b = const 1:0"), "3:14: a width is from 1 to 1048576 bits");
    rejected(&body("%b = const 1:4000000000"), "3:14: a width is from 1 to 1048576 bits");
    rejected(&body("%b = fly %a"), "3:6: expected an operation, found `fly`");
    rejected(&body("%b = load x[%a]"), "3:11: no object has the name `x`");
    rejected(&body("%b = take in"), "3:11: no input port has the name `in`");
    rejected(&body("call @g() inline"), "3:6: no function has the name `g`");
    rejected(&body("call @f(%a)"), "4:1: expected `inline`, `element` or `async`, found `ret`");
    rejected(&body("%b = add %c, %c %c = add %b, %b"), TYPE_UNKNOWN);
    let switch = "fn @f(%a: bits<8>) { e: switch %a { 300 -> b, else -> b } b: ret }";
    rejected(switch, "1:37: this does not fit 8 bits");
    rejected(&body("?"), "3:1: a character that has no meaning here: `?`");
    rejected("fn @f() \"open", "1:9: a text without its closing quote");
    rejected("fn @f #1() { entry: ret }", "1:4: functions are numbered without gaps: 0 is missing");
    rejected("graph { a -> b }", "1:9: no endpoint has the name `a`");
}

const TYPE_UNKNOWN: &str = "3:1: the type of this value does not follow from its operation";
