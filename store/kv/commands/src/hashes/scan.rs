// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields in parts.

use freeport_kv_types::{Hash, HashRef};

use crate::arguments::cursor;
use crate::call::Call;
use crate::entries::bulk;
use crate::error::Error;
use crate::scan::{Options, header};

/// `HSCAN key cursor [MATCH pattern] [COUNT count]`
///
/// Words are read only if there is such a key, as Redis does.
pub fn hscan(call: &mut Call<'_>) -> Result<(), Error> {
    let start = cursor(call.arguments[2])?;
    let hash = call.database.read::<Hash>(call.arguments[1])?;
    let (hash, options) = match hash {
        Some(hash) => (hash, Options::parse(&call.arguments[3..])?),
        None => (HashRef::from_packed(&[]), Options::parse(&[])?),
    };
    let mut taken = 0;
    let next = hash.scan(start, options.count, |[field, _]| {
        taken += usize::from(options.takes(field));
    });
    header(&mut call.reply, next, 2 * taken);
    hash.scan(start, options.count, |element| {
        if options.takes(element[0]) {
            element.into_iter().for_each(|entry| bulk(&mut call.reply, entry));
        }
    });
    Ok(())
}
