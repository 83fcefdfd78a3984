// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Searches for places in an area.

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::geo::{Match, push_distance};
use freeport_kv_types::zset::{AddOptions, NotANumber};
use freeport_kv_types::{Limits, ZSet};

use super::arguments::write_point;
use super::request::{Form, Request};
use crate::arguments::is;
use crate::call::Call;
use crate::entries::bulk;
use crate::error::Error;
use crate::sorted_sets::store::store;

pub(super) fn geosearch(call: &mut Call<'_>) -> Result<(), Error> {
    search(call, Form::Search)
}

pub(super) fn geosearchstore(call: &mut Call<'_>) -> Result<(), Error> {
    search(call, Form::SearchStored)
}

pub(super) fn georadius(call: &mut Call<'_>) -> Result<(), Error> {
    search(call, Form::Radius { by_member: false, may_store: true })
}

pub(super) fn georadius_ro(call: &mut Call<'_>) -> Result<(), Error> {
    search(call, Form::Radius { by_member: false, may_store: false })
}

pub(super) fn georadiusbymember(call: &mut Call<'_>) -> Result<(), Error> {
    search(call, Form::Radius { by_member: true, may_store: true })
}

pub(super) fn georadiusbymember_ro(call: &mut Call<'_>) -> Result<(), Error> {
    search(call, Form::Radius { by_member: true, may_store: false })
}

/// Keys of `GEORADIUS` and `GEORADIUSBYMEMBER`: the set, and those behind `STORE` or `STOREDIST`,
/// of which the last is written.
pub(super) fn keys_with_target(arguments: &[&[u8]]) -> Vec<usize> {
    let mut keys = Vec::from_iter((arguments.len() > 1).then_some(1));
    let mut at = 5;
    while at + 1 < arguments.len() {
        if is(arguments[at], "store") || is(arguments[at], "storedist") {
            keys.push(at + 1);
            at += 1;
        }
        at += 1;
    }
    keys
}

fn search(call: &mut Call<'_>, form: Form) -> Result<(), Error> {
    let source = if form == Form::SearchStored { 2 } else { 1 };
    let set = call.database.read::<ZSet>(call.arguments[source])?;
    let request = Request::parse(call.arguments, form, set)?;
    let found = match (set, &request.search) {
        (Some(set), Some(search)) => search.run(set),
        _ => vec![],
    };
    let Some(target) = request.target else {
        write(&mut call.reply, &request, &found);
        return Ok(());
    };
    let result = stored(call.database.limits(target), &request, &found).map_err(Error::of)?;
    let is_search = form == Form::SearchStored;
    store(call, target, result, if is_search { "geosearchstore" } else { "georadiusstore" })
}

/// Writes results with the parts that the client asked for.
fn write(reply: &mut Writer<'_>, request: &Request<'_>, found: &[Match<'_>]) {
    reply.array(found.len());
    let (parts, mut text) = (request.parts(), vec![]);
    for one in found {
        if parts > 0 {
            reply.array(parts + 1);
        }
        bulk(reply, one.member);
        if request.has_distance {
            text.clear();
            push_distance(one.distance_m / request.unit.meters(), &mut text);
            reply.bulk(&text);
        }
        if request.has_hash {
            reply.integer(one.score as i64);
        }
        if request.has_coordinates {
            write_point(reply, one.point);
        }
    }
}

/// The sorted set of the results.
fn stored(limits: &Limits, request: &Request<'_>, found: &[Match<'_>]) -> Result<ZSet, NotANumber> {
    let mut set = ZSet::default();
    for one in found {
        let distance = one.distance_m / request.unit.meters();
        let score = if request.stores_distances { distance } else { one.score };
        one.member.with_bytes(|member| set.add(limits, member, score, AddOptions::default()))?;
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_targets_are_keys() {
        let keys = |line: &str| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            keys_with_target(&words)
        };
        assert_eq!(keys("georadius g 1 2 3 km"), [1]);
        assert_eq!(keys("georadius g 1 2 3 km store to"), [1, 7]);
        assert_eq!(keys("georadius g 1 2 3 km STOREDIST store store to"), [1, 7, 9]);
        assert_eq!(keys("georadiusbymember g m 3 km store"), [1]);
        assert_eq!(keys("georadiusbymember g m 3 km storedist to"), [1, 6]);
        assert!(keys("georadius").is_empty());
    }
}
