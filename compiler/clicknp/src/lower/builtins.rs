// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Built-in functions (ClickNP 2.4, and ours for bytes, bits, time, chance and printing).

use super::body::Body;
use super::expressions::Operand;
use super::names::Binding;
use super::values::Value;
use super::{Lowered, Reported};
use crate::ast::{Expr, ExprKind, Name};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::spelling::{did_you_mean, nearest};
use crate::types::{IntType, Type, UINT, ULONG};
use freeport_ir::{BinaryOp, Op, Probe, Type as IrType, UnaryOp, ValueId};

impl<'a> Body<'_, 'a> {
    /// Lowers a call of a function that the program does not define.
    pub(super) fn builtin(
        &mut self,
        name: &'a Name,
        args: &'a [Expr],
        span: Span,
    ) -> Lowered<Operand> {
        match (name.text.as_str(), args) {
            ("get_input_port", []) => self.ready_bitmap(span),
            ("test_input_port", [port]) => self.test_port(port, span),
            ("read_input_port", [port]) => self.read_port(port, false, span),
            ("peek_input_port", [port]) => self.read_port(port, true, span),
            ("set_output_port" | "write_output_port", [port, item]) => self.put(port, item, span),
            ("new_packet", [length]) => self.new_packet(length, span),
            ("adjust_head", [packet, by]) => self.adjust(true, packet, by, span),
            ("adjust_tail", [packet, by]) => self.adjust(false, packet, by, span),
            ("read_signal", []) => match &self.signal {
                Some((signal, _)) => Ok(Operand::Value(signal.clone())),
                None => Err(self.no_signal(span)),
            },
            ("set_signal", [answer]) => {
                let Some((_, home)) = self.signal.clone() else {
                    return Err(self.no_signal(span));
                };
                let value = self.value_as(answer, &home.ty)?;
                self.store(&home, &value, span)?;
                Ok(Operand::Void)
            }
            ("now", []) => Ok(self.oracle(Op::Now, span)),
            ("random", []) => Ok(self.oracle(Op::Random, span)),
            ("printf", [format, values @ ..]) => self.printf(format, values, span),
            ("byteswap16" | "ntohs" | "htons", [value]) => self.byteswap(value, 16, span),
            ("byteswap32" | "ntohl" | "htonl", [value]) => self.byteswap(value, 32, span),
            ("byteswap64", [value]) => self.byteswap(value, 64, span),
            ("popcount", [value]) => self.counted(UnaryOp::PopCount, value, span),
            ("leading_zeros", [value]) => self.counted(UnaryOp::LeadingZeros, value, span),
            ("trailing_zeros", [value]) => self.counted(UnaryOp::TrailingZeros, value, span),
            ("parity", [value]) => {
                let value = self.number(value)?;
                self.at(span);
                let id = self.materialise(&value);
                let id = self.builder.unary(UnaryOp::ReduceXor, id);
                Ok(Operand::Value(Value::computed(Type::Bool, id)))
            }
            _ => Err(self.unknown_function(name, args.len(), span)),
        }
    }

    fn oracle(&mut self, op: Op, span: Span) -> Operand {
        self.at(span);
        let id = self.builder.push(op, IrType::Bits(ULONG.width));
        Operand::Value(Value::computed(Type::Int(ULONG), id))
    }

    fn byteswap(&mut self, value: &'a Expr, width: u32, span: Span) -> Lowered<Operand> {
        let ty = Type::Int(IntType::of_width(width, false));
        let value = self.number(value)?;
        let value = self.converted(&value, &ty);
        if let Some(constant) = value.as_constant() {
            let bits = freeport_ir::Bits::unary(UnaryOp::ByteSwap, &constant.bits);
            return Ok(Operand::Value(Value::known(super::Constant { ty, bits })));
        }
        self.at(span);
        let id = self.materialise(&value);
        let id = self.builder.unary(UnaryOp::ByteSwap, id);
        Ok(Operand::Value(Value::computed(ty, id)))
    }

    /// Lowers a bit count of a number, in the number's own width, to a `uint`.
    fn counted(&mut self, op: UnaryOp, value: &'a Expr, span: Span) -> Lowered<Operand> {
        let value = self.number(value)?;
        self.at(span);
        let width = value.width();
        let id = self.materialise(&value);
        // The IR counts in the operand's width, and a narrow width cannot represent itself. So at
        // least one bit is added above (for leading zeros: below) the number.
        let wide = (width + 1).max(8);
        let spare = wide - width;
        let padded: ValueId = match op {
            UnaryOp::PopCount => self.builder.resize(id, wide, false),
            UnaryOp::TrailingZeros => {
                let id = self.builder.resize(id, wide, false);
                let guard = freeport_ir::Bits::zero(wide).insert(width, &one_bit());
                let guard = self.builder.constant(guard);
                self.builder.binary(BinaryOp::Or, id, guard)
            }
            _ => {
                let guard = freeport_ir::Bits::zero(spare).insert(spare - 1, &one_bit());
                let guard = self.builder.constant(guard);
                self.builder.push(Op::Concat(vec![guard, id]), IrType::Bits(wide))
            }
        };
        let count = self.builder.unary(op, padded);
        let count = self.builder.resize(count, UINT.width, false);
        Ok(Operand::Value(Value::computed(Type::Int(UINT), count)))
    }

    fn printf(&mut self, format: &'a Expr, values: &'a [Expr], span: Span) -> Lowered<Operand> {
        let ExprKind::Text(text) = &format.kind else {
            return Err(self.report(
                Diagnostic::error("E0314", format.span, "`printf` begins with a text")
                    .label("not a text")
                    .help("write `printf(\"value %u\\n\", value)`"),
            ));
        };
        let conversions = match conversions(text) {
            Ok(count) => count,
            Err(wrong) => {
                let message = format!("`printf` has no conversion `{wrong}`");
                return Err(self.report(
                    Diagnostic::error("E0314", format.span, message)
                        .label("in this text")
                        .help("use `%d`, `%u`, `%x` and `%%`, with a width if wanted"),
                ));
            }
        };
        if conversions != values.len() {
            let message = format!("{conversions} conversions and {} values", values.len());
            return Err(self.report(
                Diagnostic::error("E0314", span, message)
                    .label("each `%` but `%%` takes one value")
                    .help("give as many values as conversions"),
            ));
        }
        let mut args = vec![];
        for value in values {
            let value = self.number(value)?;
            let ty = value.ty.as_integer().unwrap_or(crate::types::INT);
            let ty = match ty.is_standard {
                true => crate::types::conversions::promoted(ty, value.bit_field),
                false => IntType::of_width(ty.width.max(64), ty.is_signed),
            };
            let value = self.converted(&value, &Type::Int(ty));
            args.push(self.materialise(&value));
        }
        self.at(span);
        self.probe(Probe::Printf(text.clone()), args);
        Ok(Operand::Void)
    }

    fn no_signal(&mut self, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0312", span, "there is no signal here")
                .label("used outside `.signal`")
                .help("signals are read and answered in `.signal` alone"),
        )
    }

    fn unknown_function(&mut self, name: &Name, given: usize, span: Span) -> Reported {
        let text = name.text.as_str();
        if matches!(text, "malloc" | "calloc" | "realloc" | "free" | "new" | "delete") {
            return self.report(
                Diagnostic::error("E0308", span, format!("`{text}`: there is no dynamic memory"))
                    .label("all memory is declared")
                    .help("declare an array of the largest size needed in `.state`"),
            );
        }
        if let Some((_, wanted)) = BUILT_IN.iter().find(|(own, _)| *own == text) {
            return self.wrong_arguments(text, *wanted, given, span);
        }
        let message = format!("there is no function `{text}`");
        let help = match function_of_c(text) {
            Some(help) => help.to_string(),
            None => {
                let is_function = |binding: &Binding| matches!(binding, Binding::Function(_));
                let scopes = self.scopes.iter().flatten();
                let local = scopes.filter(|(_, (binding, _))| is_function(binding));
                let local = local.map(|(name, _)| name);
                let all = local.chain(self.lowering.function_names()).map(String::as_str);
                let near = nearest(text, all.chain(BUILT_IN.iter().map(|(name, _)| *name)));
                let otherwise =
                    "define it, in the element or outside, or import the file that does";
                did_you_mean(near, otherwise)
            }
        };
        self.report(Diagnostic::error("E0306", name.span, message).label("not defined").help(help))
    }
}

