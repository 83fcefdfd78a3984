// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shape of a function: what its parameters say about its kind, its elements and its operands.

use freeport_clicknp::FileFunction;
use freeport_clicknp::diagnostic::Diagnostic;
use freeport_clicknp::lower::Signature;
use freeport_clicknp::source::Span;
use freeport_clicknp::types::{IntType, LONG, Type, ULONG};
use freeport_ir::FunctionId;
use freeport_kv_functions::{Element, Kind, User};

/// Name of the second parameter of a reduction.
const SIGMA: &str = "sigma";

/// A function to register.
pub(crate) struct Shape {
    pub kind: Kind,
    /// Names of the operands.
    pub operands: Vec<String>,
    /// The types of elements it is for, each with its function of the program.
    pub bodies: Vec<(Element, FunctionId)>,
}

/// The types of elements of which a template is made, in the order of their codes.
pub(crate) fn element_types() -> Vec<Type> {
    Element::ALL.into_iter().filter_map(type_of).collect()
}

/// Returns the type of the language; `None` for floats, which it does not have.
fn type_of(element: Element) -> Option<Type> {
    let is_signed = match element {
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => false,
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => true,
        Element::F32 | Element::F64 => return None,
    };
    Some(Type::Int(IntType::of_width(element.width() as u32 * 8, is_signed)))
}

/// Returns the shape of a function, or of all instances of a template.
///
/// # Errors
/// A message about the first parameter or result that fits no kind.
pub(crate) fn shape_of(function: &FileFunction) -> Result<Shape, Box<Diagnostic>> {
    let mut found: Option<Shape> = None;
    for instance in &function.instances {
        let Shape { kind, operands, bodies } = Reader { function, instance }.read()?;
        let shape = found.get_or_insert_with(|| Shape { kind, operands, bodies: vec![] });
        let is_known = |(element, _): &(Element, FunctionId)| *element == bodies[0].0;
        if shape.bodies.iter().any(is_known) {
            let message = format!("the template `{}` has one type of elements", function.name.text);
            let error = Diagnostic::error("K0101", function.params[0], message);
            let error = error.label("this type does not depend on the template's parameter");
            let help = "write the template's parameter as the type of the element, or no template";
            return Err(error.help(help).into());
        }
        shape.bodies.extend(bodies);
    }
    Ok(found.expect("a function without an instance has an error, and is not used"))
}

/// Reads the parameters of one instance.
struct Reader<'a> {
    function: &'a FileFunction,
    instance: &'a Signature,
}

impl Reader<'_> {
    fn read(&self) -> Result<Shape, Box<Diagnostic>> {
        let element = self.element()?;
        let operands = self.names()?;
        let kind = match (self.instance.params.get(1), &self.instance.result) {
            (Some((name, _)), _) if name == SIGMA => self.reduction(),
            (_, Type::Bool) => self.operands(Kind::Filter),
            _ => self.operands(Kind::Update),
        };
        Ok(Shape { kind: kind?, operands, bodies: vec![(element, self.instance.function)] })
    }

    /// Reads the first parameter, which is the element.
    fn element(&self) -> Result<Element, Box<Diagnostic>> {
        let name = &self.function.name;
        let Some((_, ty)) = self.instance.params.first() else {
            let message = format!("`{}` has no parameter", name.text);
            return Err(Diagnostic::error("K0102", name.span, message)
                .help("its first parameter is an element of a value: `ulong f(ulong v)`")
                .into());
        };
        let element = Element::ALL.into_iter().find(|one| type_of(*one).as_ref() == Some(ty));
        element.ok_or_else(|| {
            let message = format!("the element of `{}` is {}", name.text, spelled(ty));
            Diagnostic::error("K0102", self.function.params[0], message)
                .label("an integer of 8, 16, 32 or 64 bits is needed")
                .help(self.or_inline())
                .into()
        })
    }

    /// Reads the names of the other parameters, which requests and listings show.
    fn names(&self) -> Result<Vec<String>, Box<Diagnostic>> {
        let rest = || self.instance.params.iter().enumerate().skip(1);
        if let Some((at, _)) = rest().skip(1).find(|(_, (name, _))| name == SIGMA) {
            let message = format!("parameter {} of `{}` is named `{SIGMA}`", at + 1, self.name());
            return Err(Diagnostic::error("K0103", self.function.params[at], message)
                .help("only the second parameter of a reduction has this name")
                .into());
        }
        let count = self.instance.params.len() - 1;
        if count > User::MAX_OPERANDS {
            let most = User::MAX_OPERANDS;
            let message = format!("`{}` has {count} operands, and {most} are allowed", self.name());
            return Err(Diagnostic::error("K0103", self.function.params[most + 1], message).into());
        }
        Ok(rest().map(|(_, (name, _))| name.clone()).collect())
    }

    fn reduction(&self) -> Result<Kind, Box<Diagnostic>> {
        let sigma = &self.instance.params[1].1;
        let help = "a reduction is `ulong f(T v, ulong sigma)` or `long f(T v, long sigma)`";
        if *sigma != Type::Int(ULONG) && *sigma != Type::Int(LONG) {
            let message = format!("`{SIGMA}` of `{}` is {}", self.name(), spelled(sigma));
            return Err(self.error("K0104", self.function.params[1], message, help));
        }
        if let Some(third) = self.function.params.get(2) {
            let message = format!("the reduction `{}` has a third parameter", self.name());
            return Err(self.error("K0104", *third, message, help));
        }
        if self.instance.result != *sigma {
            let result = spelled(&self.instance.result);
            let message = format!(
                "the result of `{}` is {result}, and {SIGMA} {}",
                self.name(),
                spelled(sigma)
            );
            return Err(self.error("K0104", self.function.result, message, help));
        }
        Ok(Kind::Reduce)
    }

    /// Checks that all operands, and the result of an update, have the type of the element.
    fn operands(&self, kind: Kind) -> Result<Kind, Box<Diagnostic>> {
        let element = &self.instance.params[0].1;
        let other = self.instance.params.iter().position(|(_, ty)| ty != element);
        if let Some(at) = other {
            let (number, ty) = (at + 1, spelled(&self.instance.params[at].1));
            let message = format!(
                "parameter {number} of `{}` is {ty}, and the element {}",
                self.name(),
                spelled(element)
            );
            let help = "operands have the type of the element; the second parameter of a reduction \
                        is named `sigma`";
            return Err(self.error("K0105", self.function.params[at], message, help));
        }
        if kind == Kind::Update && self.instance.result != *element {
            let result = spelled(&self.instance.result);
            let message = format!(
                "the result of `{}` is {result}, and the element {}",
                self.name(),
                spelled(element)
            );
            let help = "an update returns the type of the element, a filter `bool`; the second \
                        parameter of a reduction is named `sigma`";
            return Err(self.error("K0105", self.function.result, message, help));
        }
        Ok(kind)
    }

    fn error(
        &self,
        code: &'static str,
        span: Span,
        message: String,
        help: &'static str,
    ) -> Box<Diagnostic> {
        Diagnostic::error(code, span, message).help(format!("{help}; {}", self.or_inline())).into()
    }

    fn or_inline(&self) -> String {
        format!("make `{}` `inline` if only other functions call it", self.name())
    }

    fn name(&self) -> &str {
        &self.function.name.text
    }
}

/// Returns a type in a sentence.
fn spelled(ty: &Type) -> String {
    match ty {
        Type::Void => "nothing".to_owned(),
        ty => format!("`{ty}`"),
    }
}
