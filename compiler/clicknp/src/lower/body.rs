// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of a function being lowered: a cursor into its IR, the names in scope, and the targets of
//! `return`, `break` and `continue`.

use super::elements::ElementContext;
use super::names::{ConstantTable, Scope};
use super::places::Place;
use super::pointers::PointerVariable;
use super::templates::Key;
use super::values::Value;
use super::{Lowering, Reported};
use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Type, layout};
use freeport_ir::passes::remove_unreachable_blocks;
use freeport_ir::{
    Addressing, Bits, BlockId, Builder, Function, Lifetime, LocalId, Object, ObjectRef, Space,
    ValueId,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum elements of an array that may become registers without a qualifier (ClickNP 2.7; the
/// number is ours).
pub const REGISTER_THRESHOLD: u64 = 64;

/// A function being lowered.
pub struct Body<'l, 'a> {
    /// State of the whole compilation.
    pub lowering: &'l mut Lowering<'a>,
    /// The IR so far.
    pub builder: Builder,
    /// Scopes, the innermost last; the first are those of the environment and the element.
    pub scopes: Vec<Scope<'a>>,
    /// The element it belongs to, if any.
    pub element: Option<Arc<ElementContext<'a>>>,
    /// Kind of function.
    pub role: Role,
    /// Meaning of `return`.
    pub returns: Returns,
    /// Targets of `break` and `continue`, innermost last.
    pub control: Vec<Control>,
    /// Pointer variables, by [`PointerId`](super::pointers::PointerId).
    pub pointers: Vec<PointerVariable>,
    /// Names assigned to completely somewhere in the function; pointers among them change their
    /// target.
    pub moved: HashSet<String>,
    /// Locals that are indexed by a computed number, which makes them memories.
    pub indexed_locals: HashSet<LocalId>,
    /// Objects that hold constant arrays.
    pub tables: Vec<(Arc<ConstantTable>, ObjectRef)>,
    /// Maximum values of the iterators of enclosing loops.
    pub iterators: HashMap<String, i128>,
    /// Number of calls expanded in place so far.
    pub expansions: usize,
    /// In `.signal`: the signal, and the place of its answer.
    pub signal: Option<(Value, Place)>,
    /// Product of the iterations of enclosing loops that are certain to run completely.
    pub rounds_around: u64,
    /// Possible warnings about code that may be unreachable.
    pub doubts: super::warnings::Doubts,
    /// Functions being expanded in place, outermost first.
    pub expanding: Vec<(*const ast::Function, Key)>,
}

/// Kind of function of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// No function: a constant expression.
    Constant,
    /// An ordinary function.
    Function,
    /// `.init`
    Init,
    /// `.handler`
    Handler,
    /// `.signal`
    Signal,
    /// `.method`
    Method,
    /// An `async` block.
    Async,
}

/// Meaning of `return`.
#[derive(Clone, Debug)]
pub enum Returns {
    /// Ends the firing, with a mask of this many inputs.
    Mask(u32),
    /// Ends the function, with a value of this type.
    Value(Type),
    /// Ends the signal handler; the answer is in the local object.
    Answer(Place),
    /// Ends an expansion in place.
    Expansion {
        /// Result type.
        ty: Type,
        /// Place for the value; `None` for `void`.
        result: Option<Place>,
        /// Block where control continues.
        exit: BlockId,
    },
    /// Not allowed: an `async` block.
    Nowhere,
}

/// A loop or switch around a statement.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Target of `break`.
    pub exit: BlockId,
    /// Target of `continue`; in a switch, that of the enclosing loop.
    pub next: Option<BlockId>,
    /// Whether it is a switch, whose arms may be entered past a declaration.
    pub is_switch: bool,
}

impl<'l, 'a> Body<'l, 'a> {
    /// Starts a function.
    pub fn new(
        lowering: &'l mut Lowering<'a>,
        function: Function,
        element: Option<Arc<ElementContext<'a>>>,
        role: Role,
        returns: Returns,
    ) -> Self {
        let outer = element.as_ref().map(|element| element.scope.clone()).unwrap_or_default();
        Self {
            lowering,
            builder: Builder::new(function),
            scopes: vec![outer, Scope::new()],
            element,
            role,
            returns,
            control: vec![],
            pointers: vec![],
            moved: HashSet::new(),
            indexed_locals: HashSet::new(),
            tables: vec![],
            iterators: HashMap::new(),
            expansions: 0,
            signal: None,
            rounds_around: 1,
            doubts: super::warnings::Doubts::default(),
            expanding: vec![],
        }
    }

