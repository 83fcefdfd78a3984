// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of XDP objects as elements: lifted, and added to the elements of the file. Their maps
//! become tables of the element, and their data variables become state, under their names in the
//! object.

use super::Lowering;
use crate::ast::{Name, ObjectProgram, TemplateArg};
use crate::diagnostic::Diagnostic;
use crate::layouts::{ElementLayout, FieldLayout, TableLayout, VariableLayout};
use crate::library::FILE_BYTES_MAX;
use freeport_ebpf::lift::{Ports, lift};
use freeport_ebpf::object::{Layout, MapDefinition, Object, Program, ProgramKind};
use freeport_ir::{self as ir, ElementId, FunctionId, Loc, ObjectId, Table, TableId, TableKind};
use std::path::Path;

/// Maximum devices that an element has ports for: the program is instantiated once for each.
const DEVICES_MAX: usize = 16;
/// Maximum numbers in a key or a value that are listed individually.
const MOST_FIELDS: usize = 4096;

impl Lowering<'_> {
    /// Returns the element of a program of an object, with ports for the given devices; `None`
    /// after an error, which has been reported.
    pub fn object(
        &mut self,
        object: &ObjectProgram,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<ElementId> {
        let devices = self.devices(object, args)?;
        let from = &self.sources.files()[object.path.span.file as usize].path;
        let path = from.parent().unwrap_or(Path::new("")).join(&object.path.text);
        let key = (path, object.program.as_ref().map(|name| name.text.clone()), devices);
        if let Some(known) = self.objects.get(&key) {
            return *known;
        }
        let made = match self.lifted(&key.0, object, &key.2) {
            Ok(element) => Some(element),
            Err(error) => {
                self.report(*error);
                None
            }
        };
        self.objects.insert(key, made);
        made
    }

    /// Returns the devices that an element has ports for.
    fn devices(
        &mut self,
        object: &ObjectProgram,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<Vec<u32>> {
        let mut devices = vec![];
        for (name, arg) in args {
            let span = object.path.span;
            let TemplateArg::Value(value) = arg else {
                self.report(Diagnostic::error("E0520", span, "a device is a number, no type"));
                return None;
            };
            if let Some(name) = name {
                let message = format!("a program of an object has no parameter `{}`", name.text);
                let error = Diagnostic::error("E0520", name.span, message);
                self.report(error.help("give the numbers of devices, as in `<2, 3>`"));
                return None;
            }
            let number = self.constant(value)?;
            match u32::try_from(number) {
                Ok(device) if device != 0 && !devices.contains(&device) => devices.push(device),
                _ => {
                    let message = format!("{number} is not a device, or is given twice");
                    self.report(Diagnostic::error("E0520", value.span, message));
                    return None;
                }
            }
        }
        if devices.len() > DEVICES_MAX {
            let message = format!("{} devices; {DEVICES_MAX} are possible", devices.len());
            self.report(Diagnostic::error("E0520", object.path.span, message));
            return None;
        }
        Some(devices)
    }

    fn lifted(
        &mut self,
        path: &Path,
        object: &ObjectProgram,
        devices: &[u32],
    ) -> Result<ElementId, Box<Diagnostic>> {
        let span = object.path.span;
        let error = |what: String| {
            let message = format!("`{}`: {what}", path.display());
            Box::new(Diagnostic::error("E0520", span, message))
        };
        let bytes = read(path).map_err(&error)?;
        let read = Object::parse(&bytes).map_err(|reason| error(reason.to_string()))?;
        let program = chosen(&read, object)?;
        let ports = match devices {
            [] => Ports::ByVerdict,
            _ => Ports::Devices(devices.to_vec()),
        };
        let lifted = lift(&read, program, &ports).map_err(|reason| {
            let help = "it can run by itself: `freeport xdp run`, in the interpreter or the kernel";
            Box::new(error(reason.explain(program)).help(help))
        })?;
        Ok(self.add_lifted(lifted.program, self.sources.loc(span), &read.maps))
    }

    /// Adds the only element of a lifted program; its location is `loc` throughout.
    fn add_lifted(&mut self, lifted: ir::Program, loc: Loc, maps: &[MapDefinition]) -> ElementId {
        let id = ElementId::new(self.program.elements.len());
        for mut function in lifted.functions {
            function.owner = Some(id);
            function.loc = loc;
            for block in &mut function.blocks {
                block.insts.iter_mut().for_each(|inst| inst.loc = loc);
                block.term_loc = loc;
            }
            function.locals.iter_mut().for_each(|object| object.loc = loc);
            self.program.functions.push(function);
        }
        for mut element in lifted.elements {
            element.handler = FunctionId::new(self.program.functions.len() - 1);
            element.loc = loc;
            element.inputs.iter_mut().chain(&mut element.outputs).for_each(|it| it.loc = loc);
            element.state.iter_mut().for_each(|object| object.loc = loc);
            element.tables.iter_mut().for_each(|table| table.loc = loc);
            self.layouts.elements.push(layout(&element, maps));
            self.program.elements.push(element);
        }
        id
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let meta = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is not a file".to_owned());
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// Returns the selected program.
fn chosen<'o>(read: &'o Object, object: &ObjectProgram) -> Result<&'o Program, Box<Diagnostic>> {
    let is_xdp = |program: &&Program| !matches!(program.kind, ProgramKind::Other(_));
    let all: Vec<&Program> = read.programs.iter().filter(is_xdp).collect();
    let names = all.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ");
    let path = &object.path;
    let error = |name: &Name, message: &str| Diagnostic::error("E0520", name.span, message);
    let found = match (&object.program, all.as_slice()) {
        (None, [program]) => Ok(*program),
        (None, []) => Err(error(path, "there is no XDP program in the object")),
        (None, _) => Err(error(path, "there are several programs in the object")
            .help(format!("name one after the path: {names}"))),
        (Some(name), _) => {
            let found = all.iter().find(|program| program.name == name.text);
            let message = format!("there is no XDP program `{}` in the object", name.text);
            let missing = || error(name, &message).help(format!("there are: {names}"));
            found.copied().ok_or_else(missing)
        }
    };
    found.map_err(Box::new)
}

/// Returns the layout of the element for the host.
fn layout(element: &ir::Element, maps: &[MapDefinition]) -> ElementLayout {
    let variable = |(at, object): (usize, &ir::Object)| {
        let ty = format!("uint{}", object.elem_bits);
        let field = number(String::new(), false, 0, object.elem_bits);
        VariableLayout {
            name: object.name.clone(),
            object: ObjectId::new(at),
            ty: if object.depth == 1 { ty } else { format!("{ty}[{}]", object.depth) },
            fields: vec![field],
        }
    };
    let table = |(at, table): (usize, &Table)| {
        let map = maps.iter().find(|map| map.name == table.name);
        let key_layout = map.and_then(|map| map.key_layout.as_ref());
        let value_layout = map.and_then(|map| map.value_layout.as_ref());
        let key = match table.kind {
            TableKind::LongestPrefix => {
                vec![number(String::new(), false, 0, table.key_bits.saturating_sub(32))]
            }
            _ => fields(key_layout, table.key_bits),
        };
        TableLayout {
            name: table.name.clone(),
            table: TableId::new(at),
            key_ty: format!("uint8[{}]", table.key_bits / 8),
            key,
            value_ty: format!("uint8[{}]", table.value_bits / 8),
            value: fields(value_layout, table.value_bits),
        }
    };
    let ports = element.inputs.iter().chain(&element.outputs);
    let visible = element.state.iter().enumerate().filter(|(_, object)| object.host_visible);
    ElementLayout {
        variables: visible.map(variable).collect(),
        tables: element.tables.iter().enumerate().map(table).collect(),
        methods: vec![],
        ports: ports.map(|port| (port.name.clone(), "packet".to_owned())).collect(),
    }
}

fn number(path: String, is_signed: bool, bit: u64, width: u32) -> FieldLayout {
    let ty = format!("{}{width}", if is_signed { "int" } else { "uint" });
    FieldLayout { path, ty, is_signed, bit, width }
}

/// Returns the numbers in a key or a value: by the types of the object, otherwise byte by byte.
fn fields(layout: Option<&Layout>, bits: u32) -> Vec<FieldLayout> {
    let mut found = vec![];
    match layout.filter(|layout| layout.bytes().checked_mul(8) == Some(bits)) {
        Some(layout) => collect(layout, String::new(), 0, &mut found),
        None => found
            .extend((0..bits / 8).map(|at| number(format!("[{at}]"), false, u64::from(at) * 8, 8))),
    }
    found
}

fn collect(layout: &Layout, path: String, bit: u64, found: &mut Vec<FieldLayout>) {
    if found.len() >= MOST_FIELDS {
        return;
    }
    match layout {
        Layout::Integer { bytes, is_signed } | Layout::Enum { bytes, is_signed, .. } => {
            found.push(number(path, *is_signed, bit, bytes * 8));
        }
        Layout::Struct { members, .. } => {
            for member in members {
                let dot = if member.name.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{}", member.name);
                let bit = bit + u64::from(member.bit_offset);
                match (member.field_bits, &member.layout) {
                    (0, inner) => collect(inner, path, bit, found),
                    (width, Layout::Integer { is_signed, .. } | Layout::Enum { is_signed, .. }) => {
                        found.push(number(path, *is_signed, bit, width));
                    }
                    (width, _) => found.push(number(path, false, bit, width)),
                }
            }
        }
        Layout::Array { element, count } => {
            let stride = u64::from(element.bytes()) * 8;
            for at in 0..*count {
                if found.len() >= MOST_FIELDS {
                    return;
                }
                collect(element, format!("{path}[{at}]"), bit + u64::from(at) * stride, found);
            }
        }
        Layout::Opaque { bytes } => {
            for at in 0..*bytes {
                found.push(number(format!("{path}[{at}]"), false, bit + u64::from(at) * 8, 8));
            }
        }
    }
}
