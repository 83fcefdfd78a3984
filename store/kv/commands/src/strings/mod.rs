// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings.

use freeport_kv_keyspace::Expiry;
use freeport_kv_protocol::resp::reply::shared;

use crate::call::Call;
use crate::command::{Command, Flags, Group};
use crate::effects::Class;
use crate::error::Error;
use crate::keys::Keys;

const READ: Flags = Flags::READ.with(Flags::FAST);
const WRITE: Flags = Flags::WRITE.with(Flags::GROWS);

/// Commands of strings.
pub const COMMANDS: &[Command] = &[
    Command::new(("get", 2), Group::String, READ, Keys::FIRST, get),
    Command::new(("set", -3), Group::String, WRITE, Keys::FIRST, set),
];

fn get(call: &mut Call<'_>) -> Result<(), Error> {
    match call.database.string(call.arguments[1])? {
        Some(value) => call.reply.bulk(value),
        None => call.reply.null(),
    }
    Ok(())
}

fn set(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    call.database.set_string(key, value, Expiry::Never)?;
    call.database.changed(key, Class::String, "set");
    call.reply.raw(shared::OK);
    Ok(())
}
