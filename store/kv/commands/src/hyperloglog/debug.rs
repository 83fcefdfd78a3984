// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PFDEBUG and PFSELFTEST: looking into a HyperLogLog.

use freeport_kv_keyspace::Expiry;
use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_types::{Limits, hyperloglog};

use crate::arguments::is;
use crate::call::Call;
use crate::error::Error;

/// `PFDEBUG GETREG | DECODE | ENCODING | TODENSE key`.
pub fn pfdebug(call: &mut Call<'_>) -> Result<(), Error> {
    const NO_KEY: Error = Error::fixed("ERR The specified key does not exist");
    const NOT_SPARSE: Error = Error::fixed("ERR HLL encoding is not sparse");
    let (word, key) = (call.arguments[1], call.arguments[2]);
    let bytes = call.database.string(key)?.ok_or(NO_KEY)?;
    let is_dense = hyperloglog::is_dense(bytes).map_err(Error::of)?;
    if is(word, "GETREG") {
        let registers = hyperloglog::registers(bytes).map_err(Error::of)?;
        make_dense(call, key)?;
        call.reply.array(registers.len());
        registers.iter().for_each(|register| call.reply.integer((*register).into()));
    } else if is(word, "DECODE") {
        if is_dense {
            return Err(NOT_SPARSE);
        }
        let runs = hyperloglog::describe_runs(bytes).map_err(Error::of)?;
        call.reply.bulk(runs.as_bytes());
    } else if is(word, "ENCODING") {
        call.reply.status(if is_dense { "dense" } else { "sparse" });
    } else if is(word, "TODENSE") {
        make_dense(call, key)?;
        call.reply.integer((!is_dense).into());
    } else {
        let word = String::from_utf8_lossy(word);
        return Err(Error::new(format!("ERR Unknown PFDEBUG subcommand '{word}'")));
    }
    Ok(())
}

/// Stores registers one by one. The elements stay, but the bytes do not.
fn make_dense(call: &mut Call<'_>, key: &[u8]) -> Result<(), Error> {
    let Some(old) = call.database.string(key)? else { return Ok(()) };
    if hyperloglog::is_dense(old).map_err(Error::of)? {
        return Ok(());
    }
    let mut bytes = old.to_vec();
    hyperloglog::make_dense(&mut bytes).map_err(Error::of)?;
    call.database.set_string(key, &bytes, Expiry::Keep)?;
    call.database.touch_watchers(key);
    Ok(())
}

/// `PFSELFTEST`: counts of known elements are as near as the standard error of 16384 registers,
/// 0.81 %, allows.
pub fn pfselftest(call: &mut Call<'_>) -> Result<(), Error> {
    const ELEMENTS: u64 = 100_000;
    const STANDARD_ERRORS: f64 = 6.0;
    let limits = Limits::default();
    let mut bytes = hyperloglog::new();
    for element in 1..=ELEMENTS {
        hyperloglog::add(&limits, &mut bytes, &element.to_le_bytes()).map_err(Error::of)?;
        if element.is_power_of_two() || element == ELEMENTS {
            let count = hyperloglog::count(&bytes).map_err(Error::of)?;
            let error = count.abs_diff(element) as f64;
            if error > (element as f64 * 0.0081 * STANDARD_ERRORS).ceil() {
                let text = format!("ERR TESTFAILED {count} counted of {element} elements");
                return Err(Error::new(text));
            }
        }
    }
    call.reply.raw(shared::OK);
    Ok(())
}
