// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where and why a program was ended, in the words of its source.

use freeport_ebpf::interpreter::Abort;
use freeport_ebpf::object::{Line, Object};

/// Where and why a program was ended.
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

/// The source line of it, if the object has lines.
pub fn line<'o>(object: &'o Object, abort: &Abort) -> Option<&'o Line> {
    object.programs.get(abort.program)?.line(abort.slot)
}
