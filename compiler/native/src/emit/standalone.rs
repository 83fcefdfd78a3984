// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standalone functions: a library whose only instance holds their counters.

use super::elements::call_function;
use super::{Emission, Emitter};
use crate::manifest::{ElementInfo, InstanceInfo, Manifest, MethodInfo, signature};
use crate::{Error, Options};
use freeport_ir::{FunctionId, Program};

/// Emits functions without an owning element, as the methods of one instance.
pub(crate) fn emit_functions(
    program: &Program,
    functions: &[FunctionId],
    options: &Options,
) -> Result<Emission, Error> {
    let mut emitter = Emitter::new(program, &Options { record: false, ..options.clone() });
    for id in functions {
        let function = emitter.function(*id);
        if function.owner.is_some() {
            return Err(emitter.unsupported(function, "an element's function on its own"));
        }
    }
    let order = emitter.functions(functions)?;
    let mut text = emitter.opening();
    text += &emitter.wide_types(&order);
    text += &emitter.definitions(&order)?;
    for id in functions {
        text += &wrapper(&emitter, *id)?;
    }
    text += &image(&emitter, functions);
    let manifest = manifest(&emitter, functions);
    Ok(Emission { text, manifest })
}

/// Emits a separate wrapper for each function, so that compile time grows linearly.
fn wrapper(emitter: &Emitter<'_>, id: FunctionId) -> Result<String, Error> {
    let mut text = format!(
        "OUT_OF_LINE uint32_t wrapper_{}(struct activation *const activation,\n    \
         const uint8_t *const arguments, uint8_t *const result) {{\n    uint32_t trap;\n",
        id.0
    );
    text += &call_function(emitter, id, "activation")?;
    Ok(text + "    return trap;\n}\n\n")
}

fn image(emitter: &Emitter<'_>, functions: &[FunctionId]) -> String {
    let mut text = format!(
        "struct graph {{\n    struct instance instance;\n    uint64_t traps[{}];\n}};\n\n\
         static void start(void *const memory, struct runtime *const runtime, \
         const uint64_t seed) {{\n\
         \x20   struct graph *const graph = memory;\n\
         \x20   graph->instance.runtime = runtime;\n\
         \x20   graph->instance.traps = graph->traps;\n\
         \x20   graph->instance.random = seed;\n}}\n\n\
         static uint32_t run(void *const memory, struct endpoint_io *const io) {{\n\
         \x20   return STATUS_IDLE;\n}}\n\n\
         static uint32_t call(void *const memory, const uint32_t instance, \
         const uint32_t method,\n    const uint8_t *const arguments, uint8_t *const result) {{\n\
         \x20   struct graph *const graph = memory;\n\
         \x20   graph->instance.runtime->clock_reads_left = 0;\n\
         \x20   struct activation activation = {{.instance = &graph->instance}};\n\
         \x20   uint32_t trap = 0;\n    switch (method) {{\n",
        emitter.trap_count()
    );
    for (at, id) in functions.iter().enumerate() {
        let call = format!("wrapper_{}(&activation, arguments, result)", id.0);
        text += &format!("    case {at}: trap = {call}; break;\n");
    }
    text += "    default: break;\n    }\n\
             \x20   graph->instance.out_of_range += activation.out_of_range;\n\
             \x20   if (trap != 0) graph->traps[trap - 1]++;\n    return trap;\n}\n\n";
    text + "static const struct object_layout objects[] = {{0, 0}};\n\
            static const struct instance_layout instances[] = {\n\
            \x20   {offsetof(struct graph, instance), 0, objects, objects},\n};\n\n\
            __attribute__((visibility(\"default\"))) const struct image freeport_image = {\n\
            \x20   ABI_VERSION, sizeof(struct graph), _Alignof(struct graph), 1, 0, 0,\n\
            \x20   instances, NULL, NULL, start, run, call, NULL,\n};\n"
}

pub(super) fn manifest(emitter: &Emitter<'_>, functions: &[FunctionId]) -> Manifest {
    let methods = functions.iter().map(|id| {
        let (parameters, result) = signature(emitter.program, *id);
        MethodInfo { name: emitter.function(*id).name.clone(), parameters, result }
    });
    let element = ElementInfo {
        name: "functions".to_owned(),
        inputs: vec![],
        outputs: vec![],
        variables: vec![],
        tables: vec![],
        methods: methods.collect(),
        takes_signals: false,
        has_choice: false,
        awaits_all: false,
    };
    Manifest {
        program: emitter.program.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        records: false,
        endpoints: vec![],
        instances: vec![InstanceInfo { name: "functions".to_owned(), element: 0 }],
        elements: vec![element],
        channels: vec![],
        traps: emitter.traps.clone(),
        probes: emitter.probes.clone(),
    }
}
