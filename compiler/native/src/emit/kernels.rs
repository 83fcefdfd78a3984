// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernels: loops that apply a function to all elements of an array, for the vector instructions of
//! the processor.
//!
//! The function is inlined into the loop. What it counts belongs to the element at hand and is
//! dropped, so that rounds are independent. Elements are unaligned.

use super::standalone::manifest;
use super::types::storage;
use super::{Emission, Emitter};
use crate::kernel::KernelKind;
use crate::manifest::signature;
use crate::{Error, Options};
use freeport_ir::{Function, FunctionId, ObjectRef, Op, Program};

/// Structures of `kernel.rs`, in C.
const TABLE: &str = "
struct kernel {
    void (*same)(uint8_t *values, uint64_t count, const uint8_t *operands);
    void (*each)(uint8_t *values, uint64_t count, const uint8_t *operands);
    uint64_t (*fold)(const uint8_t *values, uint64_t count, uint64_t sigma);
    void (*test)(const uint8_t *values, uint64_t count, const uint8_t *operands, uint8_t *flags);
};
struct kernels { uint64_t abi, count; const struct kernel *kernels; };
";

/// Emits the kernels of functions without an owning element.
pub(crate) fn emit_kernels(
    program: &Program,
    kernels: &[(FunctionId, KernelKind)],
    options: &Options,
) -> Result<Emission, Error> {
    let mut emitter = Emitter::new(program, &Options { record: false, ..options.clone() });
    let functions: Vec<FunctionId> = kernels.iter().map(|(function, _)| *function).collect();
    let order = emitter.functions(&functions)?;
    for id in &order {
        check(&emitter, emitter.function(*id))?;
    }
    let mut text = emitter.opening() + TABLE;
    text += &emitter.wide_types(&order);
    text += &emitter.definitions(&order)?;
    let mut table = String::new();
    for (at, (id, kind)) in kernels.iter().enumerate() {
        let parts = Parts::of(&emitter, *id, *kind)?;
        text += &parts.emit(at);
        table += &match kind {
            KernelKind::Map => format!("    {{.same = same_{at}, .each = each_{at}}},\n"),
            KernelKind::Fold => format!("    {{.fold = fold_{at}}},\n"),
            KernelKind::Test => format!("    {{.test = test_{at}}},\n"),
        };
    }
    let count = kernels.len();
    text += &format!(
        "static const struct kernel table[] = {{\n{table}    {{0}},\n}};\n\n\
         __attribute__((visibility(\"default\"))) const struct kernels freeport_kernels = {{\n\
         \x20   ABI_VERSION, {count}, table,\n}};\n"
    );
    let manifest = manifest(&emitter, &functions);
    Ok(Emission { text, manifest })
}

/// Rejects functions with a result that depends on more than the arguments, or with effects.
fn check(emitter: &Emitter<'_>, function: &Function) -> Result<(), Error> {
    if function.owner.is_some() {
        return Err(emitter.unsupported(function, "an element's function as a kernel"));
    }
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        let is_local = match &inst.op {
            Op::Load { object, .. }
            | Op::Store { object, .. }
            | Op::LoadBytes { object, .. }
            | Op::StoreBytes { object, .. } => matches!(object, ObjectRef::Local(_)),
            op => op.is_pure() || matches!(op, Op::Call { .. }),
        };
        if !is_local {
            let what = "an operation with effects in a kernel";
            return Err(emitter.unsupported_at(function, what, inst.loc));
        }
    }
    Ok(())
}

/// The parts of the loops of one kernel.
struct Parts {
    id: FunctionId,
    kind: KernelKind,
    /// Type of an element, and of each operand.
    element: String,
    /// Size of an element in bytes.
    bytes: u32,
    operands: usize,
}

