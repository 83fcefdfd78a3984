// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranges of elements: `ZRANGE` with its forms, the older commands for each form, and
//! `ZRANGESTORE`.

use std::ops::Range;

use freeport_kv_types::ZSet;
use freeport_kv_types::zset::{LexRange, ScoreRange, ZSetRef, limit};

use super::elements;
use super::store::store;
use crate::arguments::{integer, is};
use crate::call::Call;
use crate::error::Error;

const LIMIT_OF_RANKS: Error = Error::fixed(
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
);
const SCORES_OF_MEMBERS: Error =
    Error::fixed("ERR syntax error, WITHSCORES not supported in combination with BYLEX");

/// Kinds of ends of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Member,
}

/// Properties that the name of a command says already; words say the rest.
#[derive(Clone, Copy, Debug)]
struct Form {
    by: Option<By>,
    is_reverse: Option<bool>,
    may_have_scores: bool,
}

/// A range with its ends.
#[derive(Clone, Copy, Debug)]
enum Ends<'a> {
    Ranks(i64, i64),
    Scores(ScoreRange),
    Members(LexRange<'a>),
}

/// A range as the client wrote it.
#[derive(Clone, Copy, Debug)]
struct Query<'a> {
    ends: Ends<'a>,
    is_reverse: bool,
    offset: i64,
    /// Negative: all.
    count: i64,
    has_scores: bool,
}

impl Form {
    const ANY: Self = Self { by: None, is_reverse: None, may_have_scores: true };

    const fn of(by: By, is_reverse: bool) -> Self {
        Self { by: Some(by), is_reverse: Some(is_reverse), may_have_scores: true }
    }
}

pub(super) fn zrange(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, Form::ANY)
}

pub(super) fn zrevrange(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, Form::of(By::Rank, true))
}

pub(super) fn zrangebyscore(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, Form::of(By::Score, false))
}

pub(super) fn zrevrangebyscore(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, Form::of(By::Score, true))
}

pub(super) fn zrangebylex(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, Form::of(By::Member, false))
}

pub(super) fn zrevrangebylex(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, Form::of(By::Member, true))
}

pub(super) fn zrangestore(call: &mut Call<'_>) -> Result<(), Error> {
    let (target, source) = (call.arguments[1], call.arguments[2]);
    let query = Query::parse(&call.arguments[3..], Form { may_have_scores: false, ..Form::ANY })?;
    let mut result = ZSet::default();
    if let Some(set) = call.database.read::<ZSet>(source)? {
        let ranks = query.ranks(set);
        let elements: Vec<_> =
            set.range(ranks).map(|(member, score)| (member.to_vec(), score)).collect();
        let elements: Vec<_> =
            elements.iter().map(|(member, score)| (member.as_slice(), *score)).collect();
        result = ZSet::from_sorted(call.database.limits(target), &elements)
            .expect("elements of a sorted set are in order");
    }
    store(call, target, result, "zrangestore")
}

fn reply(call: &mut Call<'_>, form: Form) -> Result<(), Error> {
    let query = Query::parse(&call.arguments[2..], form)?;
    let Some(set) = call.database.read::<ZSet>(call.arguments[1])? else {
        call.reply.array(0);
        return Ok(());
    };
    let found = set.range(query.ranks(set));
    if query.is_reverse {
        elements::write(&mut call.reply, found.rev(), query.has_scores);
    } else {
        elements::write(&mut call.reply, found, query.has_scores);
    }
    Ok(())
}

impl<'a> Query<'a> {
    /// Reads the ends and the words behind them.
    fn parse(arguments: &[&'a [u8]], form: Form) -> Result<Self, Error> {
        let (mut by, mut is_reverse, mut has_scores) = (form.by, form.is_reverse, false);
        let (mut offset, mut count) = (0, -1);
        let mut words = &arguments[2..];
        while let [word, rest @ ..] = words {
            words = rest;
            match (*word, rest) {
                (word, _) if form.may_have_scores && is(word, "withscores") => has_scores = true,
                (word, [first, second, rest @ ..]) if is(word, "limit") => {
                    (offset, count) = (integer(first)?, integer(second)?);
                    words = rest;
                }
                (word, _) if is_reverse.is_none() && is(word, "rev") => is_reverse = Some(true),
                (word, _) if by.is_none() && is(word, "bylex") => by = Some(By::Member),
                (word, _) if by.is_none() && is(word, "byscore") => by = Some(By::Score),
                _ => return Err(Error::SYNTAX),
            }
        }
        let (by, is_reverse) = (by.unwrap_or(By::Rank), is_reverse.unwrap_or(false));
        if count != -1 && by == By::Rank {
            return Err(LIMIT_OF_RANKS);
        }
        if has_scores && by == By::Member {
            return Err(SCORES_OF_MEMBERS);
        }
        let ends = Ends::parse(by, arguments[0], arguments[1], is_reverse)?;
        Ok(Self { ends, is_reverse, offset, count, has_scores })
    }

    /// The ranks of the elements in the range.
    fn ranks(&self, set: ZSetRef<'_>) -> Range<usize> {
        let ranks = match &self.ends {
            Ends::Ranks(start, stop) => {
                return set.ranks_by_index(*start, *stop, self.is_reverse);
            }
            Ends::Scores(range) => set.ranks_by_score(range),
            Ends::Members(range) => set.ranks_by_lex(range),
        };
        limit(ranks, self.offset, self.count, self.is_reverse)
    }
}

impl<'a> Ends<'a> {
    /// A reversed range of scores or members has its upper end first.
    fn parse(by: By, first: &'a [u8], second: &'a [u8], is_reverse: bool) -> Result<Self, Error> {
        let (min, max) = if is_reverse { (second, first) } else { (first, second) };
        match by {
            By::Rank => Ok(Self::Ranks(integer(first)?, integer(second)?)),
            By::Score => ScoreRange::parse(min, max).map(Self::Scores).map_err(Error::of),
            By::Member => LexRange::parse(min, max).map(Self::Members).map_err(Error::of),
        }
    }
}
