// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random functions of the C subset have the same results as C23 compiled by clang. Undefined
//! behaviour is excluded: shift counts are masked, divisors are positive constants, indexes are
//! masked.

use fastrand::Rng;
use freeport_clicknp::driver::{Options, compile_text};
use freeport_ir::interp::{self, Interpreter};
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{Bits, Instance, InstanceId, Loc, Program};
use std::fmt::Write;
use std::process::Command;

const SEED: u64 = 11;
const FUNCTIONS: usize = 150;
const CALLS: usize = 6;
/// Width in which results are compared; signed ones are sign-extended.
const WIDTH: u32 = 256;

/// A type: name, width, signedness.
type Type = (&'static str, u32, bool);

const TYPES: [Type; 18] = [
    ("bool", 1, false),
    ("uchar", 8, false),
    ("int8_t", 8, true),
    ("short", 16, true),
    ("ushort", 16, false),
    ("int", 32, true),
    ("uint", 32, false),
    ("long", 64, true),
    ("ulong", 64, false),
    ("uint3", 3, false),
    ("int5", 5, true),
    ("uint13", 13, false),
    ("int31", 31, true),
    ("uint40", 40, false),
    ("int63", 63, true),
    ("uint65", 65, false),
    ("int100", 100, true),
    ("uint200", 200, false),
];

const RECORDS: &str = "struct Fields { uint a : 5; int b : 7; ulong c : 40; ushort d : 9; };
union View { ulong whole; uchar bytes[8]; ushort halves[4]; };
";

const C_HEAD: &str = "#include <stdio.h>
typedef unsigned char uchar; typedef signed char int8_t; typedef unsigned short ushort;
typedef unsigned int uint; typedef unsigned long ulong;
typedef unsigned _BitInt(3) uint3; typedef _BitInt(5) int5; typedef unsigned _BitInt(13) uint13;
typedef _BitInt(31) int31; typedef unsigned _BitInt(40) uint40; typedef _BitInt(63) int63;
typedef unsigned _BitInt(65) uint65; typedef _BitInt(100) int100;
typedef unsigned _BitInt(200) uint200; typedef unsigned _BitInt(256) uint256;
static void show(uint256 value) {
    for (int k = 3; k >= 0; k--) printf(\"%016lx\", (ulong)(value >> (64 * k)));
    printf(\"\\n\");
}
";

struct Generator {
    random: Rng,
    /// Names that can be read and assigned to.
    names: Vec<String>,
    loops: usize,
}

impl Generator {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())].clone()
    }

    fn name(&mut self) -> String {
        let names = self.names.clone();
        match self.random.u32(0..8) {
            0 => format!("array[{} & 3]", self.pick(&names)),
            1 => format!("fields.{}", self.pick(&["a", "b", "c", "d"])),
            2 => format!("view.bytes[{} & 7]", self.pick(&names)),
            3 => self.pick(&["view.whole", "view.halves[2]", "array[1]"]).to_string(),
            _ => self.pick(&names),
        }
    }

    fn number(&mut self) -> String {
        match self.random.u32(0..6) {
            0 => format!("{}", self.random.u32(0..4)),
            1 => format!("{}", self.random.u32(..)),
            2 => format!("0x{:x}", self.random.u64(..)),
            3 => format!("{}u", self.random.u16(..)),
            4 => format!("{}l", self.random.u32(..)),
            _ => format!("0x{:x}ul", self.random.u32(..)),
        }
    }

    fn expr(&mut self, depth: u32) -> String {
        if depth == 0 {
            return if self.random.u32(0..4) == 0 { self.number() } else { self.name() };
        }
        let (left, right) = (self.expr(depth - 1), self.expr(depth - 1));
        match self.random.u32(0..13) {
            0..=4 => {
                let op = self.pick(&["+", "-", "*", "&", "|", "^"]);
                format!("({left} {op} {right})")
            }
            5 | 6 => {
                let op = self.pick(&["<", "<=", ">", ">=", "==", "!=", "&&", "||"]);
                format!("({left} {op} {right})")
            }
            7 => format!("({}({left}))", self.pick(&["-", "~", "!", "+"])),
            8 | 9 => format!("(({})({left}))", self.pick(&TYPES).0),
            10 => {
                let (name, width, _) = self.pick(&TYPES[1..]);
                let mask = width.next_power_of_two() / if width.is_power_of_two() { 1 } else { 2 };
                let op = self.pick(&["<<", ">>"]);
                format!("((({name})({left})) {op} ((uint)({right}) & {}))", mask - 1)
            }
            11 => {
                let op = self.pick(&["/", "%"]);
                format!("(({left}) {op} {})", self.random.u32(1..100))
            }
            _ => format!("({} ? {left} : {right})", self.expr(depth - 1)),
        }
    }

    fn statement(&mut self, depth: u32) -> String {
        let value = self.expr(2);
        let target = self.name();
        match self.random.u32(0..if depth > 0 { 10 } else { 6 }) {
            0..=2 => format!("{target} = {value};\n"),
            3 => {
                format!("{target} {} {value};\n", self.pick(&["+=", "-=", "*=", "^=", "|=", "&="]))
            }
            4 => format!("{target}{};\n", self.pick(&["++", "--"])),
            5 => format!("{target} >>= {};\n", self.random.u32(0..3)),
            6 | 7 => {
                let (yes, no) = (self.block(depth - 1), self.block(depth - 1));
                format!("if ({value}) {{\n{yes}}} else {{\n{no}}}\n")
            }
            8 => {
                self.loops += 1;
                let name = format!("i{}", self.loops);
                let body = self.block(depth - 1);
                let leave = format!("if ({}) break;\n", self.expr(1));
                let (count, by) = (self.random.u32(1..7), self.random.u32(1..3));
                format!(
                    "for (int {name} = 0; {name} < {count}; {name} += {by}) {{\n{body}{leave}}}\n"
                )
            }
            _ => {
                let arms: Vec<_> = (0..3).map(|_| self.block(depth - 1)).collect();
                format!(
                    "switch ((uchar)({value}) & 3) {{\ncase 0: {} break;\ncase 1: {}\n\
                     default: {} }}\n",
                    arms[0], arms[1], arms[2]
                )
            }
        }
    }

    fn block(&mut self, depth: u32) -> String {
        (0..self.random.u32(1..4)).map(|_| self.statement(depth)).collect()
    }

    /// Returns the parameters' types, the result's, and the body.
    fn function(&mut self) -> (Vec<Type>, Type, String) {
        let params: Vec<Type> = (0..3).map(|_| self.pick(&TYPES)).collect();
        let result = self.pick(&TYPES);
        self.names = (0..5).map(|at| format!("v{at}")).collect();
        let mut body = String::new();
        for at in 3..5 {
            let _ = writeln!(body, "{} v{at} = v{};", self.pick(&TYPES).0, at - 3);
        }
        let _ = writeln!(body, "{} array[4] = {{ v0, v1, v2, 7 }};", self.pick(&TYPES).0);
        body += "Fields fields = { 1, -2, 3, 4 };\nView view = { 0x0123456789abcdef };\n";
        body += &self.block(2);
        body += &self.block(2);
        let _ = writeln!(body, "return {};", self.expr(3));
        (params, result, body)
    }
}

