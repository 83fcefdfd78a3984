// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random members.

use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::Set;

use crate::arguments::count;
use crate::call::Call;
use crate::effects::Class;
use crate::entries::{bulk, bulk_or_null};
use crate::error::Error;
use crate::sample::{Sample, choose, repeat};

/// `SPOP key [count]`
pub fn spop(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.arguments[1];
    let number = match call.arguments[2..] {
        [] => None,
        [number] => Some(count(number)? as usize),
        _ => return Err(Error::SYNTAX),
    };
    let records = call.database.effects.records;
    let mut recorded: Vec<Vec<u8>> = vec![];
    let reply = &mut call.reply;
    let popped = call.database.shrink::<Set, _>(key, |set, _| match number {
        None => match set.pop(&mut choose) {
            Some(member) => {
                reply.bulk(&member);
                recorded.extend(records.then_some(member));
                1
            }
            None => {
                reply.null();
                0
            }
        },
        Some(number) => {
            let members = set.pop_many(number, &mut choose);
            reply.set(members.len());
            members.iter().for_each(|member| reply.bulk(member));
            let popped = members.len();
            if records {
                recorded = members;
            }
            popped
        }
    })?;
    if popped > 0 {
        if records {
            let words = match call.database.contains(key) {
                true => [vec![b"SREM".to_vec(), key.to_vec()], recorded].concat(),
                false => vec![b"DEL".to_vec(), key.to_vec()],
            };
            call.database.effects.logged = Some(words);
        }
        call.database.changed_or_removed(key, Class::Set, "spop");
    }
    Ok(())
}

/// `SRANDMEMBER key [count]`
pub fn srandmember(call: &mut Call<'_>) -> Result<(), Error> {
    let sample = match call.arguments[2..] {
        [] => {
            let set = call.database.read::<Set>(call.arguments[1])?;
            let member = set.and_then(|set| set.random(&mut choose));
            bulk_or_null(&mut call.reply, member);
            return Ok(());
        }
        [number] => Sample::parse(number)?,
        _ => return Err(Error::SYNTAX),
    };
    let Some(set) = call.database.read::<Set>(call.arguments[1])? else {
        call.reply.raw(shared::EMPTY_ARRAY);
        return Ok(());
    };
    match sample {
        Sample::Distinct(count) => {
            call.reply.array(count.min(set.len()));
            set.random_distinct(count, &mut choose, |member| bulk(&mut call.reply, member));
            Ok(())
        }
        Sample::Repeated(number) => {
            call.reply.array(number as usize);
            repeat(&mut call.reply, number, |reply| {
                let member = set.random(&mut choose).expect("a stored set has a member");
                bulk(reply, member);
            })
        }
    }
}
