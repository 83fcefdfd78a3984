// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the text form in which [`Operation`] is printed.
//!
//! There is one instruction in a line; `//` and `;` begin comments. Beyond the printed form,
//! numbers may be decimal, registers of loads and stores may be written `w`, and jumps and local
//! calls may refer to a label, which is a name with a colon on a line of its own.

use super::operation::{
    Arithmetic, AtomicOperation, Callee, Constant, Operand, Operation, Size, Width,
};
use super::tables::{ARITHMETIC, ATOMIC, CONDITIONS, ORDERS, SIZES};
use super::{Instruction, REGISTERS, decode};
use std::collections::HashMap;
use thiserror::Error;

/// A syntax error.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {reason}")]
pub struct AssemblyError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub reason: String,
}

/// Assembles a program.
///
/// # Errors
/// The first line that is not an instruction, or refers to a label that does not exist or is too
/// far.
pub fn assemble(text: &str) -> Result<Vec<Instruction>, AssemblyError> {
    let mut labels = HashMap::new();
    let (mut operations, mut slot) = (vec![], 0_usize);
    for (at, line) in text.lines().enumerate() {
        let fail = |reason: String| AssemblyError { line: at + 1, reason };
        let code = line.split("//").next().unwrap_or("").split(';').next().unwrap_or("").trim();
        if let Some(label) = code.strip_suffix(':') {
            if labels.insert(label.trim(), slot).is_some() {
                return Err(fail(format!("label `{label}` is defined twice")));
            }
        } else if !code.is_empty() {
            let parsed = Line::new(code).operation().map_err(|Wrong(reason)| fail(reason))?;
            operations.push((at + 1, slot, parsed));
            slot += parsed.operation.slots();
        }
    }
    let mut slots = Vec::with_capacity(slot);
    for (line, slot, parsed) in operations {
        let fail = |reason: String| AssemblyError { line, reason };
        let mut operation = parsed.operation;
        if let Some(label) = parsed.label {
            let Some(&target) = labels.get(label) else {
                return Err(fail(format!("unknown label `{label}`")));
            };
            let distance = target as i64 - slot as i64 - 1;
            lead(&mut operation, distance).ok_or_else(|| fail(format!("`{label}` is too far")))?;
        }
        let (first, second) = operation.encode();
        if decode(&[first, second.unwrap_or_default()], 0) != Ok(operation) {
            return Err(fail(format!("unknown instruction `{operation}`")));
        }
        slots.push(first);
        slots.extend(second);
    }
    Ok(slots)
}

/// Sets the distance of a jump, call or reference to `to`, if it fits.
fn lead(operation: &mut Operation, to: i64) -> Option<()> {
    match operation {
        Operation::Jump { distance, .. } => *distance = to.try_into().ok()?,
        Operation::Goto { is_long: false, distance } => *distance = i16::try_from(to).ok()?.into(),
        Operation::Goto { distance, .. }
        | Operation::Call(Callee::Local(distance))
        | Operation::LoadConstant { constant: Constant::Function(distance), .. } => {
            *distance = to.try_into().ok()?;
        }
        _ => return None,
    }
    Some(())
}

/// An instruction whose label, if it has one, is not resolved.
#[derive(Clone, Copy)]
struct Parsed<'t> {
    operation: Operation,
    label: Option<&'t str>,
}

/// Reason for which a line is rejected.
struct Wrong(String);

type Parse<T> = Result<T, Wrong>;

/// The unparsed rest of a line.
struct Line<'t> {
    rest: &'t str,
    label: Option<&'t str>,
}

