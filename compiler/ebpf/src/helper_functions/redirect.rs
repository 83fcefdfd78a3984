// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that redirect the packet to a device, or by a map.

use super::Called;
use crate::abi::verdict;
use crate::maps::slots::number;
use crate::object::MapKind;
use crate::run::{Reason, Redirect, Run};

/// Bits of the flags with the verdict for a key that the map does not have.
const VERDICT_FLAGS: u64 = 3;
/// Redirects to all devices of the map.
const BROADCAST: u64 = 1 << 3;
/// Excludes the ingress device from a broadcast.
const EXCLUDE_INGRESS: u64 = 1 << 4;

/// `bpf_redirect`: redirects to the device with this number.
pub fn to_device(run: &mut Run, _: &'static str) -> Called {
    if run.argument(2) != 0 {
        return Ok(Some(verdict::ABORTED.into()));
    }
    run.redirect = Some(Redirect::Device { ifindex: run.argument(1) as u32 });
    Ok(Some(verdict::REDIRECT.into()))
}

/// `bpf_redirect_map`: redirects to the device, processor or socket in a map's entry.
pub fn by_map(run: &mut Run, helper: &'static str) -> Called {
    let map = run.map_argument(1, helper)?;
    let (key, flags) = (run.argument(2) as u32, run.argument(3));
    let known = match run.maps[map].kind() {
        MapKind::Devmap | MapKind::DevmapHash => VERDICT_FLAGS | BROADCAST | EXCLUDE_INGRESS,
        MapKind::Cpumap | MapKind::Xskmap => VERDICT_FLAGS,
        kind => return Err(Reason::WrongKind { helper, kind }),
    };
    if flags & !known != 0 {
        return Ok(Some(verdict::ABORTED.into()));
    }
    if flags & BROADCAST != 0 {
        let excludes_ingress = flags & EXCLUDE_INGRESS != 0;
        run.redirect = Some(Redirect::Broadcast { map, excludes_ingress });
        return Ok(Some(verdict::REDIRECT.into()));
    }
    let found = run.maps[map].find(&key.to_ne_bytes());
    let Some(element) = found else {
        run.redirect = None;
        return Ok(Some(flags & VERDICT_FLAGS));
    };
    let target = number(&run.maps[map].value(element)[..4]).unwrap_or_default();
    run.redirect = Some(Redirect::Map { map, key, target });
    Ok(Some(verdict::REDIRECT.into()))
}
