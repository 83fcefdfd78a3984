// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random members.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::{ZSet, ZSetRef};

use super::elements;
use crate::arguments::is;
use crate::call::Call;
use crate::entries::bulk_or_null;
use crate::error::Error;
use crate::sample::{Sample, choose, repeat};

pub(super) fn zrandmember(call: &mut Call<'_>) -> Result<(), Error> {
    let Some(number) = call.arguments.get(2) else {
        let set = call.database.read::<ZSet>(call.arguments[1])?;
        let element = set.and_then(|set| set.random(&mut choose));
        bulk_or_null(&mut call.reply, element.map(|(member, _)| member));
        return Ok(());
    };
    let sample = Sample::parse(number)?;
    let has_scores = match call.arguments[3..] {
        [] => false,
        [word] if is(word, "withscores") => true,
        _ => return Err(Error::SYNTAX),
    };
    if has_scores {
        sample.check_pairs()?;
    }
    match call.database.read::<ZSet>(call.arguments[1])? {
        Some(set) => write_sample(&mut call.reply, set, sample, has_scores),
        None => {
            call.reply.raw(shared::EMPTY_ARRAY);
            Ok(())
        }
    }
}

fn write_sample(
    reply: &mut Writer<'_>,
    set: ZSetRef<'_>,
    sample: Sample,
    has_scores: bool,
) -> Result<(), Error> {
    match sample {
        Sample::Distinct(count) => {
            elements::write_header(reply, count.min(set.len()), has_scores);
            set.random_distinct(count, &mut choose, |member, score| {
                elements::write_element(reply, member, has_scores.then_some(score));
            });
            Ok(())
        }
        Sample::Repeated(number) => {
            elements::write_header(reply, number as usize, has_scores);
            repeat(reply, number, |reply| {
                let (member, score) = set.random(&mut choose).expect("a stored set has a member");
                elements::write_element(reply, member, has_scores.then_some(score));
            })
        }
    }
}
