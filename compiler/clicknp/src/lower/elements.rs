// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements: their ports, state and sections, specialised to template arguments.

use super::assigned;
use super::body::{Body, REGISTER_THRESHOLD, Returns, Role, object_of};
use super::names::{Binding, ConstantTable, Scope};
use super::places::Place;
use super::ports::PortShape;
use super::templates::Key;
use super::values::Value;
use super::{Lowered, Lowering, Side};
use crate::ast::{self, Block, Section};
use crate::config::Callable;
use crate::diagnostic::Diagnostic;
use crate::layouts::{ElementLayout, MethodLayout, VariableLayout, fields};
use crate::source::Span;
use crate::types::Type;
use freeport_ir::{
    self as ir, ElementId, Function, FunctionId, Lifetime, Method, ObjectId, ObjectRef,
    SIGNAL_BITS, Space, Type as IrType,
};
use std::sync::Arc;

/// State shared by the functions of an element.
#[derive(Debug)]
pub struct ElementContext<'a> {
    /// Index in the program.
    pub id: ElementId,
    /// Name, with its arguments.
    pub name: String,
    /// Template parameters, ports, state and functions.
    pub scope: Scope<'a>,
    /// Ports before `->`, with an array as one.
    pub inputs: Vec<PortShape>,
    /// Ports after `->`.
    pub outputs: Vec<PortShape>,
    /// Whether it is the manager of a configuration.
    pub is_manager: bool,
}