#[test]
fn random_functions_agree_with_clang() {
    let mut generator = Generator { random: Rng::with_seed(SEED), names: vec![], loops: 0 };
    let mut methods = String::new();
    let mut c = format!("{C_HEAD}{}", RECORDS.replace("struct Fields", "typedef struct"));
    c = c.replace("d : 9; };", "d : 9; } Fields;").replace("union View", "typedef union");
    c = c.replace("halves[4]; };", "halves[4]; } View;");
    let mut main = String::from("int main(void) {\n");
    let mut calls = vec![];
    for at in 0..FUNCTIONS {
        let (params, result, body) = generator.function();
        let list: Vec<_> =
            params.iter().enumerate().map(|(at, ty)| format!("{} v{at}", ty.0)).collect();
        let head = format!("{} f{at}({})", result.0, list.join(", "));
        let _ = write!(methods, ".method {head} {{\n{body}}}\n");
        let _ = write!(c, "static {head} {{\n{body}}}\n");
        for _ in 0..CALLS {
            let args: Vec<u64> = params
                .iter()
                .map(|ty| {
                    let value = generator.random.u64(..) >> generator.random.u32(0..64);
                    value & (u64::MAX >> (64 - ty.1.min(64)))
                })
                .collect();
            let texts: Vec<_> = args.iter().map(|arg| format!("{arg}ul")).collect();
            let _ = writeln!(main, "show(f{at}({}));", texts.join(", "));
            let args: Vec<Bits> =
                args.iter().zip(&params).map(|(arg, ty)| Bits::from_u64(ty.1, *arg)).collect();
            calls.push((at, args, result, body.clone()));
        }
    }
    c += &format!("{main}return 0;\n}}\n");
    let text = format!("{RECORDS}.element Test (->) {{ .handler {{ }}\n{methods}}}");
    let program = with_instance(&text);
    let mut optimised = program.clone();
    passes::run(&mut optimised, &PassSet::for_cpu());
    let wanted = run_c(&c);
    assert_eq!(wanted.len(), calls.len());
    for program in [&program, &optimised] {
        let mut interpreter = Interpreter::new(program, &interp::Options::default()).unwrap();
        for ((at, args, result, body), want) in calls.iter().zip(&wanted) {
            let name = format!("f{at}");
            let found = interpreter.call_method(InstanceId(0), &name, args.clone()).unwrap();
            let found = found.expect("a result");
            let wide = if result.2 { found.sign_extend(WIDTH) } else { found.resize(WIDTH) };
            assert_eq!(&wide, want, "seed {SEED}: {} {name} of {args:?}\n{body}", result.0);
        }
    }
}

fn with_instance(text: &str) -> Program {
    let compiled = compile_text("test.cnp", text, &Options::default());
    let mut program = compiled.unwrap_or_else(|failure| panic!("{failure}")).program;
    program.graph.instances.push(Instance {
        name: "it".into(),
        element: freeport_ir::ElementId(0),
        host: false,
        controlled: true,
        verilog: false,
        loc: Loc::default(),
    });
    freeport_ir::verify(&program).unwrap_or_else(|errors| panic!("{errors:#?}"));
    program
}

/// Returns the numbers that the C program prints, line by line.
fn run_c(text: &str) -> Vec<Bits> {
    let folder = tempfile::tempdir().unwrap();
    let [source, binary] = ["it.c", "it"].map(|name| folder.path().join(name));
    std::fs::write(&source, text).unwrap();
    let flags = ["-std=c23", "-O1", "-fwrapv", "-fno-strict-aliasing", "-w", "-o"];
    let status = Command::new("clang-19").args(flags).arg(&binary).arg(&source).status();
    assert!(status.expect("clang-19 is installed").success(), "{}", source.display());
    let output = Command::new(&binary).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| Bits::parse(WIDTH, line, 16).unwrap()).collect()
}
