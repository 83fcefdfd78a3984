// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members in parts.

use freeport_kv_types::{Set, SetRef};

use crate::arguments::cursor;
use crate::call::Call;
use crate::entries::bulk;
use crate::error::Error;
use crate::scan::{Options, header};

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`
///
/// Words are read only if there is such a key, as Redis does.
pub fn sscan(call: &mut Call<'_>) -> Result<(), Error> {
    let start = cursor(call.arguments[2])?;
    let (set, options) = match call.database.read::<Set>(call.arguments[1])? {
        Some(set) => (set, Options::parse(&call.arguments[3..])?),
        None => (SetRef::from_packed(&[]), Options::parse(&[])?),
    };
    let mut taken = 0;
    let next = set.scan(start, options.count, |member| {
        taken += usize::from(options.takes(member));
    });
    header(&mut call.reply, next, taken);
    set.scan(start, options.count, |member| {
        if options.takes(member) {
            bulk(&mut call.reply, member);
        }
    });
    Ok(())
}
