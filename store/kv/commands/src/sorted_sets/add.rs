// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Adding members, and changing their scores.

use freeport_kv_types::ZSet;
use freeport_kv_types::zset::{AddOptions, Compare, Existing, NotANumber, Outcome};

use crate::arguments::{float, is};
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

const NEW_AND_EXISTING: Error =
    Error::fixed("ERR XX and NX options at the same time are not compatible");
const COMPARED_TWICE: Error =
    Error::fixed("ERR GT, LT, and/or NX options at the same time are not compatible");
const SEVERAL_INCREMENTS: Error =
    Error::fixed("ERR INCR option supports a single increment-element pair");

/// How elements are added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Conditions on members and scores.
    pub options: AddOptions,
    /// The reply also counts the members whose scores changed (`CH`).
    pub counts_changed: bool,
}

pub(super) fn zadd(call: &mut Call<'_>) -> Result<(), Error> {
    let (rules, first) = parse_options(call.arguments, AddOptions::default())?;
    add_pairs(call, rules, first)
}

/// Takes the options of `ZADD` too, as Redis does.
pub(super) fn zincrby(call: &mut Call<'_>) -> Result<(), Error> {
    let options = AddOptions { is_increment: true, ..AddOptions::default() };
    let (rules, first) = parse_options(call.arguments, options)?;
    add_pairs(call, rules, first)
}

/// Options before the elements, and the position of the first element.
fn parse_options(arguments: &[&[u8]], mut options: AddOptions) -> Result<(Rules, usize), Error> {
    let (mut is_new, mut is_existing, mut is_greater, mut is_less) = (false, false, false, false);
    let (mut counts_changed, mut first) = (false, 2);
    for argument in &arguments[2..] {
        match *argument {
            word if is(word, "nx") => is_new = true,
            word if is(word, "xx") => is_existing = true,
            word if is(word, "gt") => is_greater = true,
            word if is(word, "lt") => is_less = true,
            word if is(word, "ch") => counts_changed = true,
            word if is(word, "incr") => options.is_increment = true,
            _ => break,
        }
        first += 1;
    }
    let words = arguments.len() - first;
    if words == 0 || !words.is_multiple_of(2) {
        return Err(Error::SYNTAX);
    }
    if is_new && is_existing {
        return Err(NEW_AND_EXISTING);
    }
    if is_greater && is_less || is_new && (is_greater || is_less) {
        return Err(COMPARED_TWICE);
    }
    if options.is_increment && words > 2 {
        return Err(SEVERAL_INCREMENTS);
    }
    options.existing = existing(is_new, is_existing);
    options.compare = match (is_greater, is_less) {
        (true, _) => Compare::Greater,
        (_, true) => Compare::Less,
        _ => Compare::Any,
    };
    Ok((Rules { options, counts_changed }, first))
}

/// The meaning of `NX` and `XX`, of which at most one is there.
pub(crate) fn existing(is_new: bool, is_existing: bool) -> Existing {
    match (is_new, is_existing) {
        (true, _) => Existing::OnlyNew,
        (_, true) => Existing::OnlyExisting,
        _ => Existing::Any,
    }
}

/// Adds the pairs of a score and a member from an argument on.
fn add_pairs(call: &mut Call<'_>, rules: Rules, first: usize) -> Result<(), Error> {
    let pairs = call.arguments[first..].chunks_exact(2);
    if let [score, member] = call.arguments[first..] {
        // One element is common, and needs no list of scores.
        let score = float(score)?;
        return add(call, rules, std::iter::once((score, member)));
    }
    let scores = pairs.clone().map(|pair| float(pair[0])).collect::<Result<Vec<_>, _>>()?;
    add(call, rules, scores.into_iter().zip(pairs.map(|pair| pair[1])))
}

/// Adds elements to the sorted set of the first argument, and replies.
pub(crate) fn add<'m>(
    call: &mut Call<'_>,
    rules: Rules,
    elements: impl Iterator<Item = (f64, &'m [u8])>,
) -> Result<(), Error> {
    let key = call.arguments[1];
    let options = rules.options;
    let (mut added, mut updated, mut score) = (0, 0, None);
    // Without a set, nothing exists that could be changed.
    let is_possible =
        options.existing != Existing::OnlyExisting || call.database.read::<ZSet>(key)?.is_some();
    if is_possible {
        call.database
            .change(key, |set: &mut ZSet, limits| {
                for (value, member) in elements {
                    score = match set.add(limits, member, value, options)? {
                        Outcome::Added(value) => {
                            added += 1;
                            Some(value)
                        }
                        Outcome::Updated(value) => {
                            updated += 1;
                            Some(value)
                        }
                        Outcome::Same(value) => Some(value),
                        Outcome::Refused => None,
                    };
                }
                Ok::<_, NotANumber>(())
            })?
            .map_err(Error::of)?;
    }
    if added + updated > 0 {
        let event = if options.is_increment { "zincr" } else { "zadd" };
        call.database.changed(key, Class::SortedSet, event);
    }
    match score {
        Some(score) if options.is_increment => call.reply.double(score),
        None if options.is_increment => call.reply.null(),
        _ if rules.counts_changed => call.reply.integer(added + updated),
        _ => call.reply.integer(added),
    }
    Ok(())
}
