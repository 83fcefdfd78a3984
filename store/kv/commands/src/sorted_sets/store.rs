// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results that become the value of a key.

use freeport_kv_types::ZSet;

use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// Stores a result in place of any value, and replies with its length. An empty one removes the
/// key.
pub(crate) fn store(
    call: &mut Call<'_>,
    key: &[u8],
    set: ZSet,
    event: &'static str,
) -> Result<(), Error> {
    let length = set.len();
    if length == 0 {
        call.database.delete(key);
    } else {
        call.database.store(key, set)?;
        call.database.changed(key, Class::SortedSet, event);
    }
    call.reply.integer(length as i64);
    Ok(())
}
