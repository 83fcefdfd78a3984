// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Updates of one number, and of all numbers of a vector. The length of the string stays.

use std::sync::Arc;

use freeport_kv_functions::{Deltas, Kind};
use freeport_kv_protocol::resp::reply::shared;

use super::function::{element, find, operand, refused};
use crate::arguments::is;
use crate::call::Call;
use crate::effects::Class;
use crate::error::Error;

/// `KV.UPDATE key function element [operand ...]`. Replies with the original number.
pub fn update(call: &mut Call<'_>) -> Result<(), Error> {
    let registry = Arc::clone(call.database.store.functions());
    let [_, key, function, kind, ref words @ ..] = *call.arguments else {
        return Err(Error::SYNTAX);
    };
    let signature = find(&registry, Kind::Update, function)?;
    let element = element(kind)?;
    let function = registry.update(signature.id).map_err(Error::of)?;
    let delta = operand(&signature, element, words)?;
    let now_ms = call.now_ms();
    let original = match call.database.keyspace_mut(key) {
        None => None,
        Some(keyspace) => {
            keyspace.update_scalar(key, now_ms, &function, (element, &delta)).map_err(refused)?
        }
    };
    let Some(original) = original else {
        call.reply.null();
        return Ok(());
    };
    call.database.log_update(&function, key);
    call.database.changed(key, Class::String, "kv.update");
    call.reply.bulk(original.to_string().as_bytes());
    Ok(())
}

/// `KV.UPDATEV key function element DELTA [operand ...] | DELTAS vector [RETURN]`. One
/// operand for all elements, or a vector with one for each. Replies with the original vector if
/// asked to.
pub fn updatev(call: &mut Call<'_>) -> Result<(), Error> {
    let registry = Arc::clone(call.database.store.functions());
    let [_, key, function, kind, word, ref words @ ..] = *call.arguments else {
        return Err(Error::SYNTAX);
    };
    let signature = find(&registry, Kind::Update, function)?;
    let element = element(kind)?;
    let function = registry.update(signature.id).map_err(Error::of)?;
    // An operand or a vector may be the same word, where there has to be one.
    let least = if is(word, "DELTAS") { 1 } else { signature.operands.len().min(1) };
    let (words, is_returned) = match words {
        [words @ .., last] if words.len() >= least && is(last, "RETURN") => (words, true),
        _ => (words, false),
    };
    let delta;
    let deltas = match words {
        [deltas] if is(word, "DELTAS") => Deltas::Each(deltas),
        _ if is(word, "DELTA") => {
            delta = operand(&signature, element, words)?;
            Deltas::Same(&delta)
        }
        _ => return Err(Error::SYNTAX),
    };
    let mut original = is_returned.then(Vec::new);
    let now_ms = call.now_ms();
    let is_there = match call.database.keyspace_mut(key) {
        None => false,
        Some(keyspace) => keyspace
            .update_vector(key, now_ms, &function, (element, deltas), original.as_mut())
            .map_err(refused)?,
    };
    if is_there {
        call.database.log_update(&function, key);
        call.database.changed(key, Class::String, "kv.updatev");
    }
    match (is_there, original) {
        (false, _) => call.reply.null(),
        (true, None) => call.reply.raw(shared::OK),
        (true, Some(original)) => call.reply.bulk(&original),
    }
    Ok(())
}
