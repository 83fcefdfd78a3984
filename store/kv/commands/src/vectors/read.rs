// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reductions and filters, which change nothing, and the list of functions.

use freeport_kv_functions::{Kind, Scalar};

use super::function::{element, find, operand, refused};
use crate::call::Call;
use crate::error::Error;

/// `KV.REDUCE key function element sigma`. Replies with the last sigma.
pub fn reduce(call: &mut Call<'_>) -> Result<(), Error> {
    let registry = call.database.store.functions();
    let [key, function, kind, sigma] = [1, 2, 3, 4].map(|at| call.arguments[at]);
    let signature = find(registry, Kind::Reduce, function)?;
    let element = element(kind)?;
    let function = registry.reduce(signature.id).map_err(Error::of)?;
    let mut bytes = vec![];
    let sigma = Scalar::parse(function.sigma(element), "sigma", sigma).map_err(Error::of)?;
    sigma.append_to(&mut bytes);
    let reduced = match call.database.keyspace(key) {
        None => None,
        Some(keyspace) => keyspace
            .reduce(key, call.database.now_ms(), &function, (element, &bytes))
            .map_err(refused)?,
    };
    match reduced {
        Some(sigma) => call.reply.bulk(sigma.to_string().as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

/// `KV.FILTER key function element [operand ...]`. Replies with the elements for which the
/// condition holds, as a vector.
pub fn filter(call: &mut Call<'_>) -> Result<(), Error> {
    let registry = call.database.store.functions();
    let [_, key, function, kind, ref words @ ..] = *call.arguments else {
        return Err(Error::SYNTAX);
    };
    let signature = find(registry, Kind::Filter, function)?;
    let element = element(kind)?;
    let function = registry.filter(signature.id).map_err(Error::of)?;
    let operand = operand(&signature, element, words)?;
    let mut kept = vec![];
    let is_there = match call.database.keyspace(key) {
        None => false,
        Some(keyspace) => keyspace
            .filter(key, call.database.now_ms(), &function, (element, &operand), &mut kept)
            .map_err(refused)?,
    };
    match is_there {
        true => call.reply.bulk(&kept),
        false => call.reply.null(),
    }
    Ok(())
}

/// `KV.FUNCTIONS`. Replies with id, name, kind, names of operands, and types of elements of each
/// function.
pub fn functions(call: &mut Call<'_>) -> Result<(), Error> {
    let registry = call.database.store.functions();
    call.reply.array(registry.signatures().count());
    for signature in registry.signatures() {
        call.reply.array(5);
        call.reply.integer(signature.id.into());
        call.reply.bulk(signature.name.as_bytes());
        call.reply.bulk(signature.kind.to_string().as_bytes());
        call.reply.array(signature.operands.len());
        signature.operands.iter().for_each(|part| call.reply.bulk(part.as_bytes()));
        call.reply.array(signature.elements.len());
        let types = signature.elements.iter().map(|element| element.name());
        types.for_each(|name| call.reply.bulk(name.as_bytes()));
    }
    Ok(())
}
