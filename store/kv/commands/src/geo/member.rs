// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places of members, and distances between them.

use freeport_kv_types::ZSet;
use freeport_kv_types::geo::{Point, Unit, push_distance};

use super::arguments::{unit, write_point};
use crate::call::Call;
use crate::error::Error;

pub(super) fn geodist(call: &mut Call<'_>) -> Result<(), Error> {
    let unit = match call.arguments {
        [_, _, _, _] => Unit::Meters,
        [_, _, _, _, name] => unit(name)?,
        _ => return Err(Error::SYNTAX),
    };
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    let place = |at: usize| set?.score(call.arguments[at]).map(Point::from_score);
    match (place(2), place(3)) {
        (Some(one), Some(other)) => {
            let mut text = vec![];
            push_distance(one.distance_m(other) / unit.meters(), &mut text);
            call.reply.bulk(&text);
        }
        _ => call.reply.null(),
    }
    Ok(())
}

pub(super) fn geohash(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    let members = &call.arguments[2..];
    call.reply.array(members.len());
    for member in members {
        match set.and_then(|set| set.score(member)) {
            Some(score) => call.reply.bulk(&Point::from_score(score).text()),
            None => call.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn geopos(call: &mut Call<'_>) -> Result<(), Error> {
    let set = call.database.read::<ZSet>(call.arguments[1])?;
    let members = &call.arguments[2..];
    call.reply.array(members.len());
    for member in members {
        match set.and_then(|set| set.score(member)) {
            Some(score) => write_point(&mut call.reply, Point::from_score(score)),
            None => call.reply.null_array(),
        }
    }
    Ok(())
}
