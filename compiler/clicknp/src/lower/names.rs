// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Name lookup, inner scopes before outer ones, and resolution of types.

use super::body::Body;
use super::constants::Constant;
use super::packets::PacketVariable;
use super::places::Place;
use super::pointers::PointerId;
use super::tables::KeyedTable;
use super::{Lowered, Side};
use crate::ast::{self, Expr, Name, TemplateArg, TypeExpr, TypeKind};
use crate::config::Callable;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::spelling::{did_you_mean, nearest};
use crate::types::layout::Member;
use crate::types::{MAX_INTEGER_BITS, Type, WINDOW_BYTES, layout};
use freeport_ir::Bits;
use std::collections::HashMap;
use std::sync::Arc;

/// Meaning of a name.
#[derive(Clone, Debug)]
pub enum Binding<'a> {
    /// A variable.
    Variable(Place),
    /// A pointer variable.
    Pointer(PointerId),
    /// A packet variable.
    Packet(PacketVariable),
    /// A variable of another arm of the switch, which is not set here.
    OfOtherArm,
    /// A variable with an invalid declaration, which was reported: its uses are not reported too.
    Wrong,
    /// A number known at compile time.
    Constant(Constant),
    /// An array of numbers known at compile time.
    Table(Arc<ConstantTable>),
    /// A keyed table of the element.
    Keyed(Arc<KeyedTable>),
    /// A type.
    Type(Type),
    /// A port, or an array of them: its index in the element's list of that side.
    Port(Side, usize),
    /// A function of the element.
    Function(&'a ast::Function),
    /// In a manager: an instance, or an array of them.
    Instances(Arc<Callable>),
}

/// A constant array.
#[derive(PartialEq, Debug)]
pub struct ConstantTable {
    /// Its name.
    pub name: String,
    /// Type, which is an array.
    pub ty: Type,
    /// Elements of the innermost type, in order.
    pub elements: Vec<Bits>,
}

/// Names declared in one block.
pub type Scope<'a> = HashMap<String, (Binding<'a>, Span)>;