/// Returns the replacement for a function of C's library, or of Click.
fn function_of_c(name: &str) -> Option<&'static str> {
    Some(match name {
        "memcpy" | "memmove" | "__builtin_memcpy" | "bcopy" | "strcpy" | "strncpy" => {
            "assign a struct or a number as a whole, such as `*(uint48 *)(p.data + 6) = source;`, \
             or copy an array in a `for` loop"
        }
        "memset" | "__builtin_memset" | "bzero" => {
            "variables begin as 0; write the others in a `for` loop, or assign a struct as a whole"
        }
        "memcmp" | "strcmp" | "strncmp" | "bcmp" => {
            "compare numbers of the same width, such as `*(uint48 *)p.data == address`"
        }
        "assert" | "abort" | "exit" => "a program does not exit: count errors in `.state`",
        "min" | "max" | "abs" => "write it with `?:`, such as `a < b ? a : b`",
        "rand" | "drand48" => "did you mean `random`?",
        "time" | "clock_gettime" | "gettimeofday" | "bpf_ktime_get_ns" => {
            "`now()` returns the nanoseconds of a monotonic clock"
        }
        "puts" | "fprintf" | "click_chatter" | "bpf_printk" => "did you mean `printf`?",
        "output" | "push" => "write `set_output_port(out, p)` with the name of a port",
        "input" | "pull" => "write `read_input_port(in)` with the name of a port",
        _ => return None,
    })
}

/// Built-in functions with their numbers of arguments; `printf` takes one or more.
const BUILT_IN: [(&str, usize); 25] = [
    ("get_input_port", 0),
    ("test_input_port", 1),
    ("read_input_port", 1),
    ("peek_input_port", 1),
    ("set_output_port", 2),
    ("write_output_port", 2),
    ("new_packet", 1),
    ("adjust_head", 2),
    ("adjust_tail", 2),
    ("read_signal", 0),
    ("set_signal", 1),
    ("now", 0),
    ("random", 0),
    ("printf", 1),
    ("byteswap16", 1),
    ("ntohs", 1),
    ("htons", 1),
    ("byteswap32", 1),
    ("ntohl", 1),
    ("htonl", 1),
    ("byteswap64", 1),
    ("popcount", 1),
    ("leading_zeros", 1),
    ("trailing_zeros", 1),
    ("parity", 1),
];

fn one_bit() -> freeport_ir::Bits {
    freeport_ir::Bits::from_bool(true)
}

/// Returns the number of values that a format takes, or the unknown conversion.
fn conversions(format: &str) -> Result<usize, String> {
    let mut count = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let after = &rest[at + 1..];
        let skipped =
            after.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #0lh".contains(c));
        let letter = skipped.chars().next();
        match letter {
            Some('%') => {}
            Some('d' | 'u' | 'x') => count += 1,
            other => {
                let letter = other.map_or(String::new(), String::from);
                return Err(format!("%{letter}"));
            }
        }
        rest = &skipped[1..];
    }
    Ok(count)
}
