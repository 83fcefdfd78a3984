// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parser's results: relevant tree shapes, and errors after which it continues.

use super::*;
use crate::ast::{
    BinaryOperator, ConfigStatement, ExprKind, PortSelector, Section, Statement, StatementKind,
    TopItem, TypeKind,
};

fn parse(text: &str) -> (File, Vec<String>) {
    let mut sources = SourceMap::default();
    let file = sources.add("test.cnp", text);
    let mut diagnostics = vec![];
    let file = parse_file(&sources, file, &mut diagnostics);
    let render = |diagnostic: &crate::diagnostic::Diagnostic| diagnostic.render(&sources);
    (file, diagnostics.iter().map(render).collect())
}

/// Returns the statements of a function with that body.
fn statements(body: &str) -> Vec<Statement> {
    let (file, errors) = parse(&format!("void f() {{ {body} }}"));
    assert_eq!(errors, [""; 0], "{body}");
    match file.items.into_iter().next() {
        Some(TopItem::Function(function)) => function.body.statements,
        other => panic!("{other:?}"),
    }
}

fn kind(body: &str) -> StatementKind {
    statements(body).into_iter().next().expect("a statement").kind
}

fn expression(text: &str) -> ExprKind {
    match kind(&format!("{text};")) {
        StatementKind::Expr(value) => value.kind,
        other => panic!("{text}: {other:?}"),
    }
}

const COUNT: &str = ".element Count (flit in -> flit out) { .state { ulong count; } \
    .init { count = 0; } .handler { if (test_input_port(in)) { flit x; \
    x = read_input_port(in); if (x.flit.fd.sop) count = count + 1; set_output_port(out, x); } } \
    .signal { ClSignal p; p.Sig.LParam[0] = count; set_signal(p); } }";

const CAPTURE: &str = "Count :: cnt @\nTee :: tee\nhost PktLogger :: logger\n\n\
    from_tor -> cnt -> tee [1] -> to_tor\ntee [2] -> logger\n";

#[test]
fn the_published_counter() {
    let (file, errors) = parse(COUNT);
    assert_eq!(errors, [""; 0]);
    let [TopItem::Element(element)] = &file.items[..] else { panic!("{file:?}") };
    assert_eq!(element.name.text, "Count");
    assert_eq!((element.inputs.len(), element.outputs.len()), (1, 1));
    let [Section::State(state, _), Section::Init(..), Section::Handler(handler, _), signal] =
        &element.sections[..]
    else {
        panic!("{:?}", element.sections)
    };
    assert_eq!(state[0].name.as_ref().map(|name| name.text.as_str()), Some("count"));
    assert!(matches!(signal, Section::Signal(block, _) if block.statements.len() == 3));
    let StatementKind::If(_, then, None) = &handler.statements[0].kind else { panic!() };
    assert!(matches!(&then.kind, StatementKind::Block(block) if block.statements.len() == 4));
}

#[test]
fn the_published_configuration() {
    let (file, errors) = parse(CAPTURE);
    assert_eq!(errors, [""; 0]);
    let mut declared = vec![];
    let mut chains = vec![];
    for item in &file.items {
        match item {
            TopItem::Config(ConfigStatement::Declare(instance)) => declared.push(instance),
            TopItem::Config(ConfigStatement::Connect(chain)) => chains.push(chain),
            other => panic!("{other:?}"),
        }
    }
    let shape: Vec<_> =
        declared.iter().map(|one| (one.name.text.as_str(), one.host, one.controlled)).collect();
    assert_eq!(shape, [("cnt", false, true), ("tee", false, false), ("logger", true, false)]);
    assert_eq!(chains.iter().map(|chain| chain.nodes.len()).collect::<Vec<_>>(), [4, 2]);
    assert!(matches!(chains[0].nodes[2].output, Some(PortSelector::Number(_))));
}

#[test]
fn both_in_one_file_with_groups_arrays_and_edge_options() {
    let text = "Worker<N = 4, flit> :: w#3\nsplit -> w -> merge\nw#2 [bad] -> \
        {depth = 1 << 4, lossy} [in] sink;\ngroup Pair<uint N> (flit in -> flit out) {\n\
        verilog Count :: a @\nbegin [1] -> a -> [out] end }\nuint<8> f(uint<8> x) { return x; }";
    let (file, errors) = parse(text);
    assert_eq!(errors, [""; 0]);
    assert_eq!(file.items.len(), 5);
    let TopItem::Config(ConfigStatement::Connect(chain)) = &file.items[2] else { panic!() };
    assert!(chain.edges[0].lossy && chain.edges[0].depth.is_some());
    assert!(matches!(&chain.nodes[0].output, Some(PortSelector::Name(name)) if name.text == "bad"));
    let TopItem::Group(group) = &file.items[3] else { panic!() };
    assert_eq!(group.statements.len(), 2);
}

