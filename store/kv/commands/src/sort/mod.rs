// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `SORT` and `SORT_RO`: elements of a list, a set or a sorted set in the order of numbers or of
//! texts: their own, or those of other keys that a pattern names.
//!
//! Elements and weights are read where they lie. The order is found before anything is written, so
//! the result may replace any key, also the one that is sorted.

mod elements;
mod options;
mod order;
mod pattern;

use freeport_kv_types::list::End;
use freeport_kv_types::{Entry, List};

use crate::call::Call;
use crate::command::{Command, Flags, Group};
use crate::database::Database;
use crate::effects::Class;
use crate::error::Error;
use elements::Elements;
use options::Options;
pub use options::{Naming, naming};

const READ: Flags = Flags::READ.with(Flags::MOVABLE_KEYS);
const WRITE: Flags = Flags::WRITE.with(Flags::GROWS).with(Flags::MOVABLE_KEYS);

/// Commands that sort.
pub const COMMANDS: &[Command] = &[
    Command::new(("sort", -2), Group::Generic, WRITE, options::KEYS, sort),
    Command::new(("sort_ro", -2), Group::Generic, READ, options::KEYS, sort_ro),
];

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA]
/// [STORE destination]`
fn sort(call: &mut Call<'_>) -> Result<(), Error> {
    run(call, true)
}

/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA]`
fn sort_ro(call: &mut Call<'_>) -> Result<(), Error> {
    run(call, false)
}

fn run(call: &mut Call<'_>, may_store: bool) -> Result<(), Error> {
    let options = Options::parse(call.arguments, may_store)?;
    let database = &call.database;
    // Copies of what is stored are equal, and so are results in scripts and transactions.
    let is_repeatable = options.target.is_some() || !call.session.may_block;
    let elements = Elements::of(database, call.arguments[1])?;
    let sorted = order::sorted(database, &elements, &options, is_repeatable)?;
    let Some(target) = options.target else {
        call.reply.array(sorted.len() * options.gets.len().max(1));
        each_result(database, &sorted, &options, |value| match value {
            Some(value) => call.reply.bulk(value),
            None => call.reply.null(),
        });
        return Ok(());
    };
    let (mut list, limits) = (List::default(), database.limits(target));
    each_result(database, &sorted, &options, |value| {
        list.push(limits, End::Back, value.unwrap_or_default());
    });
    let length = list.len();
    if length > 0 {
        call.database.store(target, list)?;
        call.database.changed(target, Class::List, "sortstore");
    } else {
        call.database.delete(target);
    }
    call.reply.integer(length as i64);
    Ok(())
}

/// Calls `emit` with each element, or with the values that the patterns name for it.
fn each_result(
    database: &Database<'_>,
    sorted: &[Entry<'_>],
    options: &Options<'_>,
    mut emit: impl FnMut(Option<&[u8]>),
) {
    for element in sorted {
        element.with_bytes(|element| {
            if options.gets.is_empty() {
                emit(Some(element));
            }
            for pattern in &options.gets {
                pattern.read(database, element, &mut emit);
            }
        });
    }
}