impl<'t> Line<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text, label: None }
    }

    fn operation(mut self) -> Parse<Parsed<'t>> {
        let operation = self.statement()?;
        if !self.rest.trim().is_empty() {
            return Err(Wrong(format!("unexpected `{}`", self.rest.trim())));
        }
        Ok(Parsed { operation, label: self.label })
    }

    fn statement(&mut self) -> Parse<Operation> {
        if self.takes_word("exit") {
            return Ok(Operation::Exit);
        }
        if self.takes_word("if") {
            return self.jump();
        }
        if self.takes_word("gotol") {
            return Ok(Operation::Goto { is_long: true, distance: self.distance()? });
        }
        if self.takes_word("goto") {
            return self.goto();
        }
        if self.takes_word("call") {
            return self.callee().map(Operation::Call);
        }
        if self.takes_word("lock") {
            return self.atomic();
        }
        if self.takes("*(u") {
            return self.store();
        }
        let (width, destination) = self.register()?;
        self.assignment(width, destination)
    }

    fn goto(&mut self) -> Parse<Operation> {
        let distance = self.distance()?;
        i16::try_from(distance).map_err(|_| Wrong("is too far for `goto`".to_owned()))?;
        Ok(Operation::Goto { is_long: false, distance })
    }

    fn jump(&mut self) -> Parse<Operation> {
        let (width, left) = self.register()?;
        // Longer symbols are tried first, since some begin with others.
        let mut known = CONDITIONS;
        known.sort_by_key(|(.., symbol)| std::cmp::Reverse(symbol.len()));
        let found = known.iter().find(|(.., symbol)| self.takes(symbol));
        let Some(&(condition, ..)) = found else { return Err(self.expected("a comparison")) };
        let right = self.operand(width)?;
        self.needs("goto")?;
        let distance = self.distance()?;
        let distance = distance.try_into().map_err(|_| Wrong("is too far".to_owned()))?;
        Ok(Operation::Jump { width, condition, left, right, distance })
    }

    fn callee(&mut self) -> Parse<Callee> {
        if self.takes("kernel[") {
            let id = self.number()?;
            self.needs(",")?;
            let module = self.number()?;
            self.needs("]")?;
            return Ok(Callee::Kernel { id, module });
        }
        if self.takes("pc") {
            return self.distance().map(Callee::Local);
        }
        if self.begins_with_name() {
            return self.distance().map(Callee::Local);
        }
        self.number().map(Callee::Helper)
    }

    fn assignment(&mut self, width: Width, destination: u8) -> Parse<Operation> {
        let mut known = ARITHMETIC;
        known.sort_by_key(|(.., symbol)| std::cmp::Reverse(symbol.len()));
        let found = known.iter().find(|(.., symbol)| self.takes(symbol));
        let Some(&(operation, ..)) = found else { return Err(self.expected("an operation")) };
        if operation == Arithmetic::Move
            && let Some(other) = self.moved(width, destination)?
        {
            return Ok(other);
        }
        let source = self.operand(width)?;
        Ok(Operation::Alu { width, operation, destination, source })
    }

    /// Parses the right side of `=`, if it is not a plain operand.
    fn moved(&mut self, width: Width, destination: u8) -> Parse<Option<Operation>> {
        if self.takes("(s") {
            let bits = self.number()?;
            self.needs(")")?;
            let (_, source) = self.register()?;
            return Ok(Some(Operation::MoveSigned { width, destination, source, bits }));
        }
        if self.rest.trim_start().starts_with("-r") || self.rest.trim_start().starts_with("-w") {
            self.needs("-")?;
            self.same(destination)?;
            return Ok(Some(Operation::Negate { width, destination }));
        }
        for (letter, is_signed) in [("*(u", false), ("*(s", true)] {
            if self.takes(letter) {
                return self.load(destination, is_signed).map(Some);
            }
        }
        for (order, _, _, name) in ORDERS {
            if self.takes(name) {
                let bits = self.number()?;
                self.same(destination)?;
                return Ok(Some(Operation::Swap { order, destination, bits }));
            }
        }
        if let Some(constant) = self.constant()? {
            return Ok(Some(Operation::LoadConstant { destination, constant }));
        }
        self.fetching(width, destination)
    }

    /// Parses a 64-bit constant, if one is next.
    fn constant(&mut self) -> Parse<Option<Constant>> {
        if self.takes("map[") {
            let map = self.number()?;
            self.needs("]")?;
            let constant = if self.takes("+") {
                Constant::MapValue { map, offset: self.number()? }
            } else {
                Constant::Map(map)
            };
            return Ok(Some(constant));
        }
        if self.takes("variable[") {
            let id = self.number()?;
            self.needs("]")?;
            return Ok(Some(Constant::Variable(id)));
        }
        if self.takes("function") {
            return Ok(Some(Constant::Function(self.distance()?)));
        }
        match self.rest.trim().strip_suffix("ll") {
            Some(number) => {
                let value = parse_number(number.trim());
                let value = value.filter(|value| *value >= i64::MIN.into());
                let Some(value) = value.filter(|value| *value <= u64::MAX.into()) else {
                    return Err(Wrong(format!("`{}` is not a 64-bit number", number.trim())));
                };
                self.rest = "";
                Ok(Some(Constant::Value(value as u64)))
            }
            None => Ok(None),
        }
    }

    /// Parses an atomic operation that returns the old value, if one is next.
    fn fetching(&mut self, width: Width, destination: u8) -> Parse<Option<Operation>> {
        let found = ATOMIC.iter().rev().find(|(.., name)| self.takes(name));
        let Some(&(operation, _, symbol, _)) = found else { return Ok(None) };
        let is_exchange = symbol.is_empty();
        if is_exchange {
            self.needs(if width == Width::Bits64 { "_64(" } else { "32_32(" })?;
        } else {
            self.needs("((u")?;
            self.pointer_type()?;
            self.needs("(")?;
        }
        let (base, offset) = self.address()?;
        if !is_exchange {
            self.needs(")")?;
        }
        self.needs(",")?;
        let mut source = destination;
        if operation == AtomicOperation::CompareExchange {
            self.same(0)?;
            self.needs(",")?;
            source = self.register()?.1;
        } else {
            self.same(destination)?;
        }
        self.needs(")")?;
        Ok(Some(Operation::Atomic { width, operation, is_fetching: true, base, offset, source }))
    }

    fn atomic(&mut self) -> Parse<Operation> {
        self.needs("*(u")?;
        let width = match self.pointer_type()? {
            Size::Word => Width::Bits32,
            Size::Double => Width::Bits64,
            _ => return Err(Wrong("an atomic operation has 32 or 64 bits".to_owned())),
        };
        self.needs("(")?;
        let (base, offset) = self.address()?;
        self.needs(")")?;
        let found = ATOMIC.iter().find(|(.., symbol, _)| !symbol.is_empty() && self.takes(symbol));
        let Some(&(operation, ..)) = found else { return Err(self.expected("an operation")) };
        let (_, source) = self.register()?;
        Ok(Operation::Atomic { width, operation, is_fetching: false, base, offset, source })
    }

    fn store(&mut self) -> Parse<Operation> {
        let size = self.pointer_type()?;
        self.needs("(")?;
        let (base, offset) = self.address()?;
        self.needs(")")?;
        self.needs("=")?;
        let source = match self.rest.trim_start().starts_with(['r', 'w']) {
            true => Operand::Register(self.register()?.1),
            false => Operand::Immediate(self.number()?),
        };
        Ok(Operation::Store { size, base, offset, source })
    }

    fn load(&mut self, destination: u8, is_signed: bool) -> Parse<Operation> {
        let size = self.pointer_type()?;
        if !is_signed && self.takes("skb[") {
            return self.load_packet(destination, size);
        }
        self.needs("(")?;
        let (base, offset) = self.address()?;
        self.needs(")")?;
        Ok(Operation::Load { size, is_signed, destination, base, offset })
    }

    fn load_packet(&mut self, destination: u8, size: Size) -> Parse<Operation> {
        if destination != 0 {
            return Err(Wrong("a packet access loads to r0".to_owned()));
        }
        let has_index = self.rest.trim_start().starts_with('r');
        let index = if has_index { Some(self.register()?.1) } else { None };
        let offset = if has_index { self.distance()? } else { self.number()? };
        self.needs("]")?;
        Ok(Operation::LoadPacket { size, index, offset })
    }

    /// Parses `64 *)`, the end of a pointer type.
    fn pointer_type(&mut self) -> Parse<Size> {
        let found = SIZES.iter().find(|(.., digits)| self.takes(digits));
        let Some(&(size, ..)) = found else { return Err(self.expected("8, 16, 32 or 64")) };
        self.needs("*)")?;
        Ok(size)
    }

    /// Parses an address, such as `r10 - 0x8`.
    fn address(&mut self) -> Parse<(u8, i16)> {
        let (_, base) = self.register()?;
        Ok((base, self.signed()?))
    }

    fn operand(&mut self, width: Width) -> Parse<Operand> {
        if !self.rest.trim_start().starts_with(['r', 'w']) {
            return self.number().map(Operand::Immediate);
        }
        let (found, register) = self.register()?;
        if found == width {
            return Ok(Operand::Register(register));
        }
        Err(Wrong("`r` and `w` registers are mixed".to_owned()))
    }

    fn register(&mut self) -> Parse<(Width, u8)> {
        let width = if self.takes("r") {
            Width::Bits64
        } else if self.takes("w") {
            Width::Bits32
        } else {
            return Err(self.expected("a register"));
        };
        let number: u8 = self.number()?;
        if number >= REGISTERS {
            return Err(Wrong(format!("the registers are 0 to 10, not {number}")));
        }
        Ok((width, number))
    }

    /// Parses a repeated register, which must be the same.
    fn same(&mut self, register: u8) -> Parse<()> {
        let (_, found) = self.register()?;
        if found == register {
            return Ok(());
        }
        Err(Wrong(format!("register {register} is expected here, not {found}")))
    }

    /// Parses a signed distance, or a label.
    fn distance(&mut self) -> Parse<i32> {
        if !self.begins_with_name() {
            return self.signed();
        }
        let name = self.rest.trim_start();
        let end = name.find(|letter: char| !is_of_name(letter)).unwrap_or(name.len());
        self.label = Some(&name[..end]);
        self.rest = &name[end..];
        Ok(0)
    }

    /// Parses a number with a sign, which may be separated by spaces.
    fn signed<T: TryFrom<i128>>(&mut self) -> Parse<T> {
        let is_negative = self.takes("-");
        if !is_negative {
            self.needs("+")?;
        }
        let number: i64 = self.number()?;
        let number = if is_negative { -i128::from(number) } else { number.into() };
        number.try_into().map_err(|_| Wrong(format!("`{number}` is out of range")))
    }

    fn number<T: TryFrom<i128>>(&mut self) -> Parse<T> {
        let text = self.rest.trim_start();
        let sign = usize::from(text.starts_with('-'));
        let is_digit = |letter: char| letter.is_ascii_alphanumeric();
        let length = text[sign..].find(|letter| !is_digit(letter)).unwrap_or(text.len() - sign);
        let (number, rest) = text.split_at(sign + length);
        let Some(value) = parse_number(number) else { return Err(self.expected("a number")) };
        self.rest = rest;
        value.try_into().map_err(|_| Wrong(format!("`{number}` is out of range")))
    }

    fn begins_with_name(&self) -> bool {
        self.rest.trim_start().starts_with(|letter: char| letter == '_' || letter.is_alphabetic())
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// As [`Self::takes`], for a token that must end at a word boundary.
    fn takes_word(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(is_of_name)) && self.takes(word)
    }

    fn needs(&mut self, token: &str) -> Parse<()> {
        if self.takes(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    fn expected(&self, what: &str) -> Wrong {
        match self.rest.trim() {
            "" => Wrong(format!("{what} is missing at the end")),
            rest => Wrong(format!("{what} is expected at `{rest}`")),
        }
    }
}

fn is_of_name(letter: char) -> bool {
    letter == '_' || letter == '.' || letter.is_alphanumeric()
}

fn parse_number(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if is_negative { -i128::from(value) } else { value.into() })
}

