// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes random statements and expressions with the same meaning in ClickNP and C23: shift counts
//! are reduced, divisors are 1 to 8, array indexes are masked, and loops terminate.

use fastrand::Rng;
use std::fmt::Write;

/// An integer type of both languages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Integer {
    /// Width in bits.
    pub width: u32,
    /// Whether it is signed.
    pub is_signed: bool,
}

impl Integer {
    /// Name in either language.
    pub fn name(self) -> String {
        let sign = if self.is_signed { "" } else { "u" };
        match self.width {
            8 | 16 | 32 | 64 => format!("{sign}int{}_t", self.width),
            width => format!("{sign}int{width}"),
        }
    }

    /// Size of a value in bytes.
    pub fn bytes(self) -> usize {
        self.width.div_ceil(8) as usize
    }

    /// Returns a random type; standard ones more often.
    pub fn random(random: &mut Rng) -> Self {
        let width = match random.u32(0..10) {
            0..6 => [8, 16, 32, 64][random.usize(0..4)],
            6..9 => random.u32(2..=70),
            _ => random.u32(71..=300),
        };
        Self { width, is_signed: random.bool() }
    }
}

/// A text being written, and the variables it may use.
pub struct Writer {
    /// The only source of randomness.
    pub random: Rng,
    /// Statements so far.
    pub text: String,
    /// Depth of indentation, in steps of four spaces.
    pub indent: usize,
    /// Readable and assignable lvalues, with their types.
    pub variables: Vec<(String, Integer)>,
    arrays: Vec<(String, Integer, u32)>,
    next: u32,
}

impl Writer {
    /// Starts an empty text; the same seed writes the same text.
    pub fn new(seed: u64) -> Self {
        let random = Rng::with_seed(seed);
        let (variables, arrays) = (vec![], vec![]);
        Self { random, text: String::new(), indent: 1, variables, arrays, next: 0 }
    }

    /// Appends a line.
    pub fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", self.indent * 4);
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    /// Writes a few local variables, and sometimes an array.
    pub fn declarations(&mut self) {
        for _ in 0..self.random.usize(1..=4) {
            let ty = Integer::random(&mut self.random);
            let value = self.expression(2);
            let name = self.fresh("v");
            self.line(&format!("{} {name} = {value};", ty.name()));
            self.variables.push((name, ty));
        }
        if self.random.bool() {
            let (ty, depth) = (Integer::random(&mut self.random), 1 << self.random.u32(1..=4));
            let name = self.fresh("a");
            self.line(&format!("{} {name}[{depth}];", ty.name()));
            let index = self.fresh("k");
            let head = format!("for (int {index} = 0; {index} < {depth}; {index}++)");
            let value = self.expression(1);
            self.line(&format!("{head} {name}[{index}] = {value};"));
            self.arrays.push((name, ty, depth));
        }
    }

    /// Writes a few statements, nested at most `depth` deep.
    pub fn statements(&mut self, depth: u32, in_loop: bool) {
        for _ in 0..self.random.usize(1..=3) {
            self.statement(depth, in_loop);
        }
    }

    fn block(&mut self, depth: u32, in_loop: bool) {
        self.indent += 1;
        let visible = self.variables.len();
        if self.random.u32(0..4) == 0 {
            let ty = Integer::random(&mut self.random);
            let value = self.expression(1);
            let name = self.fresh("v");
            self.line(&format!("{} {name} = {value};", ty.name()));
            self.variables.push((name, ty));
        }
        self.statements(depth, in_loop);
        self.variables.truncate(visible);
        self.indent -= 1;
    }

    fn statement(&mut self, depth: u32, in_loop: bool) {
        match self.random.u32(0..if depth == 0 { 5 } else { 10 }) {
            0..4 => self.assignment(),
            4 if in_loop => {
                let (cond, jump) = (self.expression(2), self.random.bool());
                let jump = if jump { "break" } else { "continue" };
                self.line(&format!("if ({cond}) {jump};"));
            }
            4 => self.assignment(),
            5 | 6 => {
                let cond = self.expression(2);
                self.line(&format!("if ({cond}) {{"));
                self.block(depth - 1, in_loop);
                if self.random.bool() {
                    self.line("} else {");
                    self.block(depth - 1, in_loop);
                }
                self.line("}");
            }
            7 => self.counted_loop(depth),
            8 => self.guarded_loop(depth),
            _ => self.switch(depth),
        }
    }

    fn counted_loop(&mut self, depth: u32) {
        let (index, count) = (self.fresh("i"), self.random.u32(1..=6));
        if self.random.u32(0..3) == 0 {
            self.line("#pragma unroll");
        }
        self.line(&format!("for (int {index} = 0; {index} < {count}; {index}++) {{"));
        self.block(depth - 1, true);
        let (target, ty) = self.variables[self.random.usize(..self.variables.len())].clone();
        self.line(&format!("    {target} = {target} + ({})({index} * 3);", ty.name()));
        self.line("}");
    }

