// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements are added at an end.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::List;
use freeport_kv_types::list::End;

use super::push_event;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `LPUSH key element [element ...]`
pub fn lpush(call: &mut Call<'_>) -> Result<(), Error> {
    push(call, End::Front)
}

/// `RPUSH key element [element ...]`
pub fn rpush(call: &mut Call<'_>) -> Result<(), Error> {
    push(call, End::Back)
}

/// `LPUSHX key element [element ...]`
pub fn lpushx(call: &mut Call<'_>) -> Result<(), Error> {
    push_existing(call, End::Front)
}

/// `RPUSHX key element [element ...]`
pub fn rpushx(call: &mut Call<'_>) -> Result<(), Error> {
    push_existing(call, End::Back)
}

fn push_existing(call: &mut Call<'_>, end: End) -> Result<(), Error> {
    if call.database.read::<List>(call.arguments[1])?.is_none() {
        call.reply.raw(shared::ZERO);
        return Ok(());
    }
    push(call, end)
}

fn push(call: &mut Call<'_>, end: End) -> Result<(), Error> {
    let (key, values) = (call.arguments[1], &call.arguments[2..]);
    let len = call.database.change::<List, _>(key, |list, limits| {
        values.iter().for_each(|value| list.push(limits, end, value));
        list.len()
    })?;
    call.database.changed(key, Class::List, push_event(end));
    call.reply.integer(len as i64);
    Ok(())
}
