// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unions, intersections and differences. Inputs are sorted sets, and sets whose members have
//! score 1.

use freeport_kv_keyspace::Kind;
use freeport_kv_types::zset::{
    Aggregate, Source, Weighted, ZSetRef, difference, intersection, intersection_len, union,
};
use freeport_kv_types::{Limits, Set, SetRef, ZSet};

use super::elements;
use super::store::store;
use crate::arguments::{float, integer, integer_in, is};
use crate::call::Call;
use crate::database::Database;
use crate::error::Error;

const WEIGHT: Error = Error::fixed("ERR weight value is not a float");
const LIMIT: Error = Error::fixed("ERR LIMIT can't be negative");

/// Operation on the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
    /// The number of elements of the intersection.
    Count,
}

pub(super) fn zunion(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, "zunion", Operation::Union)
}

pub(super) fn zinter(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, "zinter", Operation::Intersection)
}

pub(super) fn zdiff(call: &mut Call<'_>) -> Result<(), Error> {
    reply(call, "zdiff", Operation::Difference)
}

pub(super) fn zunionstore(call: &mut Call<'_>) -> Result<(), Error> {
    reply_stored(call, "zunionstore", Operation::Union)
}

pub(super) fn zinterstore(call: &mut Call<'_>) -> Result<(), Error> {
    reply_stored(call, "zinterstore", Operation::Intersection)
}

pub(super) fn zdiffstore(call: &mut Call<'_>) -> Result<(), Error> {
    reply_stored(call, "zdiffstore", Operation::Difference)
}

pub(super) fn zintercard(call: &mut Call<'_>) -> Result<(), Error> {
    let (inputs, words) = Inputs::of(call, "zintercard", 1)?;
    let request = Request::parse(words, inputs.0.len(), (Operation::Count, false))?;
    let length = intersection_len(&inputs.sources(), request.limit);
    call.reply.integer(length as i64);
    Ok(())
}

fn reply(call: &mut Call<'_>, name: &str, operation: Operation) -> Result<(), Error> {
    let (inputs, words) = Inputs::of(call, name, 1)?;
    let request = Request::parse(words, inputs.0.len(), (operation, false))?;
    // The result is read once; its form does not matter to the client.
    let result = inputs.combine(call.database.limits(call.arguments[2]), operation, &request);
    elements::write(&mut call.reply, result.view().iter(), request.has_scores);
    Ok(())
}

fn reply_stored(
    call: &mut Call<'_>,
    name: &'static str,
    operation: Operation,
) -> Result<(), Error> {
    let target = call.arguments[1];
    let (inputs, words) = Inputs::of(call, name, 2)?;
    let request = Request::parse(words, inputs.0.len(), (operation, true))?;
    let result = inputs.combine(call.database.limits(target), operation, &request);
    store(call, target, result, name)
}

/// One input.
#[derive(Clone, Copy, Debug)]
enum Input<'v> {
    SortedSet(ZSetRef<'v>),
    Set(SetRef<'v>),
}

/// All inputs, in the order of the arguments.
struct Inputs<'v>(Vec<Input<'v>>);

impl<'v> Input<'v> {
    fn read(database: &'v Database<'_>, key: &[u8]) -> Result<Self, Error> {
        let set = match database.kind(key) {
            Some(Kind::Set) => database.read::<Set>(key)?.map(Self::Set),
            _ => database.read::<ZSet>(key)?.map(Self::SortedSet),
        };
        Ok(set.unwrap_or(Self::SortedSet(ZSetRef::from_packed(&[]))))
    }

    fn source(&self) -> &dyn Source {
        match self {
            Self::SortedSet(set) => set,
            Self::Set(set) => set,
        }
    }
}

impl<'v> Inputs<'v> {
    /// Reads the inputs, whose number is at position `at`. Also returns the words behind them.
    fn of<'a>(call: &'v Call<'a>, name: &str, at: usize) -> Result<(Self, &'a [&'a [u8]]), Error> {
        let count = integer(call.arguments[at])?;
        if count < 1 {
            let text = format!("ERR at least 1 input key is needed for '{name}' command");
            return Err(Error::new(text));
        }
        let rest = &call.arguments[at + 1..];
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let (keys, words) = rest.split_at_checked(count).ok_or(Error::SYNTAX)?;
        let inputs = keys.iter().map(|key| Input::read(&call.database, key));
        Ok((Self(inputs.collect::<Result<_, _>>()?), words))
    }

    fn sources(&self) -> Vec<&dyn Source> {
        self.0.iter().map(Input::source).collect()
    }

    fn combine(&self, limits: &Limits, operation: Operation, request: &Request) -> ZSet {
        if operation == Operation::Difference {
            return difference(limits, &self.sources());
        }
        let weights = request.weights.iter().copied().chain(std::iter::repeat(1.0));
        let inputs: Vec<_> = self
            .0
            .iter()
            .zip(weights)
            .map(|(input, weight)| Weighted { source: input.source(), weight })
            .collect();
        match operation {
            Operation::Union => union(limits, &inputs, request.aggregate),
            _ => intersection(limits, &inputs, request.aggregate),
        }
    }
}

/// Words behind the keys.
#[derive(Debug, Default)]
struct Request {
    /// Empty, or one for each input.
    weights: Vec<f64>,
    aggregate: Aggregate,
    has_scores: bool,
    /// Largest number that is counted; 0 is none.
    limit: usize,
}

impl Request {
    fn parse(
        mut words: &[&[u8]],
        inputs: usize,
        (operation, is_stored): (Operation, bool),
    ) -> Result<Self, Error> {
        let mut request = Self::default();
        let is_weighted = matches!(operation, Operation::Union | Operation::Intersection);
        let is_counted = operation == Operation::Count;
        while let [word, rest @ ..] = words {
            words = match (*word, rest) {
                (word, _) if is_weighted && rest.len() >= inputs && is(word, "weights") => {
                    let (weights, rest) = rest.split_at(inputs);
                    let weights = weights.iter().map(|weight| float(weight).map_err(|_| WEIGHT));
                    request.weights = weights.collect::<Result<_, _>>()?;
                    rest
                }
                (word, [name, rest @ ..]) if is_weighted && is(word, "aggregate") => {
                    request.aggregate = aggregate(name)?;
                    rest
                }
                (word, _) if !is_stored && !is_counted && is(word, "withscores") => {
                    request.has_scores = true;
                    rest
                }
                (word, [limit, rest @ ..]) if is_counted && is(word, "limit") => {
                    let limit = integer_in(limit, 0..=i64::MAX, LIMIT)?;
                    request.limit = usize::try_from(limit).unwrap_or(usize::MAX);
                    rest
                }
                _ => return Err(Error::SYNTAX),
            };
        }
        Ok(request)
    }
}

fn aggregate(name: &[u8]) -> Result<Aggregate, Error> {
    match name {
        _ if is(name, "sum") => Ok(Aggregate::Sum),
        _ if is(name, "min") => Ok(Aggregate::Min),
        _ if is(name, "max") => Ok(Aggregate::Max),
        _ => Err(Error::SYNTAX),
    }
}
