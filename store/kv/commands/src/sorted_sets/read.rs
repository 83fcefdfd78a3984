// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scores, ranks and counts.

use std::ops::Range;

use freeport_kv_types::ZSet;
use freeport_kv_types::zset::{LexRange, ScoreRange, ZSetRef};

use crate::arguments::is;
use crate::call::Call;
use crate::error::Error;

pub(super) fn zscore(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    match set.and_then(|set| set.score(call.arguments[2])) {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zmscore(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    let members = &call.arguments[2..];
    call.reply.array(members.len());
    for member in members {
        match set.and_then(|set| set.score(member)) {
            Some(score) => call.reply.double(score),
            None => call.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn zcard(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    call.reply.integer(set.map_or(0, ZSetRef::len) as i64);
    Ok(())
}

pub(super) fn zcount(call: &mut Call<'_>) -> Result<(), Error> {
    let range = ScoreRange::parse(call.arguments[2], call.arguments[3]).map_err(Error::of)?;
    count(call, |set| set.ranks_by_score(&range))
}

pub(super) fn zlexcount(call: &mut Call<'_>) -> Result<(), Error> {
    let range = LexRange::parse(call.arguments[2], call.arguments[3]).map_err(Error::of)?;
    count(call, |set| set.ranks_by_lex(&range))
}

fn count(call: &mut Call<'_>, find: impl FnOnce(ZSetRef<'_>) -> Range<usize>) -> Result<(), Error> {
    let ranks = call.database.read::<ZSet>(call.arguments[1])?.map_or(0..0, find);
    call.reply.integer(ranks.len() as i64);
    Ok(())
}

pub(super) fn zrank(call: &mut Call<'_>) -> Result<(), Error> {
    rank(call, false)
}

pub(super) fn zrevrank(call: &mut Call<'_>) -> Result<(), Error> {
    rank(call, true)
}

/// The rank from either end, with the score if the client asks for it.
fn rank(call: &mut Call<'_>, is_reverse: bool) -> Result<(), Error> {
    let has_score = match call.arguments {
        [_, _, _] => false,
        [_, _, _, word] if is(word, "withscore") => true,
        [_, _, _, _] => return Err(Error::SYNTAX),
        _ => return Err(Error::arity(if is_reverse { "zrevrank" } else { "zrank" })),
    };
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    let found = set.and_then(|set| {
        let (rank, score) = set.rank(call.arguments[2])?;
        Some((if is_reverse { set.len() - 1 - rank } else { rank }, score))
    });
    match found {
        Some((rank, score)) if has_score => {
            call.reply.array(2);
            call.reply.integer(rank as i64);
            call.reply.double(score);
        }
        Some((rank, _)) => call.reply.integer(rank as i64),
        None if has_score => call.reply.null_array(),
        None => call.reply.null(),
    }
    Ok(())
}