    /// Records an error or a warning.
    pub fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        self.lowering.report(diagnostic)
    }

    /// Returns the result of `check`, and discards its diagnostics.
    pub fn quietly<T>(
        &mut self,
        check: impl FnOnce(&mut Self) -> Result<T, Reported>,
    ) -> Option<T> {
        let before = self.lowering.diagnostics.len();
        let result = check(self).ok();
        self.lowering.diagnostics.truncate(before);
        result
    }

    /// Sets the source location of the following code.
    pub fn at(&mut self, span: Span) {
        self.builder.loc = self.lowering.sources.loc(span);
    }

    /// Runs `lower` with a new scope.
    pub fn scoped<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(Scope::new());
        let result = lower(self);
        self.scopes.pop();
        result
    }

    /// Adds a firing-lifetime object for a variable of type `ty`, initially 0.
    pub fn new_local(&mut self, name: &str, ty: &Type, span: Span) -> Place {
        Place::whole(ObjectRef::Local(self.new_object(name, ty, span)), ty)
    }

    /// Adds the object for [`Body::new_local`].
    pub fn new_object(&mut self, name: &str, ty: &Type, span: Span) -> LocalId {
        let loc = self.lowering.sources.loc(span);
        let object = object_of(name, ty, Lifetime::Firing, loc);
        self.builder.function_mut().add_local(object)
    }

    /// Adds a temporary variable that holds a value across blocks.
    pub fn new_temporary(&mut self, ty: &Type, span: Span) -> Place {
        self.new_local("temporary", ty, span)
    }

    /// Returns the object that a reference names.
    pub fn object(&self, object: ObjectRef) -> &Object {
        match object {
            ObjectRef::Local(local) => &self.builder.function().locals[local.index()],
            ObjectRef::State(state) => {
                let element = self.element.as_ref().expect("only elements have state");
                &self.lowering.program.elements[element.id.index()].state[state.index()]
            }
        }
    }

    /// Records that an object is indexed by a computed number.
    pub fn note_indexed(&mut self, object: ObjectRef) {
        match (object, &self.element) {
            (ObjectRef::Local(local), _) => {
                self.indexed_locals.insert(local);
            }
            (ObjectRef::State(state), Some(element)) => {
                self.lowering.indexed_state.insert((element.id, state));
            }
            (ObjectRef::State(_), None) => {}
        }
    }

    /// Returns the finished function; arrays are moved to memory if necessary (ClickNP 2.7).
    pub fn finish(mut self) -> Function {
        self.settle_doubts();
        for at in 0..self.builder.function().locals.len() {
            let local = LocalId::new(at);
            let is_indexed = self.indexed_locals.contains(&local);
            let object = &mut self.builder.function_mut().locals[at];
            let is_memory = object.depth > 1 && (is_indexed || object.depth > REGISTER_THRESHOLD);
            if is_memory && !object.is_pinned {
                object.space = Space::Local;
            }
        }
        let mut function = self.builder.finish();
        // Code after a `return`, and untaken sides of constant conditions, leave blocks without a
        // terminator.
        remove_unreachable_blocks(&mut function);
        function
    }

    /// Appends a 64-bit constant.
    pub fn offset(&mut self, value: u64) -> ValueId {
        self.builder.constant(Bits::from_u64(64, value))
    }
}

/// Returns the object of a variable: an array has its own number of elements, anything else one.
pub fn object_of(name: &str, ty: &Type, lifetime: Lifetime, loc: freeport_ir::Loc) -> Object {
    let (item, depth) = ty.innermost();
    Object {
        name: name.to_string(),
        space: Space::Register,
        elem_bits: item.value_bits() as u32,
        depth,
        addressing: Addressing::Element,
        lifetime,
        init: vec![],
        host_visible: lifetime == Lifetime::Instance,
        is_pinned: false,
        loc,
    }
}

/// Returns the distance in bits between neighbouring elements in memory.
pub fn stride_bits(ty: &Type) -> u64 {
    layout::size_bytes(ty.innermost().0) * 8
}