impl<'a> Body<'_, 'a> {
    /// Looks up `name`.
    pub fn lookup(&mut self, name: &str) -> Option<Binding<'a>> {
        let local = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        match local {
            Some((binding, _)) => Some(binding.clone()),
            None => self.lowering.global(name),
        }
    }

    /// Binds `name` in the innermost scope.
    pub fn declare(&mut self, name: &Name, binding: Binding<'a>) {
        let scope = self.scopes.last_mut().expect("a body has a scope");
        if let Some((_, before)) = scope.insert(name.text.clone(), (binding, name.span)) {
            self.report(
                Diagnostic::error("E0203", name.span, format!("`{}` is defined twice", name.text))
                    .label("defined again here")
                    .note(before, "it was defined here first")
                    .help("rename one of them"),
            );
        }
    }

    /// Resolves a type expression.
    pub fn resolve(&mut self, ty: &TypeExpr) -> Lowered<Type> {
        let mut resolved = match &ty.kind {
            TypeKind::Named(name, args) => {
                if name == "table" {
                    return Err(self.table_elsewhere(ty));
                }
                if name == "packet" {
                    return self.packet_type(args, ty.pointers, ty.span);
                }
                if !args.is_empty() {
                    let message = format!("`{name}` takes no arguments");
                    return Err(self.report(
                        Diagnostic::error("E0216", ty.span, message)
                            .label("only elements and template functions do")
                            .help("remove the text between `<` and `>`"),
                    ));
                }
                self.type_named(name, ty.span)?
            }
            TypeKind::Pasted(prefix, suffix) => {
                let suffix = self.constant_u64(suffix)?;
                self.type_named(&format!("{prefix}{suffix}"), ty.span)?
            }
            TypeKind::Record(record) => Type::Record(Arc::new(self.resolve_record(record)?)),
            TypeKind::Bits { signed, width } => {
                let bits = self.constant_u64(width)?;
                if !(1..=u64::from(MAX_INTEGER_BITS)).contains(&bits) {
                    return Err(self.bad_width(bits, width.span));
                }
                Type::Int(crate::types::IntType::of_width(bits as u32, *signed))
            }
        };
        for _ in 0..ty.pointers {
            resolved = Type::Pointer(Arc::new(resolved));
        }
        Ok(resolved)
    }

    /// Resolves `packet` or `packet<window>`.
    fn packet_type(&mut self, args: &[TemplateArg], pointers: u32, span: Span) -> Lowered<Type> {
        if pointers > 0 {
            return Err(self.packet_kept(span));
        }
        let window = match args {
            [] => u64::from(WINDOW_BYTES),
            [TemplateArg::Value(window)] => self.constant_u64(window)?,
            _ => 0,
        };
        if (1..=MOST_WINDOW_BYTES).contains(&window) {
            return Ok(Type::Packet(window as u32));
        }
        Err(self.report(
            Diagnostic::error("E0210", span, "a packet with no such header window")
                .label(format!("the window is 1 to {MOST_WINDOW_BYTES} bytes"))
                .help("write `packet`, or `packet<128>` for a window of 128 bytes"),
        ))
    }

    /// Adds the array dimensions after the declared name to `ty`, outermost first.
    pub fn with_dimensions(
        &mut self,
        ty: Type,
        dimensions: &[Option<Expr>],
        elements_given: Option<u64>,
        span: Span,
    ) -> Lowered<Type> {
        let mut ty = ty;
        for (at, dimension) in dimensions.iter().enumerate().rev() {
            let count = match (dimension, elements_given) {
                (Some(dimension), _) => self.constant_u64(dimension)?,
                (None, Some(count)) if at == 0 => count,
                (None, _) => {
                    return Err(self.report(
                        Diagnostic::error("E0210", span, "this array has no size")
                            .label("every array has a size known at compile time")
                            .help("write the number of elements between `[` and `]`"),
                    ));
                }
            };
            if let Type::Packet(_) = ty {
                return Err(self.packet_kept(span));
            }
            let is_too_large = layout::size_bytes(&ty).saturating_mul(count) > MOST_BYTES;
            if count == 0 || is_too_large || ty == Type::Void {
                let span = dimension.as_ref().map_or(span, |dimension| dimension.span);
                return Err(self.report(
                    Diagnostic::error("E0210", span, format!("an array of {count} `{ty}`"))
                        .label("an array has at least one element and at most 4 GiB")
                        .help("give it another size"),
                ));
            }
            ty = Type::Array(Arc::new(ty), count);
        }
        Ok(ty)
    }

    /// Resolves the type called `name`.
    pub fn type_named(&mut self, name: &str, span: Span) -> Lowered<Type> {
        let local = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        if let Some((Binding::Type(ty), _)) = local {
            return Ok(ty.clone());
        }
        if let Some(ty) = self.lowering.global_type(name, span)? {
            return Ok(ty);
        }
        match name {
            "flit" => return Ok(self.lowering.flit.clone()),
            "ClSignal" => return Ok(self.lowering.signal.clone()),
            _ => {}
        }
        if let Some(ty) = Type::named(name) {
            return Ok(ty);
        }
        let digits = name.trim_start_matches('u').strip_prefix("int");
        if let Some(Ok(bits)) = digits.map(str::parse::<u64>) {
            return Err(self.bad_width(bits, span));
        }
        let otherwise =
            "define it with `struct`, `typedef` or `enum`, or import the file that does";
        let own = self.lowering.type_names().map(String::as_str);
        let near = nearest(name, own.chain(Type::NAMES));
        let help = did_you_mean(type_of_elsewhere(name).or(near), otherwise);
        Err(self.report(
            Diagnostic::error("E0202", span, format!("there is no type `{name}`"))
                .label("not a type here")
                .help(help),
        ))
    }

    /// Computes the layout of a record.
    pub fn resolve_record(&mut self, record: &ast::Record) -> Lowered<crate::types::Record> {
        let mut members: Vec<Member> = vec![];
        for member in &record.members {
            let ty = self.resolve(&member.ty)?;
            let ty = self.with_dimensions(ty, &member.dimensions, None, member.span)?;
            let bit_field = match &member.bit_width {
                Some(width) => Some(self.bit_field_width(width, &ty)?),
                None => None,
            };
            if let Type::Packet(_) = ty {
                return Err(self.packet_kept(member.span));
            }
            if matches!(ty.innermost().0, Type::Pointer(_) | Type::Void) {
                return Err(self.report(
                    Diagnostic::error("E0213", member.span, format!("a member of type `{ty}`"))
                        .label("pointers exist only at compile time, so none is kept in memory")
                        .help("keep an index instead"),
                ));
            }
            let name = member.name.as_ref().map(|name| name.text.clone());
            if let Some(name) = &member.name
                && members.iter().any(|other| other.name.as_deref() == Some(&name.text))
            {
                let message = format!("the member `{}` is there twice", name.text);
                return Err(self.report(
                    Diagnostic::error("E0203", name.span, message)
                        .label("defined again here")
                        .help("rename one of them"),
                ));
            }
            members.push(Member { name, ty, bit_field });
        }
        let name = record.name.as_ref().map_or(String::new(), |name| name.text.clone());
        let placed = layout::place(name, record.is_union, members);
        if placed.size_bytes > MOST_RECORD_BYTES {
            return Err(self.report(
                Diagnostic::error("E0210", record.span, "this record is too large")
                    .label(format!("{} bytes; at most {MOST_RECORD_BYTES}", placed.size_bytes))
                    .help("move its large array to a variable of its own"),
            ));
        }
        Ok(placed)
    }

    fn bit_field_width(&mut self, width: &Expr, ty: &Type) -> Lowered<u32> {
        let bits = self.constant_u64(width)?;
        if !ty.is_integer() || bits > ty.value_bits() {
            let message = format!("a bit field of {bits} bits in a `{ty}`");
            return Err(self.report(
                Diagnostic::error("E0219", width.span, message)
                    .label("a bit field has an integer type, and no more bits than that")
                    .help("choose a wider type"),
            ));
        }
        Ok(bits as u32)
    }

    /// Evaluates a constant that is not negative and fits 64 bits.
    pub fn constant_u64(&mut self, expr: &Expr) -> Lowered<u64> {
        let constant = self.constant(expr)?;
        constant.as_u64().ok_or_else(|| {
            self.report(
                Diagnostic::error("E0209", expr.span, "this number is negative or too large")
                    .label("must be a constant of 0 to 2^64 - 1")
                    .help("check the expression and its type"),
            )
        })
    }

    /// Evaluates a constant.
    pub fn constant(&mut self, expr: &Expr) -> Lowered<Constant> {
        if let Some(constant) = self.try_constant(expr) {
            self.warn_of_constant(expr);
            return Ok(constant);
        }
        self.check_names(expr)?;
        Err(self.report(
            Diagnostic::error("E0209", expr.span, "this must be known at compile time")
                .label("not a constant")
                .help("use numbers, `const` names, enum names, template parameters and `sizeof`"),
        ))
    }

    /// Reports unknown names, in preference to the error that an expression is not constant.
    fn check_names(&mut self, expr: &Expr) -> Lowered<()> {
        match &expr.kind {
            ast::ExprKind::Name(name, _) => match self.lookup(name) {
                Some(Binding::Wrong) => Err(super::Reported(())),
                Some(_) => Ok(()),
                None => match self.lowering.circle(name, expr.span) {
                    Some(reported) => Err(reported),
                    None if self.lowering.global_type(name, expr.span)?.is_some() => Ok(()),
                    None => Err(self.unknown_name(name, expr.span)),
                },
            },
            ast::ExprKind::Unary(_, of) | ast::ExprKind::Cast(_, of) => self.check_names(of),
            ast::ExprKind::Binary(_, left, right) => {
                self.check_names(left)?;
                self.check_names(right)
            }
            _ => Ok(()),
        }
    }

    fn bad_width(&mut self, bits: u64, span: Span) -> super::Reported {
        self.report(
            Diagnostic::error("E0210", span, format!("an integer of {bits} bits"))
                .label(format!("integers have 1 to {MAX_INTEGER_BITS} bits"))
                .help("use an array for larger things"),
        )
    }
}

/// Returns the equivalent of a type of C, of the kernel's headers or of another language.
fn type_of_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "u8" | "__u8" | "byte" | "u_char" | "uint8" => "uchar",
        "u16" | "__u16" | "__be16" | "__le16" | "u_short" => "ushort",
        "u32" | "__u32" | "__be32" | "__le32" | "u_int" => "uint",
        "u64" | "__u64" | "__be64" | "__le64" | "u_long" | "uintptr_t" => "ulong",
        "s8" | "i8" | "__s8" => "int8_t",
        "s16" | "i16" | "__s16" => "short",
        "s32" | "i32" | "__s32" => "int",
        "s64" | "i64" | "__s64" | "ssize_t" | "ptrdiff_t" => "long",
        "_Bool" | "boolean" => "bool",
        "Packet" => "packet",
        _ => return None,
    })
}

/// Maximum header window of a packet: the maximum size of a packet.
const MOST_WINDOW_BYTES: u64 = 9216;
/// Maximum size of an array in bytes.
const MOST_BYTES: u64 = 1 << 32;
/// Maximum size of a record in bytes: its value is one bit vector.
const MOST_RECORD_BYTES: u64 = 1 << 16;
