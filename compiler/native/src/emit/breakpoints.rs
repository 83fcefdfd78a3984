// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Breakpoints: a firing that passes one completes, and then its instance is held until the host
//! resumes it. Only instances that can pass one are checked for being held.

use super::Emitter;
use freeport_ir::{FunctionId, InstanceId, Op, Probe};

/// Returns whether firings of an instance can pass a breakpoint.
pub(super) fn may_be_held(emitter: &Emitter<'_>, id: InstanceId) -> bool {
    passes(emitter, emitter.program.element_of(id).handler)
}

/// Returns whether a function, or one that it calls, has a breakpoint.
pub(super) fn passes(emitter: &Emitter<'_>, id: FunctionId) -> bool {
    let mut insts = emitter.function(id).blocks.iter().flat_map(|block| &block.insts);
    insts.any(|inst| match &inst.op {
        Op::Probe { probe: Probe::Breakpoint(_), .. } => true,
        Op::Call { function, .. } => passes(emitter, *function),
        _ => false,
    })
}

/// Returns the condition under which an instance is not held; `None` if it never is.
pub(super) fn is_free(emitter: &Emitter<'_>, id: InstanceId) -> Option<String> {
    may_be_held(emitter, id).then(|| format!("graph->instance_{}.is_held == 0", id.0))
}

/// Returns statements after a firing that hold its instance.
pub(super) fn hold(emitter: &Emitter<'_>, handler: FunctionId) -> &'static str {
    match passes(emitter, handler) {
        true => {
            "    if (UNLIKELY(firing->activation.passed_breakpoint &&\n\
             \x20                instance->runtime->breakpoints_enabled)) {\n\
             \x20       instance->is_held = HELD_NEWLY;\n\
             \x20       instance->runtime->has_stopped = true;\n    }\n"
        }
        false => "",
    }
}