/// Sections that may occur once.
#[derive(Default)]
struct Sections<'a> {
    init: Option<(&'a Block, Span)>,
    handler: Option<(&'a Block, Span)>,
    signal: Option<(&'a Block, Span)>,
}

impl<'a> Lowering<'a> {
    pub(super) fn specialise_element(
        &mut self,
        element: &'a ast::Element,
        key: Key,
    ) -> Option<ElementId> {
        if let Some(known) = self.elements.get(&key) {
            return *known;
        }
        let made = self.make_element(element, &key, None);
        self.elements.insert(key, made);
        made
    }

    /// Lowers an element, or a manager if there are instances that it may call; returns `None`
    /// after an error, which has been reported.
    pub(super) fn make_element(
        &mut self,
        element: &'a ast::Element,
        key: &Key,
        instances: Option<&[Arc<Callable>]>,
    ) -> Option<ElementId> {
        let errors = self.diagnostics.len();
        let id = ElementId::new(self.program.elements.len());
        let loc = self.sources.loc(element.name.span);
        self.program.elements.push(ir::Element {
            name: key.to_string(),
            inputs: vec![],
            outputs: vec![],
            state: vec![],
            tables: vec![],
            init: None,
            handler: FunctionId(0),
            signal: None,
            methods: vec![],
            await_all: element.await_all,
            initiation_interval: 1,
            loc,
        });
        self.layouts.elements.push(ElementLayout::default());
        let context = self.element_context(element, key, id, instances).ok()?;
        let lowered = self.lower_element(element, &context);
        let is_sound = self.diagnostics[errors..]
            .iter()
            .all(|one| one.severity != crate::diagnostic::Severity::Error);
        (lowered.is_ok() && is_sound).then_some(id)
    }

    fn lower_element(
        &mut self,
        element: &'a ast::Element,
        context: &Arc<ElementContext<'a>>,
    ) -> Lowered<()> {
        let id = context.id;
        let sections = self.sections(element, context.is_manager)?;
        if let Some(interval) = &element.interval {
            let mut body = self.element_body(context, "interval", interval.span, Role::Constant);
            let clocks = body.constant_u64(interval)?;
            let Some(clocks) = u32::try_from(clocks).ok().filter(|clocks| *clocks > 0) else {
                let message = format!("an interval of {clocks} clocks");
                return Err(self.report(
                    Diagnostic::error("E0409", interval.span, message)
                        .label("clocks from one firing to the next: from 1 to 2^32 - 1")
                        .help("1 is the fastest"),
                ));
            };
            self.program.elements[id.index()].initiation_interval = clocks;
        }
        if let Some((block, span)) = sections.init {
            let function = self.section(context, "init", block, span, Role::Init);
            self.program.elements[id.index()].init = Some(function);
        }
        if let Some((block, span)) = sections.handler {
            let function = self.section(context, "handler", block, span, Role::Handler);
            self.program.elements[id.index()].handler = function;
        }
        if context.is_manager {
            self.program.elements[id.index()].handler = self.empty_handler(context, element);
        }
        if let Some((block, span)) = sections.signal {
            let function = self.signal_section(context, block, span)?;
            self.program.elements[id.index()].signal = Some(function);
        }
        self.methods(context, element)
    }

    fn sections(&mut self, element: &'a ast::Element, is_manager: bool) -> Lowered<Sections<'a>> {
        let mut found = Sections::default();
        for section in &element.sections {
            let (slot, block, span) = match section {
                Section::Init(block, span) => (&mut found.init, block, *span),
                Section::Handler(block, span) => (&mut found.handler, block, *span),
                Section::Signal(block, span) => (&mut found.signal, block, *span),
                _ => continue,
            };
            if let Some((_, before)) = slot.replace((block, span)) {
                return Err(self.report(
                    Diagnostic::error("E0407", span, "this section occurs twice")
                        .label("an element has one of each")
                        .note(before, "the first one")
                        .help("join the two"),
                ));
            }
        }
        if found.handler.is_none() && !is_manager {
            let message = format!("`{}` has no `.handler`", element.name.text);
            return Err(self.report(
                Diagnostic::error("E0406", element.name.span, message)
                    .label("nothing says what it does")
                    .help("add `.handler { ... }`"),
            ));
        }
        Ok(found)
    }

    /// Adds a handler that does nothing: a manager has nothing to wait for.
    fn empty_handler(
        &mut self,
        context: &ElementContext<'a>,
        element: &ast::Element,
    ) -> FunctionId {
        let loc = self.sources.loc(element.span);
        let mut handler = Function::new(format!("{}.handler", context.name), Some(context.id), loc);
        handler.block_mut(Function::ENTRY).term = ir::Term::Done { mask: None };
        self.add_function(handler)
    }

    /// Returns the names visible in all functions of the element, with its ports and state.
    fn element_context(
        &mut self,
        element: &'a ast::Element,
        key: &Key,
        id: ElementId,
        instances: Option<&[Arc<Callable>]>,
    ) -> Lowered<Arc<ElementContext<'a>>> {
        let mut body = self.constant_body();
        for instance in instances.unwrap_or_default() {
            body.declare(&instance.name, Binding::Instances(instance.clone()));
        }
        for (param, value) in element.params.iter().zip(&key.args) {
            body.declare(&param.name, value.binding());
        }
        let mut context = ElementContext {
            id,
            name: key.to_string(),
            scope: Scope::new(),
            inputs: body.port_shapes(&element.inputs)?,
            outputs: body.port_shapes(&element.outputs)?,
            is_manager: instances.is_some(),
        };
        for (at, port) in element.inputs.iter().enumerate() {
            body.declare(&port.name, Binding::Port(Side::Input, at));
        }
        for (at, port) in element.outputs.iter().enumerate() {
            body.declare(&port.name, Binding::Port(Side::Output, at));
        }
        let mut variables = vec![];
        for section in &element.sections {
            match section {
                Section::State(declarations, _) => {
                    for declaration in declarations {
                        // An invalid variable is reported; the others are still checked.
                        let made = body.state_variable(declaration, id, &mut variables);
                        if let (Err(_), Some(name)) = (made, &declaration.name) {
                            body.declare_wrong(name);
                        }
                    }
                }
                Section::Function(function) => {
                    body.declare(&function.name, Binding::Function(function));
                }
                _ => {}
            }
        }
        context.scope = body.scopes.pop().unwrap_or_default();
        let loc = |span: Span| self.sources.loc(span);
        let made = &mut self.program.elements[id.index()];
        made.inputs = context.inputs.iter().flat_map(|port| port.ports(loc(port.span))).collect();
        made.outputs = context.outputs.iter().flat_map(|port| port.ports(loc(port.span))).collect();
        let layout = &mut self.layouts.elements[id.index()];
        layout.variables = variables;
        let ports = context.inputs.iter().chain(&context.outputs);
        layout.ports = ports.map(|port| (port.name.clone(), port.ty.to_string())).collect();
        Ok(Arc::new(context))
    }

    fn element_body(
        &mut self,
        context: &Arc<ElementContext<'a>>,
        name: &str,
        span: Span,
        role: Role,
    ) -> Body<'_, 'a> {
        let loc = self.sources.loc(span);
        let name = format!("{}.{name}", context.name);
        let function = Function::new(name, Some(context.id), loc);
        let returns = match role {
            Role::Handler => {
                let inputs = self.program.elements[context.id.index()].inputs.len();
                Returns::Mask(inputs as u32)
            }
            _ => Returns::Value(Type::Void),
        };
        Body::new(self, function, Some(context.clone()), role, returns)
    }

    fn section(
        &mut self,
        context: &Arc<ElementContext<'a>>,
        name: &str,
        block: &'a Block,
        span: Span,
        role: Role,
    ) -> FunctionId {
        let mut body = self.element_body(context, name, span, role);
        body.moved = assigned::of_block(block).moved;
        body.block(block);
        body.fall_off_end(block.span);
        let function = body.finish();
        self.add_function(function)
    }

    fn signal_section(
        &mut self,
        context: &Arc<ElementContext<'a>>,
        block: &'a Block,
        span: Span,
    ) -> Lowered<FunctionId> {
        let ty = self.signal.clone();
        let mut body = self.element_body(context, "signal", span, Role::Signal);
        body.builder.function_mut().result = Some(IrType::Bits(SIGNAL_BITS));
        let bits = IrType::Bits(SIGNAL_BITS);
        let id = body.builder.add_param(Function::ENTRY, bits, Some("signal".to_string()));
        let answer = body.new_local("answer", &ty, span);
        body.signal = Some((Value::computed(ty, id), answer.clone()));
        body.returns = Returns::Answer(answer);
        body.moved = assigned::of_block(block).moved;
        body.block(block);
        body.fall_off_end(block.span);
        let function = body.finish();
        Ok(self.add_function(function))
    }

    fn methods(
        &mut self,
        context: &Arc<ElementContext<'a>>,
        element: &'a ast::Element,
    ) -> Lowered<()> {
        let mut outcome = Ok(());
        for section in &element.sections {
            let Section::Method(function) = section else { continue };
            let name = function.name.text.clone();
            let known = &self.program.elements[context.id.index()].methods;
            if known.iter().any(|method| method.name == name) {
                let message = format!("two methods are called `{name}`");
                outcome = Err(self.report(
                    Diagnostic::error("E0203", function.name.span, message)
                        .label("defined again here")
                        .help("rename one of them"),
                ));
                continue;
            }
            let key = Key { name: name.clone(), args: vec![] };
            let element = Some(context.clone());
            let Ok(signature) = self.lower_function(function, &key, element, Role::Method) else {
                continue;
            };
            let param = |(name, ty): &(String, Type)| (name.clone(), ty.to_string(), fields(ty));
            let is_void = signature.result == Type::Void;
            let result = (signature.result.to_string(), fields(&signature.result));
            let layout = MethodLayout {
                name: name.clone(),
                params: signature.params.iter().map(param).collect(),
                result: (!is_void).then_some(result),
            };
            self.layouts.elements[context.id.index()].methods.push(layout);
            let method = Method { name: name.clone(), function: signature.function };
            self.methods.entry(context.id).or_default().push((name, signature));
            self.program.elements[context.id.index()].methods.push(method);
        }
        outcome
    }

    /// Returns the state object that holds a constant array, which is not visible to the host.
    pub(super) fn table_state(
        &mut self,
        element: &ElementContext<'a>,
        table: &Arc<ConstantTable>,
        span: Span,
    ) -> ObjectId {
        let known = self
            .table_states
            .iter()
            .find(|(owner, other, _)| *owner == element.id && Arc::ptr_eq(other, table));
        if let Some((.., object)) = known {
            return *object;
        }
        let loc = self.sources.loc(span);
        let mut object = object_of(&table.name, &table.ty, Lifetime::Instance, loc);
        object.init = table.elements.clone();
        object.host_visible = false;
        let state = &mut self.program.elements[element.id.index()].state;
        // Two functions may have constants of the same name.
        while state.iter().any(|other| other.name == object.name) {
            object.name.push('_');
        }
        state.push(object);
        let id = ObjectId::new(state.len() - 1);
        self.table_states.push((element.id, table.clone(), id));
        id
    }

    /// Moves arrays that are large, or indexed by computed numbers, to memory (ClickNP 2.7).
    pub(super) fn place_state(&mut self) {
        for (at, element) in self.program.elements.iter_mut().enumerate() {
            for (object_at, object) in element.state.iter_mut().enumerate() {
                let key = (ElementId::new(at), ObjectId::new(object_at));
                let is_memory = object.depth > 1
                    && (self.indexed_state.contains(&key) || object.depth > REGISTER_THRESHOLD);
                if is_memory && !object.is_pinned {
                    object.space = Space::Local;
                }
            }
        }
    }
}

impl<'a> Body<'_, 'a> {
    fn state_variable(
        &mut self,
        one: &'a ast::Declaration,
        id: ElementId,
        variables: &mut Vec<VariableLayout>,
    ) -> Lowered<()> {
        let Some(name) = &one.name else { return Ok(()) };
        if super::tables::is_table(one) {
            return self.declare_table(one, name, id);
        }
        if one.is_const {
            let binding = self.constant_binding(one)?;
            self.declare(name, binding);
            return Ok(());
        }
        let ty = self.declared_type(one)?;
        if let Type::Packet(_) = ty {
            return Err(self.packet_kept(one.span));
        }
        if matches!(ty.innermost().0, Type::Pointer(_) | Type::Void) {
            return Err(self.report(
                Diagnostic::error("E0213", one.span, format!("a state variable of type `{ty}`"))
                    .label("pointers exist only inside functions")
                    .help("keep an index instead"),
            ));
        }
        let init = match &one.init {
            Some(init) => self.initial_contents(&ty, init)?,
            None => vec![],
        };
        let loc = self.lowering.sources.loc(name.span);
        let mut object = object_of(&name.text, &ty, Lifetime::Instance, loc);
        object.init = init;
        object.space = match one.place {
            Some(ast::MemoryQualifier::Local) => Space::Local,
            Some(ast::MemoryQualifier::Global) => Space::Global,
            Some(ast::MemoryQualifier::Register) | None => Space::Register,
        };
        object.is_pinned = one.place.is_some();
        let state = &mut self.lowering.program.elements[id.index()].state;
        state.push(object);
        let object = ObjectId::new(state.len() - 1);
        let numbers = fields(ty.innermost().0);
        let layout =
            VariableLayout { name: name.text.clone(), object, ty: ty.to_string(), fields: numbers };
        variables.push(layout);
        self.declare(name, Binding::Variable(Place::whole(ObjectRef::State(object), &ty)));
        Ok(())
    }
}