impl Parts {
    fn of(emitter: &Emitter<'_>, id: FunctionId, kind: KernelKind) -> Result<Self, Error> {
        let function = emitter.function(id);
        let (params, result) = signature(emitter.program, id);
        let is_complete = params.len() == function.params().len();
        let width = params.first().copied().unwrap_or_default();
        let rest = params.get(1..).unwrap_or_default();
        let fits = match kind {
            KernelKind::Map => rest.iter().all(|one| *one == width) && result == Some(width),
            KernelKind::Test => rest.iter().all(|one| *one == width) && result == Some(1),
            KernelKind::Fold => rest == [64] && result == Some(64),
        };
        if !is_complete || !matches!(width, 8 | 16 | 32 | 64) || !fits {
            return Err(emitter.unsupported(function, "the parameters of this kernel"));
        }
        let operands = if kind == KernelKind::Fold { 0 } else { rest.len() };
        Ok(Self { id, kind, element: storage(width), bytes: width / 8, operands })
    }

    fn emit(&self, at: usize) -> String {
        match self.kind {
            KernelKind::Map => self.map(at, "same") + &self.map(at, "each"),
            KernelKind::Fold => self.fold(at),
            KernelKind::Test => self.test(at),
        }
    }

    /// Emits the loop that replaces elements, with the same operands for all or with own ones.
    fn map(&self, at: usize, name: &str) -> String {
        let Self { element, bytes, .. } = self;
        let (before, inside) = match name {
            "same" => (self.load_operands("operands", 4), String::new()),
            _ => {
                let stride = self.operands as u32 * bytes;
                (String::new(), self.load_operands(&format!("operands + at * {stride}"), 8))
            }
        };
        format!(
            "static void {name}_{at}(uint8_t *const restrict values, const uint64_t count,\n\
             \x20   const uint8_t *const restrict operands) {{\n{before}\
             \x20   for (uint64_t at = 0; at < count; at++) {{\n{inside}{}\
             \x20       memcpy(values + at * {bytes}, &returned, {bytes});\n    }}\n}}\n\n",
            self.call(element)
        )
    }

    fn fold(&self, at: usize) -> String {
        format!(
            "static uint64_t fold_{at}(const uint8_t *const values, const uint64_t count,\n\
             \x20   uint64_t operand_0) {{\n\
             \x20   for (uint64_t at = 0; at < count; at++) {{\n{}\
             \x20       operand_0 = returned;\n    }}\n    return operand_0;\n}}\n\n",
            self.call("uint64_t")
        )
    }

    fn test(&self, at: usize) -> String {
        format!(
            "static void test_{at}(const uint8_t *const restrict values, const uint64_t count,\n\
             \x20   const uint8_t *const restrict operands, uint8_t *const restrict flags) {{\n{}\
             \x20   for (uint64_t at = 0; at < count; at++) {{\n{}\
             \x20       flags[at] = returned;\n    }}\n}}\n\n",
            self.load_operands("operands", 4),
            self.call("uint8_t")
        )
    }

    /// Emits the call for element `at`, whose result is `returned`. A kernel needs no instance, and
    /// what its activation counts is not used.
    fn call(&self, result: &str) -> String {
        let Self { id, element, bytes, .. } = self;
        let count = if self.kind == KernelKind::Fold { 1 } else { self.operands };
        let operands: String = (0..count).map(|at| format!(", operand_{at}")).collect();
        format!(
            "        struct activation activation = {{0}};\n\
             \x20       {element} value;\n\
             \x20       memcpy(&value, values + at * {bytes}, {bytes});\n\
             \x20       {result} returned = 0;\n\
             \x20       function_{}(&activation, value{operands}, &returned);\n",
            id.0
        )
    }

    fn load_operands(&self, from: &str, indent: usize) -> String {
        let Self { element, bytes, .. } = self;
        let load = |at| {
            let (indent, offset) = (" ".repeat(indent), at as u32 * bytes);
            format!(
                "{indent}{element} operand_{at};\n\
                 {indent}memcpy(&operand_{at}, {from} + {offset}, {bytes});\n"
            )
        };
        (0..self.operands).map(load).collect()
    }
}
