// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Removing members by name or by range.

use std::ops::Range;

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::ZSet;
use freeport_kv_types::zset::{LexRange, ScoreRange, ZSetRef};

use crate::arguments::integer;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

pub(super) fn zrem(call: &mut Call<'_>) -> Result<(), Error> {
    let (key, members) = (call.arguments[1], &call.arguments[2..]);
    let mut removed = 0;
    if call.database.read::<ZSet>(key)?.is_some() {
        removed = call.database.shrink(key, |set: &mut ZSet, _| {
            members.iter().filter(|member| set.remove(member).is_some()).count()
        })?;
    }
    reply_removed(call, removed, "zrem");
    Ok(())
}

pub(super) fn zremrangebyrank(call: &mut Call<'_>) -> Result<(), Error> {
    let (start, stop) = (integer(call.arguments[2])?, integer(call.arguments[3])?);
    remove(call, "zremrangebyrank", |set| set.ranks_by_index(start, stop, false))
}

pub(super) fn zremrangebyscore(call: &mut Call<'_>) -> Result<(), Error> {
    let range = ScoreRange::parse(call.arguments[2], call.arguments[3]).map_err(Error::of)?;
    remove(call, "zremrangebyscore", |set| set.ranks_by_score(&range))
}

pub(super) fn zremrangebylex(call: &mut Call<'_>) -> Result<(), Error> {
    let range = LexRange::parse(call.arguments[2], call.arguments[3]).map_err(Error::of)?;
    remove(call, "zremrangebylex", |set| set.ranks_by_lex(&range))
}

/// Removes the elements of the ranks that `find` gives, and replies with their number.
fn remove(
    call: &mut Call<'_>,
    event: &'static str,
    find: impl FnOnce(ZSetRef<'_>) -> Range<usize>,
) -> Result<(), Error> {
    let key = call.arguments[1];
    let ranks = call.database.read::<ZSet>(key)?.map_or(0..0, find);
    let mut removed = 0;
    if !ranks.is_empty() {
        removed = call.database.shrink(key, |set: &mut ZSet, _| set.remove_ranks(ranks))?;
    }
    reply_removed(call, removed, event);
    Ok(())
}

fn reply_removed(call: &mut Call<'_>, removed: usize, event: &'static str) {
    if removed == 0 {
        return call.reply.raw(shared::ZERO);
    }
    call.database.changed_or_removed(call.arguments[1], Class::SortedSet, event);
    call.reply.integer(removed as i64);
}
