// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members in parts.

use freeport_kv_types::zset::push_score;
use freeport_kv_types::{ZSet, ZSetRef};

use crate::arguments::cursor;
use crate::call::Call;
use crate::entries::bulk;
use crate::error::Error;
use crate::scan::{Options, header};

/// Words are read only if there is such a key, as Redis does. Scores are strings in both versions
/// of the protocol. Redis prints those of large sets with 17 digits; here all have the fewest.
pub(super) fn zscan(call: &mut Call<'_>) -> Result<(), Error> {
    let start = cursor(call.arguments[2])?;
    let (set, options) = match call.database.read::<ZSet>(call.arguments[1])? {
        Some(set) => (set, Options::parse(&call.arguments[3..])?),
        None => (ZSetRef::from_packed(&[]), Options::parse(&[])?),
    };
    let mut taken = 0;
    let next = set.scan(start, options.count, |member, _| {
        taken += usize::from(options.takes(member));
    });
    header(&mut call.reply, next, 2 * taken);
    let mut text = vec![];
    set.scan(start, options.count, |member, score| {
        if options.takes(member) {
            bulk(&mut call.reply, member);
            text.clear();
            push_score(score, &mut text);
            call.reply.bulk(&text);
        }
    });
    Ok(())
}
