// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One function being lowered: a cursor into its IR, the names in scope, and where `return`,
//! `break` and `continue` lead.

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

/// Elements of an array that may become registers without being asked to (ClickNP 2.7; the number
/// is ours).
pub const REGISTER_THRESHOLD: u64 = 64;

/// A function being lowered.
pub struct Body<'l, 'a> {
    /// The whole compilation.
    pub lowering: &'l mut Lowering<'a>,
    /// The IR so far.
    pub builder: Builder,
    /// Names, the innermost scope last; the first are the environment's and the element's.
    pub scopes: Vec<Scope<'a>>,
    /// The element it belongs to, if any.
    pub element: Option<Arc<ElementContext<'a>>>,
    /// What kind of function it is.
    pub role: Role,
    /// Where `return` leads.
    pub returns: Returns,
    /// Where `break` and `continue` lead, innermost last.
    pub control: Vec<Control>,
    /// Pointer variables, by [`PointerId`](super::pointers::PointerId).
    pub pointers: Vec<PointerVariable>,
    /// Names assigned to as a whole somewhere in the function: a pointer among them moves.
    pub moved: HashSet<String>,
    /// Locals that were indexed by a computed number: they are memories.
    pub indexed_locals: HashSet<LocalId>,
    /// Objects that hold constant arrays.
    pub tables: Vec<(Arc<ConstantTable>, ObjectRef)>,
    /// Largest values of the iterators of the loops around.
    pub iterators: HashMap<String, i128>,
    /// Calls that were expanded in place so far.
    pub expansions: usize,
    /// In `.signal`: the signal, and where its answer is kept.
    pub signal: Option<(Value, Place)>,
    /// Rounds of the loops around that are certain to run as often.
    pub rounds_around: u64,
    /// What is wrong if control comes there.
    pub doubts: super::warnings::Doubts,
    /// Functions being expanded in place, outermost first.
    pub expanding: Vec<(*const ast::Function, Key)>,
}

/// What kind of function a body is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// None: an expression of constants.
    Constant,
    /// A function.
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

/// What `return` means.
#[derive(Clone, Debug)]
pub enum Returns {
    /// Ends the firing, with the mask of that many inputs.
    Mask(u32),
    /// Ends the function, with a value of that type.
    Value(Type),
    /// Ends the signal handler; the answer is in the local object.
    Answer(Place),
    /// Ends an expansion in place.
    Expansion {
        /// Of what type.
        ty: Type,
        /// Where the value goes; none for `void`.
        result: Option<Place>,
        /// Where it goes on.
        exit: BlockId,
    },
    /// Not allowed: an `async` block.
    Nowhere,
}

/// A loop or switch around a statement.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Where `break` leads.
    pub exit: BlockId,
    /// Where `continue` leads; for a switch, that of the loop around it.
    pub next: Option<BlockId>,
    /// Whether it is a switch, whose arms may be entered past a declaration.
    pub is_switch: bool,
}

impl<'l, 'a> Body<'l, 'a> {
    /// Begins a function.
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

    /// The result of `check`, without what it reports.
    pub fn quietly<T>(
        &mut self,
        check: impl FnOnce(&mut Self) -> Result<T, Reported>,
    ) -> Option<T> {
        let before = self.lowering.diagnostics.len();
        let result = check(self).ok();
        self.lowering.diagnostics.truncate(before);
        result
    }

    /// What follows was written at `span`.
    pub fn at(&mut self, span: Span) {
        self.builder.loc = self.lowering.sources.loc(span);
    }

    /// Runs `lower` with a scope of its own.
    pub fn scoped<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(Scope::new());
        let result = lower(self);
        self.scopes.pop();
        result
    }

    /// A new firing-lifetime object for a variable of type `ty`, 0 so far.
    pub fn new_local(&mut self, name: &str, ty: &Type, span: Span) -> Place {
        Place::whole(ObjectRef::Local(self.new_object(name, ty, span)), ty)
    }

    /// The object of [`Body::new_local`].
    pub fn new_object(&mut self, name: &str, ty: &Type, span: Span) -> LocalId {
        let loc = self.lowering.sources.loc(span);
        let object = object_of(name, ty, Lifetime::Firing, loc);
        self.builder.function_mut().add_local(object)
    }

    /// A temporary variable that holds a value across blocks.
    pub fn new_temporary(&mut self, ty: &Type, span: Span) -> Place {
        self.new_local("temporary", ty, span)
    }

    /// The object `place` is in.
    pub fn object(&self, object: ObjectRef) -> &Object {
        match object {
            ObjectRef::Local(local) => &self.builder.function().locals[local.index()],
            ObjectRef::State(state) => {
                let element = self.element.as_ref().expect("only elements have state");
                &self.lowering.program.elements[element.id.index()].state[state.index()]
            }
        }
    }

    /// Notes that an object is indexed by a computed number.
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

    /// The finished function; its arrays go to memory where they need it (ClickNP 2.7).
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
        // What follows a `return`, and sides that are not there, have blocks without an end.
        remove_unreachable_blocks(&mut function);
        function
    }

    /// A 64-bit constant.
    pub fn offset(&mut self, value: u64) -> ValueId {
        self.builder.constant(Bits::from_u64(64, value))
    }
}

/// The object of a variable: an array becomes as many elements, anything else is one.
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

/// Bits between the starts of two neighbouring elements in memory.
pub fn stride_bits(ty: &Type) -> u64 {
    layout::size_bytes(ty.innermost().0) * 8
}
