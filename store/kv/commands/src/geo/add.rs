// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Adding places.

use freeport_kv_types::geo::Point;
use freeport_kv_types::zset::AddOptions;

use super::arguments::point;
use crate::arguments::is;
use crate::call::Call;
use crate::error::Error;
use crate::sorted_sets::add::{Rules, add, existing};

pub(super) fn geoadd(call: &mut Call<'_>) -> Result<(), Error> {
    let (mut is_new, mut is_existing, mut counts_changed, mut first) = (false, false, false, 2);
    for argument in &call.arguments[2..] {
        match *argument {
            word if is(word, "nx") => is_new = true,
            word if is(word, "xx") => is_existing = true,
            word if is(word, "ch") => counts_changed = true,
            _ => break,
        }
        first += 1;
    }
    let places = &call.arguments[first..];
    if places.is_empty() || !places.len().is_multiple_of(3) || is_new && is_existing {
        return Err(Error::SYNTAX);
    }
    let places = places.chunks_exact(3);
    let scores = places.clone().map(|place| point(place[0], place[1]).map(Point::score));
    let scores = scores.collect::<Result<Vec<_>, _>>()?;
    let options = AddOptions { existing: existing(is_new, is_existing), ..AddOptions::default() };
    let members = places.map(|place| place[2]);
    add(call, Rules { options, counts_changed }, scores.into_iter().zip(members))
}
