// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DUMP and RESTORE.

use freeport_kv_protocol::resp::reply::shared;

use super::payload::{Payload, payload_of};
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

pub(super) fn dump(call: &mut Call<'_>) -> Result<(), Error> {
    match call.database.value(call.arguments[1]) {
        Some(value) => call.reply.bulk(&payload_of(value)),
        None => call.reply.null(),
    }
    Ok(())
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`.
pub(super) fn restore(call: &mut Call<'_>) -> Result<(), Error> {
    const NEGATIVE: Error = Error::fixed("ERR Invalid TTL value, must be >= 0");
    const BUSY: Error = Error::fixed("BUSYKEY Target key name already exists.");
    let options = Options::read(&call.arguments[4..])?;
    let (key, now_ms) = (call.arguments[1], call.now_ms());
    if !options.replaces && call.database.contains(key) {
        return Err(BUSY);
    }
    let ttl = u64::try_from(integer(call.arguments[2])?).map_err(|_| NEGATIVE)?;
    let payload = Payload::check(call.arguments[3])?;
    let mut value = payload.value(call.database.limits(key))?;
    value.expires_ms = match (ttl, options.is_absolute) {
        (0, _) => None,
        (at_ms, true) => Some(at_ms),
        (ttl, false) => Some(ttl.saturating_add(now_ms)),
    };
    if value.expires_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        call.database.delete(key);
    } else {
        call.database.insert(key, value)?;
        call.database.set_uses(key, options.idle_s, options.frequency);
        call.database.note_new(key);
        call.database.changed(key, Class::Generic, "restore");
    }
    call.reply.raw(shared::OK);
    Ok(())
}

/// Words of RESTORE behind the payload.
#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn read(words: &[&[u8]]) -> Result<Self, Error> {
        const IDLE: Error = Error::fixed("ERR Invalid IDLETIME value, must be >= 0");
        const FREQUENCY: Error = Error::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255");
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if is(word, "REPLACE") {
                options.replaces = true;
            } else if is(word, "ABSTTL") {
                options.is_absolute = true;
            } else if is(word, "IDLETIME")
                && options.frequency.is_none()
                && let Some(seconds) = words.next()
            {
                let seconds = u64::try_from(integer(seconds)?).map_err(|_| IDLE)?;
                options.idle_s = Some(seconds);
            } else if is(word, "FREQ")
                && options.idle_s.is_none()
                && let Some(frequency) = words.next()
            {
                let count = u8::try_from(integer(frequency)?).map_err(|_| FREQUENCY)?;
                options.frequency = Some(count);
            } else {
                return Err(Error::SYNTAX);
            }
        }
        Ok(options)
    }
}
