// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random functions for all types of elements: native code, the interpreter, and an evaluation by
//! the rules of C23 in this file have the same results. A failure prints the seed and the text.

use crate::values::{INTEGERS, any_bytes, any_operands, call, computed, is_signed, native};
use crate::values::{wanted, wrapped};
use fastrand::Rng;
use freeport_kv_compiled::{Options, compile_text};
use freeport_kv_functions::{Element, Kind};
use freeport_testbed::{seed, usual_or_long};

/// Maximum depth of an expression.
const DEPTH: u32 = 4;
/// Names that expressions read; `w` is a variable of the loop.
const NAMES: [&str; 4] = ["v", "a", "b", "w"];

/// An expression. Every operation is converted to the type of elements.
enum Expr {
    Name(usize),
    Number(u8),
    Not(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Choice(Box<[Expr; 4]>),
}

fn any_expr(rng: &mut Rng, depth: u32) -> Expr {
    let part = |rng: &mut Rng| Box::new(any_expr(rng, depth - 1));
    match rng.u8(..if depth == 0 { 3 } else { 12 }) {
        0 | 1 => Expr::Name(rng.usize(..NAMES.len())),
        2 => Expr::Number(rng.u8(..)),
        3 => Expr::Not(part(rng)),
        4 | 5 => Expr::Choice(Box::new([(); 4].map(|()| any_expr(rng, depth - 1)))),
        _ => {
            let operator = ["+", "-", "*", "&", "|", "^", "/", "%", "<<", ">>"][rng.usize(..10)];
            Expr::Binary(operator, part(rng), part(rng))
        }
    }
}

impl Expr {
    fn text(&self) -> String {
        match self {
            Expr::Name(at) => NAMES[*at].to_owned(),
            Expr::Number(number) => format!("(T){number}"),
            Expr::Not(of) => format!("(T)(~{})", of.text()),
            Expr::Binary(operator, left, right) => {
                format!("(T)({} {operator} {})", left.text(), right.text())
            }
            Expr::Choice(parts) => {
                let [left, right, yes, no] = parts.each_ref().map(Expr::text);
                format!("({left} < {right} ? {yes} : {no})")
            }
        }
    }

    fn value(&self, element: Element, names: [i128; 4]) -> i128 {
        let of = |expr: &Expr| expr.value(element, names);
        let value = match self {
            Expr::Name(at) => names[*at],
            Expr::Number(number) => i128::from(*number),
            Expr::Not(expr) => !of(expr),
            Expr::Choice(parts) => {
                let [left, right, yes, no] = parts.each_ref();
                if of(left) < of(right) { of(yes) } else { of(no) }
            }
            Expr::Binary(operator, left, right) => {
                computed(element, binary(element, operator, of(left), of(right)))
            }
        };
        cut(element, value)
    }
}

fn cut(element: Element, value: i128) -> i128 {
    wrapped(value, element.width() as u32 * 8, is_signed(element))
}

fn binary(element: Element, operator: &str, left: i128, right: i128) -> i128 {
    // A negative count of a shift is a large one.
    let width = (element.width() as u32 * 8).max(32);
    let count = wrapped(right, width, false).min(127) as u32;
    match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left.wrapping_mul(right),
        "&" => left & right,
        "|" => left | right,
        "^" => left ^ right,
        "/" => left.checked_div(right).unwrap_or(0),
        "%" => left.checked_rem(right).unwrap_or(left),
        "<<" if count >= width => 0,
        "<<" => left << count,
        _ => left >> count,
    }
}

/// A random function: an expression, or the last value of a loop.
struct Function {
    kind: Kind,
    rounds: u8,
    step: Expr,
    leaves: [Expr; 2],
    result: Expr,
}

impl Function {
    fn any(rng: &mut Rng, kind: Kind) -> Self {
        Self {
            kind,
            rounds: if rng.bool() { 0 } else { rng.u8(1..10) },
            step: any_expr(rng, DEPTH),
            leaves: [any_expr(rng, 2), any_expr(rng, 2)],
            result: any_expr(rng, DEPTH),
        }
    }

    fn text(&self, name: &str) -> String {
        let head = match self.kind {
            Kind::Update => format!("template <T> T {name}(T v, T a, T b)"),
            Kind::Reduce => format!("template <T> ulong {name}(T v, ulong sigma)"),
            Kind::Filter => format!("template <T> bool {name}(T v, T a, T b)"),
        };
        // A reduction computes with elements too, and adds sigma to the result.
        let begin = match self.kind {
            Kind::Reduce => "T a = (T)sigma; T b = (T)(sigma >> 7);",
            _ => "",
        };
        let end = match self.kind {
            Kind::Reduce => ("sigma * 3 + (ulong)(", ")"),
            Kind::Update => ("", ""),
            Kind::Filter => ("(", " & 3) == 0"),
        };
        let [left, right] = self.leaves.each_ref().map(Expr::text);
        format!(
            "{head} {{\n    {begin}\n    T w = v;\n    for (int i = 0; i < {}; i++) {{\n        \
             w = {};\n        if ({left} < {right}) break;\n    }}\n    return {}{}{};\n}}\n",
            self.rounds,
            self.step.text(),
            end.0,
            self.result.text(),
            end.1
        )
    }

    fn value(&self, element: Element, v: i128, operands: &[i128]) -> i128 {
        let (a, b) = match self.kind {
            Kind::Reduce => (cut(element, operands[0]), cut(element, operands[0] >> 7)),
            _ => (operands[0], operands[1]),
        };
        let mut names = [v, a, b, v];
        for _ in 0..self.rounds {
            names[3] = self.step.value(element, names);
            let [left, right] = self.leaves.each_ref().map(|leaf| leaf.value(element, names));
            if left < right {
                break;
            }
        }
        let result = self.result.value(element, names);
        match self.kind {
            Kind::Update => result,
            Kind::Reduce => operands[0].wrapping_mul(3).wrapping_add(result),
            Kind::Filter => i128::from(result & 3 == 0),
        }
    }
}

#[test]
fn native_code_the_interpreter_and_c_agree() {
    for round in 0..usual_or_long(1, 40_u64) {
        let seed = seed() + round;
        let mut rng = Rng::with_seed(seed);
        let kinds = [Kind::Update, Kind::Update, Kind::Update, Kind::Reduce, Kind::Filter];
        let functions: Vec<_> = kinds.map(|kind| Function::any(&mut rng, kind)).into();
        let texts = functions.iter().enumerate();
        let text: String = texts.map(|(at, one)| one.text(&format!("f{at}"))).collect();
        let compile = |options| {
            let compiled = compile_text("random.cnp", &text, &options);
            compiled.unwrap_or_else(|refused| panic!("seed {seed}: {refused}\n{text}"))
        };
        let (native, interpreted) = (compile(native()), compile(Options::interpreted()));
        assert_eq!(native.is_interpreted, None, "seed {seed}");
        for (function, id) in functions.iter().zip(128..) {
            let signature = native.registry.signature(id).expect("a function");
            for element in INTEGERS {
                let count = rng.usize(1..90);
                let values = any_bytes(&mut rng, count * element.width());
                let operands = any_operands(&mut rng, &signature, element, count);
                let case = (element, &values[..], &operands[..]);
                let model = |element, v, operands: &[i128]| function.value(element, v, operands);
                let wanted = wanted(&native.registry, id, case, &model);
                for (what, one) in [("native", &native), ("interpreted", &interpreted)] {
                    let got = call(&one.registry, id, element, &values, &operands);
                    assert!(got == wanted, "seed {seed}: {what} {id} of {element}\n{text}");
                }
            }
        }
    }
}
