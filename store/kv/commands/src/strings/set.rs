// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Storing one string: SET, and the older commands that its options replace.

use freeport_kv_keyspace::Expiry;
use freeport_kv_protocol::resp::reply::shared;

use super::options::{Condition, Lifetime, Options, Unit};
use super::read::reply_with;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `SET key value [NX | XX] [GET]`, and `EX seconds`, `PX milliseconds`, `EXAT time`, `PXAT time`
/// or `KEEPTTL`.
pub fn set(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    let options = Options::of_set(&call.arguments[3..])?;
    let expiry = match options.lifetime {
        Lifetime::Unsaid | Lifetime::Persist => Expiry::Never,
        Lifetime::Keep => Expiry::Keep,
        Lifetime::Given(unit, argument) => {
            Expiry::AtMs(unit.expires_ms(argument, call.now_ms(), "set")?)
        }
    };
    if options.returns_old {
        reply_with(call, key)?;
    }
    let is_stored = match options.condition {
        Condition::None => true,
        Condition::IsNew => !call.database.contains(key),
        Condition::Exists => call.database.contains(key),
    };
    if is_stored {
        store(call, key, value, expiry)?;
    }
    match (options.returns_old, is_stored) {
        (true, _) => {}
        (false, true) => call.reply.raw(shared::OK),
        (false, false) => call.reply.null(),
    }
    Ok(())
}

/// `SETNX key value`.
pub fn setnx(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    if call.database.contains(key) {
        call.reply.raw(shared::ZERO);
    } else {
        store(call, key, value, Expiry::Never)?;
        call.reply.raw(shared::ONE);
    }
    Ok(())
}

/// `SETEX key seconds value`.
pub fn setex(call: &mut Call<'_>) -> Result<(), Error> {
    set_for(call, Unit::Seconds, "setex")
}

/// `PSETEX key milliseconds value`.
pub fn psetex(call: &mut Call<'_>) -> Result<(), Error> {
    set_for(call, Unit::Milliseconds, "psetex")
}

fn set_for(call: &mut Call<'_>, unit: Unit, command: &str) -> Result<(), Error> {
    let (key, lifetime, value) = (call.arguments[1], call.arguments[2], call.arguments[3]);
    let expires_ms = unit.expires_ms(lifetime, call.now_ms(), command)?;
    store(call, key, value, Expiry::AtMs(expires_ms))?;
    call.reply.raw(shared::OK);
    Ok(())
}

/// `GETSET key value`.
pub fn getset(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, value) = (call.arguments[1], call.arguments[2]);
    reply_with(call, key)?;
    store(call, key, value, Expiry::Never)
}

/// Stores a string in place of any value, with its events.
#[inline]
fn store(call: &mut Call<'_>, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Error> {
    call.database.set_string(key, value, expiry)?;
    call.database.changed(key, Class::String, "set");
    if let Expiry::AtMs(_) = expiry {
        let database = &mut call.database;
        database.effects.note(Class::Generic, "expire", database.number(), key);
    }
    Ok(())
}