    /// Writes a while loop whose counter is incremented first, so that `continue` cannot make it
    /// infinite.
    fn guarded_loop(&mut self, depth: u32) {
        let (index, count) = (self.fresh("n"), self.random.u32(1..=5));
        self.line(&format!("uint8_t {index} = 0;"));
        let cond = self.expression(1);
        self.line(&format!("#pragma bound {count}"));
        self.line(&format!("while ({index} < {count} && ({cond} || {index} < 2)) {{"));
        self.line(&format!("    {index}++;"));
        self.block(depth - 1, true);
        self.line("}");
    }

    fn switch(&mut self, depth: u32) {
        let value = self.expression(2);
        self.line(&format!("switch ((uint8_t)({value}) & 3) {{"));
        let count = self.random.u32(1..=4);
        for case in 0..count {
            self.line(&format!("case {case}: {{"));
            self.block(depth - 1, false);
            self.line("}");
            if self.random.u32(0..4) > 0 || case + 1 == count {
                self.line("break;");
            }
        }
        if self.random.bool() {
            self.line("default: {");
            self.block(depth - 1, false);
            self.line("}");
        }
        self.line("}");
    }

    fn assignment(&mut self) {
        let (target, ty) = if !self.arrays.is_empty() && self.random.u32(0..3) == 0 {
            let (name, ty, depth) = self.arrays[self.random.usize(..self.arrays.len())].clone();
            let index = self.expression(1);
            (format!("{name}[(uint32_t)({index}) & {}]", depth - 1), ty)
        } else {
            self.variables[self.random.usize(..self.variables.len())].clone()
        };
        let value = self.expression(3);
        match self.random.u32(0..8) {
            0..4 => self.line(&format!("{target} = {value};")),
            4 => {
                let op = ["+=", "-=", "*=", "&=", "|=", "^="][self.random.usize(0..6)];
                self.line(&format!("{target} {op} {value};"));
            }
            5 => {
                let op = ["<<=", ">>="][self.random.usize(0..2)];
                let count = self.random.u32(0..ty.width);
                self.line(&format!("{target} {op} {count};"));
            }
            6 => {
                let op = ["/=", "%="][self.random.usize(0..2)];
                self.line(&format!("{target} {op} (uint8_t)(((uint32_t)({value}) & 7) + 1);"));
            }
            _ => {
                let (before, after) =
                    [("++", ""), ("", "++"), ("--", ""), ("", "--")][self.random.usize(0..4)];
                self.line(&format!("{before}{target}{after};"));
            }
        }
    }

    /// Writes an expression at most `depth` operators deep.
    pub fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let left = self.expression(depth - 1);
        match self.random.u32(0..16) {
            0..6 => {
                let ops = ["+", "-", "*", "&", "|", "^"];
                let (op, right) = (ops[self.random.usize(0..6)], self.expression(depth - 1));
                format!("({left} {op} {right})")
            }
            6 | 7 => {
                let ops = ["==", "!=", "<", "<=", ">", ">=", "&&", "||"];
                let (op, right) = (ops[self.random.usize(0..8)], self.expression(depth - 1));
                format!("({left} {op} {right})")
            }
            8 | 9 => {
                let ty = Integer::random(&mut self.random);
                let (op, right) = ([">>", "<<"][self.random.usize(0..2)], self.expression(1));
                let count = format!("((uint8_t)({right}) % {})", ty.width);
                format!("(({})({left}) {op} {count})", ty.name())
            }
            10 => {
                let op = ["/", "%"][self.random.usize(0..2)];
                let right = self.expression(1);
                format!("({left} {op} (uint8_t)(((uint32_t)({right}) & 7) + 1))")
            }
            11 => {
                let (yes, no) = (self.expression(depth - 1), self.expression(depth - 1));
                format!("({left} ? {yes} : {no})")
            }
            12 | 13 => {
                let op = ["-", "~", "!", "+"][self.random.usize(0..4)];
                format!("({op}{left})")
            }
            14 => format!("(({})({left}))", Integer::random(&mut self.random).name()),
            _ => format!("((bool)({left}))"),
        }
    }

    fn leaf(&mut self) -> String {
        match self.random.u32(0..8) {
            0 => self.random.u32(0..10).to_string(),
            1 => format!("{:#x}u", self.random.u32(..)),
            2 => format!("{}ul", self.random.u64(..)),
            3 if !self.arrays.is_empty() => {
                let (name, _, depth) = &self.arrays[self.random.usize(..self.arrays.len())];
                format!("{name}[{}]", self.random.u32(0..*depth))
            }
            _ => self.variables[self.random.usize(..self.variables.len())].0.clone(),
        }
    }
}
