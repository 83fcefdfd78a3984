// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls of methods of other instances, allowed between firings to functions without ports.
//!
//! A function knows only its own instance. Another one is reached through the graph that contains
//! both, whose type is complete only after all functions. So a call goes to a function of the
//! called instance that is declared before them and defined after the graph. Arguments and result
//! are bytes, as in calls by the host and in recordings.

use super::Emitter;
use super::functions::FunctionEmitter;
use super::types::{assign_of, bytes_of, storage, zero};
use crate::Error;
use freeport_ir::{FunctionId, InstanceId, Loc, MethodId, Op, ValueId};
use std::collections::BTreeSet;

/// Returns the instances whose methods `functions` call.
pub(super) fn called(emitter: &Emitter<'_>, functions: &[FunctionId]) -> BTreeSet<InstanceId> {
    let blocks = functions.iter().flat_map(|id| &emitter.function(*id).blocks);
    let callee = |op: &Op| match op {
        Op::CallMethod { instance, .. } => Some(*instance),
        _ => None,
    };
    blocks.flat_map(|block| &block.insts).filter_map(|inst| callee(&inst.op)).collect()
}

fn declaration(id: InstanceId) -> String {
    format!(
        "OUT_OF_LINE void call_method_of_{}(struct instance *const caller, \
         const uint32_t method,\n    const uint8_t *const arguments, \
         const uint64_t argument_bytes,\n    uint8_t *const result, const uint64_t result_bytes)",
        id.0
    )
}

/// Emits the declarations, which precede the functions.
pub(super) fn declarations(called: &BTreeSet<InstanceId>) -> String {
    called.iter().map(|id| format!("{};\n\n", declaration(*id))).collect()
}

/// Emits the definitions, which follow the graph and its layout.
pub(super) fn definitions(emitter: &Emitter<'_>, called: &BTreeSet<InstanceId>) -> String {
    called.iter().map(|id| definition(emitter, *id)).collect()
}

fn definition(emitter: &Emitter<'_>, id: InstanceId) -> String {
    let (at, element) = (id.0, emitter.program.instance(id).element.0);
    let mut text = format!(
        "\n{} {{\n\
         \x20   uint8_t *const place = (uint8_t *)caller - instances[caller->index].offset;\n\
         \x20   struct graph *const graph = (void *)place;\n\
         \x20   struct instance *const callee = &graph->instance_{at};\n",
        declaration(id)
    );
    if emitter.records {
        text += "    const uint64_t head[] = {caller->index, callee->index, method, \
                 callee->firings};\n";
    }
    text +=
        &format!("    call_{element}(callee, &graph->state_{at}, method, arguments, result);\n");
    text += &match emitter.records {
        // Recorded after it has returned: calls that it made itself come first.
        true => {
            let to = "graph->runtime, &graph->runtime->calls";
            format!(
                "    record({to}, head, sizeof head);\n    record({to}, arguments, \
                 argument_bytes);\n    record({to}, result, result_bytes);\n"
            )
        }
        false => "    (void)argument_bytes;\n    (void)result_bytes;\n".to_owned(),
    };
    text + "}\n"
}

impl FunctionEmitter<'_, '_> {
    pub(super) fn call_method(
        &mut self,
        instance: InstanceId,
        method: MethodId,
        args: &[ValueId],
        result: Option<ValueId>,
        loc: Loc,
    ) -> Result<(), Error> {
        let program = self.emitter.program;
        let Some(callee) = program.method(instance, method) else {
            return Err(self.unsupported("a call of an unknown method", loc));
        };
        let is_bits = |ty: freeport_ir::Type| ty.bits().is_some();
        if !args.iter().all(|arg| is_bits(self.function.type_of(*arg)))
            || !callee.result.is_none_or(is_bits)
        {
            return Err(self.unsupported("a parameter or result that is not a bit vector", loc));
        }
        let operands: Vec<_> = args.iter().map(|arg| self.operand(*arg)).collect();
        let argument_bytes: u32 = operands.iter().map(|operand| bytes_of(operand.width)).sum();
        let returned = callee.result.and_then(|ty| Some((ty, ty.bits()?)));
        let result_bytes = returned.map_or(0, |(_, width)| bytes_of(width));
        self.line(&format!(
            "{{ uint8_t arguments[{}], answer[{}] = {{0}};",
            argument_bytes.max(1),
            result_bytes.max(1)
        ));
        let mut offset = 0;
        for operand in operands {
            let bytes = bytes_of(operand.width);
            self.line(&format!("memcpy(arguments + {offset}, &{}, {bytes});", operand.name));
            offset += bytes;
        }
        self.line(&format!(
            "call_method_of_{}(activation->instance, {}, arguments, {argument_bytes}, answer, \
             {result_bytes});",
            instance.0, method.0
        ));
        if let (Some(result), Some((ty, width))) = (result, returned) {
            self.line(&format!("{} returned = {};", storage(width), zero(width)));
            self.line(&format!("memcpy(&returned, answer, {result_bytes});"));
            self.line(&assign_of(&self.name(result), "returned", ty));
        }
        self.line("}");
        Ok(())
    }
}