#[test]
fn operators_bind_as_in_c() {
    let ExprKind::Binary(BinaryOperator::Or, left, right) =
        expression("a == 1 && b | c << 2 + d || e")
    else {
        panic!()
    };
    assert!(matches!(right.kind, ExprKind::Name(..)));
    let ExprKind::Binary(BinaryOperator::And, _, right) = left.kind else { panic!() };
    let ExprKind::Binary(BinaryOperator::BitOr, _, shift) = right.kind else { panic!() };
    assert!(matches!(shift.kind, ExprKind::Binary(BinaryOperator::Shl, ..)));
    let ExprKind::Binary(BinaryOperator::Sub, left, _) = expression("a - b - c") else { panic!() };
    assert!(matches!(left.kind, ExprKind::Binary(BinaryOperator::Sub, ..)));
    let ExprKind::Assign(None, _, right) = expression("a = b += c") else { panic!() };
    assert!(matches!(right.kind, ExprKind::Assign(Some(BinaryOperator::Add), ..)));
}

/// Returns the value that the first function of a text returns.
fn returned(text: &str) -> ExprKind {
    let (file, errors) = parse(text);
    assert_eq!(errors, [""; 0], "{text}");
    let Some(TopItem::Function(function)) = file.items.into_iter().next() else { panic!("{text}") };
    match function.body.statements.into_iter().last().map(|last| last.kind) {
        Some(StatementKind::Return(Some(value))) => value.kind,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn types_are_known_before_they_are_declared() {
    for later in
        ["struct A { uint a; };", "typedef uint A;", "enum A { B };", "union A { uint a; };"]
    {
        let text = |value: &str| format!("uint f(uint x) {{ return {value}; }} {later}");
        for cast in ["(A)-x", "(A)*x", "(A)&x", "(A)+x", "(A)~x", "(A)x"] {
            assert!(matches!(returned(&text(cast)), ExprKind::Cast(..)), "{cast} {later}");
        }
        assert!(matches!(returned(&text("sizeof(A)")), ExprKind::SizeofType(_)), "{later}");
        let ExprKind::Call(_, args, _) = returned(&text("f<A>(x)")) else { panic!("{later}") };
        assert!(matches!(args[..], [crate::ast::TemplateArg::Type(_)]), "{later}");
    }
}

#[test]
fn a_variable_hides_the_type_of_its_name() {
    let is_binary = |text: &str| match returned(text) {
        ExprKind::Binary(..) => true,
        ExprKind::Cast(..) => false,
        other => panic!("{text}: {other:?}"),
    };
    assert!(is_binary("uint f(uint a) { return (a)-1; } typedef uint a;"));
    assert!(is_binary("uint f() { uint a = 2; return (a)-1; } typedef uint a;"));
    assert!(!is_binary("uint f() { { uint a = 2; } return (a)-1; } typedef uint a;"));
    assert!(!is_binary("uint f() { for (int a = 0; a < 2; a++) {} return (a)-1; } typedef int a;"));
    assert!(!is_binary("uint f() { struct S { uint a; }; return (a)-1; } typedef uint a;"));
    let text = ".element E (uint a ->) { .state { uint b; } .handler { x = (a)-1; x = (b)-1; } } \
        .element F (->) { .handler { x = (a)-1; x = (b)-1; } } typedef uint a; typedef uint b;";
    let (file, errors) = parse(text);
    assert_eq!(errors, [""; 0]);
    let mut kinds = vec![];
    for item in &file.items[..2] {
        let TopItem::Element(element) = item else { panic!() };
        let Some(Section::Handler(handler, _)) = element.sections.last() else { panic!() };
        for statement in &handler.statements {
            let StatementKind::Expr(value) = &statement.kind else { panic!() };
            let ExprKind::Assign(None, _, value) = &value.kind else { panic!() };
            kinds.push(matches!(value.kind, ExprKind::Binary(..)));
        }
    }
    assert_eq!(kinds, [true, true, false, false]);
}

#[test]
fn casts_are_told_from_parentheses() {
    for cast in ["(uint)x", "(uint)-x", "(Header *)x.fdata", "(A **)p", "(Header)x", "(A)(b)"] {
        assert!(matches!(expression(cast), ExprKind::Cast(..)), "{cast}");
    }
    for cast in ["(uint##N)x", "(uint<8>)x", "(unsigned char)x", "(struct A *)p", "(A){1, .b = 2}"]
    {
        assert!(matches!(expression(cast), ExprKind::Cast(..)), "{cast}");
    }
    for binary in ["(a) - b", "(a) * b", "(a) & b", "(a + b) * c"] {
        assert!(matches!(expression(binary), ExprKind::Binary(..)), "{binary}");
    }
    let ExprKind::Unary(_, inner) = expression("*(Header *)x.fdata") else { panic!() };
    assert!(matches!(inner.kind, ExprKind::Cast(..)));
}

#[test]
fn template_calls_are_told_from_comparisons() {
    let ExprKind::Call(name, args, values) = expression("f<N - 1, uint>(x, y)") else { panic!() };
    assert_eq!((name.text.as_str(), args.len(), values.len()), ("f", 2, 2));
    assert!(matches!(expression("f<g<2>(1)>(x)"), ExprKind::Call(_, args, _) if args.len() == 1));
    assert!(matches!(expression("a < b && c > (d)"), ExprKind::Binary(..)));
    assert!(matches!(expression("a < b"), ExprKind::Binary(..)));
}

#[test]
fn declarations_are_told_from_expressions() {
    for text in [
        "uint a, *b, c[4][N];",
        "Header h;",
        "Header *h = &x;",
        "uint##T v = 1;",
        "const uint k = 3;",
        "register uchar r[4] = { 1, 2, };",
        "int<N + 1> s;",
        "struct Pair { uint a : 3; uint b : 29; } pair;",
        "unsigned long long wide;",
        "table<uint, uint> t;",
        "union { uint a; uchar b[4]; } u;",
    ] {
        assert!(matches!(kind(text), StatementKind::Declare(_)), "{text}");
    }
    for text in ["a * 2;", "f(x);", "a[1] = 2;", "x.flit.fd.sop = 1;", "v[7:0] = 1;", "*p = 1;"] {
        assert!(matches!(kind(text), StatementKind::Expr(_)), "{text}");
    }
    let StatementKind::Declare(all) = kind("unsigned char a;") else { panic!() };
    assert!(matches!(&all[0].ty.kind, TypeKind::Named(name, _) if name == "uchar"));
}

#[test]
fn slices_and_conditionals_share_the_colon() {
    assert!(matches!(expression("v[31:16]"), ExprKind::Slice(..)));
    let ExprKind::Slice(_, high, _) = expression("v[a ? 3 : 4 : 0]") else { panic!() };
    assert!(matches!(high.kind, ExprKind::Conditional(..)));
    assert!(matches!(expression("v[i][3]"), ExprKind::Index(..)));
}

#[test]
fn loops_keep_their_pragmas() {
    let StatementKind::Loop(one) = kind("#pragma unroll 4\n#pragma ivdep\nfor (uint i = 0; ; ) ;")
    else {
        panic!()
    };
    assert_eq!(one.pragmas.len(), 2);
    assert!(one.cond.is_none());
    assert!(matches!(kind("#pragma breakpoint \"here\"\n;"), StatementKind::Pragma(_)));
    assert!(matches!(kind(".async { a = 1; }"), StatementKind::Async(_)));
    assert!(matches!(kind("async { a = 1; }"), StatementKind::Async(_)));
}

#[test]
fn labels_in_a_row_share_their_statements() {
    let text = "switch (x) { case 1: case 2: a = 1; break; default: b = 1; }";
    let StatementKind::Switch(_, arms) = kind(text) else { panic!() };
    let shape: Vec<_> = arms.iter().map(|arm| (arm.labels.len(), arm.statements.len())).collect();
    assert_eq!(shape, [(2, 2), (1, 1)]);
}

#[test]
fn one_run_reports_the_errors_of_every_statement_and_item() {
    let text = ".element A (flit in -> flit out) {\n.state { uint a uint b; uint 3; }\n\
        .handler { x = ; y = 1; if (z { w = 2; }\n q + ; }\n.signal { p = ); }\n}\n\
        uint f( { return 1; }\nB :: \nA :: a\nfrom_tor -> a -> -> b\na -> to_tor\n";
    let (file, errors) = parse(text);
    assert!(errors.len() >= 8, "{errors:#?}");
    let is_right =
        |item: &TopItem| matches!(item, TopItem::Element(one) if one.sections.len() == 3);
    assert!(file.items.iter().any(is_right), "{file:#?}");
}

#[test]
fn depth_is_limited_in_every_direction() {
    let deep = |open: &str, close: &str| {
        format!("void f() {{ {}1{}; }}", open.repeat(100_000), close.repeat(100_000))
    };
    for text in [
        deep("(", ")"),
        deep("-", ""),
        deep("a[", "]"),
        deep("1+", ""),
        deep("a=", ""),
        deep("f(", ")"),
        deep("{", "}"),
        deep("if (1) ", ""),
        deep("1 ? ", " : 1"),
        deep("1 ? 1 : ", ""),
        deep("(uint)", ""),
        deep("sizeof ", ""),
        deep("1,", ""),
        deep("x.", ""),
        deep("f<", ">"),
        deep("struct {", "}"),
        format!("uint a = {}", "{".repeat(100_000)),
        format!("const uint a = {}", "{".repeat(100_000)),
        format!("const {} a", "uint<".repeat(100_000)),
        "struct {".repeat(100_000),
    ] {
        let (_, errors) = parse(&text);
        assert!(!errors.is_empty(), "{}", &text[..40]);
    }
}
