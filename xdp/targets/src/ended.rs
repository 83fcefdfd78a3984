// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Place and reason of an abort, with the line of the program's source.

use freeport_ebpf::interpreter::Abort;
use freeport_ebpf::object::{Line, Object};

/// Returns where and why a program was aborted.
pub fn abort(object: &Object, abort: &Abort) -> String {
    let Abort { program, slot, reason } = abort;
    let name = object.programs.get(*program).map_or("?", |program| &program.name);
    match line(object, abort) {
        Some(Line { file, line, .. }) => {
            format!("program `{name}`, instruction {slot} ({file}:{line}): {reason}")
        }
        None => format!("program `{name}`, instruction {slot}: {reason}"),
    }
}

/// Returns the source line of an abort, if the object has line information.
pub fn line<'o>(object: &'o Object, abort: &Abort) -> Option<&'o Line> {
    object.programs.get(abort.program)?.line(abort.slot)
}