#[cfg(test)]
mod tests {
    use super::super::{decode, disassemble};
    use super::*;

    #[test]
    fn what_is_printed_is_assembled_to_the_same() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut opcodes = std::collections::HashSet::new();
        for _ in 0..300_000 {
            let mut slots = [0; 2].map(|_| Instruction::from_bytes(random.u64(..).to_le_bytes()));
            let slot = &mut slots[0];
            slot.source = if random.bool() { 0 } else { slot.source % 11 };
            slot.offset = [0, 1, 8, 16, 32, slot.offset][random.usize(..6)];
            let constants = [0, 16, 32, 64, 0x41, 0x50, 0xa1, 0xe1, 0xf1, slot.immediate];
            slot.immediate = constants[random.usize(..constants.len())];
            slots[1] = Instruction { immediate: slots[1].immediate, ..Default::default() };
            let Ok(operation) = decode(&slots, 0) else { continue };
            opcodes.insert(slots[0].opcode);
            let text = operation.to_string();
            let assembled = assemble(&text);
            assert_eq!(assembled.as_deref(), Ok(&slots[..operation.slots()]), "{text}");
        }
        // All opcodes of RFC 9669, with those that remain of legacy packet access.
        assert!(opcodes.len() > 115, "only {}", opcodes.len());
    }

    #[test]
    fn labels_lead_forwards_and_backwards() {
        let text = "
            start:              // a comment
                r1 = 5 ll
                if w1 s>= -1 goto end ; another
                call function
                r2 = function end
                gotol start
            end: ; behind
                exit
            function:
                exit";
        let printed = "r1 = 0x5 ll\nif w1 s>= -0x1 goto +0x4\ncall pc+0x4\n\
            r2 = function+0x2\ngotol -0x7\nexit\nexit\n";
        assert_eq!(disassemble(&assemble(text).expect("is right")), printed);
    }

    #[track_caller]
    fn assert_wrong(text: &str, expected: &str) {
        let error = assemble(text).expect_err("is wrong").to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert_wrong("exit\nr11 = 1", "line 2: the registers are 0 to 10, not 11");
        assert_wrong("r1 = w2", "mixed");
        assert_wrong("r1 = 0x100000000", "out of range");
        assert_wrong("goto nowhere", "unknown label `nowhere`");
        assert_wrong("a:\na:\nexit", "twice");
        assert_wrong("exit exit", "unexpected `exit`");
        assert_wrong("r1 = *(s64 *)(r2 + 0x4)", "line 1: unknown instruction `r1 = *(s64 *)");
        assert_wrong("exit\nr2 = (s6)r3", "line 2: unknown instruction `r2 = (s6)r3`");
        assert_wrong("r2 = le24 r2", "unknown instruction");
        assert_wrong("r1 =", "missing at the end");
        assert_wrong("r1 = -r2", "register 1 is expected here");
        assert_wrong("*(u64 *)(r1 + 0x8000) = r1", "out of range");
        assert_wrong("if r1 ? r2 goto +1", "a comparison is expected");
        assert_wrong("r1 = 0x1ffffffffffffffff ll", "not a 64-bit number");
        assert_wrong("r0 = é", "expected");
    }
}
