// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A call of a script or function, and whether it may start.

use crate::caller::Caller;
use crate::header::Flags;
use freeport_kv_protocol::resp::Version;

/// A call of a script or function.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Names of keys.
    pub keys: &'a [&'a [u8]],
    /// Other arguments.
    pub arguments: &'a [&'a [u8]],
    /// Version of the reply.
    pub version: Version,
    /// It comes from a command that may not write, such as `EVAL_RO`: a script that may write, by
    /// its flags, is refused. The caller refuses single commands.
    pub read_only: bool,
}

/// Whether a script or function with these flags may start.
pub(crate) fn admit(flags: Flags, read_only: bool, caller: &mut dyn Caller) -> Result<(), String> {
    let may_write = !flags.contains(Flags::NO_WRITES) && !flags.contains(Flags::UNDECLARED);
    if read_only && may_write {
        return Err("ERR Can not execute a script with write flag using *_ro command.".into());
    }
    caller.begin(flags)
}
