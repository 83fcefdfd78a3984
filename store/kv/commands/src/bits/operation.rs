// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An operation on several strings: BITOP.

use freeport_kv_keyspace::Expiry;
use freeport_kv_types::bits::{Operation, operate};

use crate::arguments::is;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

const OPERATIONS: [(&str, Operation); 4] = [
    ("AND", Operation::And),
    ("OR", Operation::Or),
    ("XOR", Operation::Xor),
    ("NOT", Operation::Not),
];

/// `BITOP AND | OR | XOR | NOT target key [key ...]`. An empty result removes the target.
pub fn bitop(call: &mut Call<'_>) -> Result<(), Error> {
    const SEVERAL: Error = Error::fixed("ERR BITOP NOT must be called with a single source key.");
    let (word, target, keys) = (call.arguments[1], call.arguments[2], &call.arguments[3..]);
    let named = OPERATIONS.into_iter().find(|(name, _)| is(word, name));
    let (_, operation) = named.ok_or(Error::SYNTAX)?;
    if operation == Operation::Not && keys.len() != 1 {
        return Err(SEVERAL);
    }
    let strings: Vec<&[u8]> = keys
        .iter()
        .map(|key| Ok(call.database.string(key)?.unwrap_or_default()))
        .collect::<Result<_, Error>>()?;
    let result = operate(operation, &strings);
    if result.is_empty() {
        call.database.delete(target);
    } else {
        call.database.set_string(target, &result, Expiry::Never)?;
        call.database.changed(target, Class::String, "set");
    }
    call.reply.integer(result.len() as i64);
    Ok(())
}
