// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random fields.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_types::hash::HashRef;
use freeport_kv_types::{Entry, Hash};

use crate::arguments::is;
use crate::call::Call;
use crate::entries::{bulk, bulk_or_null};
use crate::error::Error;
use crate::sample::{Sample, choose, repeat};

/// `HRANDFIELD key [count [WITHVALUES]]`
pub fn hrandfield(call: &mut Call<'_>) -> Result<(), Error> {
    let Some(number) = call.arguments.get(2) else {
        let hash = call.database.read::<Hash>(call.arguments[1])?;
        let element = hash.and_then(|hash| hash.random(&mut choose));
        bulk_or_null(&mut call.reply, element.map(|[field, _]| field));
        return Ok(());
    };
    let sample = Sample::parse(number)?;
    let has_values = match call.arguments[3..] {
        [] => false,
        [word] if is(word, "withvalues") => true,
        _ => return Err(Error::SYNTAX),
    };
    if has_values {
        sample.check_pairs()?;
    }
    match call.database.read::<Hash>(call.arguments[1])? {
        Some(hash) => write_sample(&mut call.reply, hash, sample, has_values),
        None => {
            call.reply.raw(shared::EMPTY_ARRAY);
            Ok(())
        }
    }
}

fn write_sample(
    reply: &mut Writer<'_>,
    hash: HashRef<'_>,
    sample: Sample,
    has_values: bool,
) -> Result<(), Error> {
    // Version 2 has no place for pairs in an array.
    let is_flat = has_values && reply.version() == Version::Two;
    let header = |reply: &mut Writer<'_>, elements: usize| {
        reply.array(if is_flat { 2 * elements } else { elements });
    };
    let write = |reply: &mut Writer<'_>, [field, value]: [Entry<'_>; 2]| {
        if has_values && !is_flat {
            reply.array(2);
        }
        bulk(reply, field);
        if has_values {
            bulk(reply, value);
        }
    };
    match sample {
        Sample::Distinct(count) => {
            header(reply, count.min(hash.len()));
            hash.random_distinct(count, &mut choose, |element| write(reply, element));
            Ok(())
        }
        Sample::Repeated(number) => {
            header(reply, number as usize);
            repeat(reply, number, |reply| {
                let element = hash.random(&mut choose).expect("a stored hash has a field");
                write(reply, element);
            })
        }
    }
}
