// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Destinations of redirected packets: the card does not resolve map entries, but reports map and
//! key with the packet. The owner of the devices then looks up the entry, as the kernel does after
//! the program.

use super::{Failure, Sim};
use crate::Tags;
use crate::nic::MAP_REGION;
use freeport_ebpf::interpreter::Redirect;

/// Marks a device number in place of a key.
const NO_MAP: u32 = 0xffff_ffff;
/// Redirects to all devices of the map.
const TO_ALL: u32 = 1 << 16;
/// Excludes the ingress device.
const NOT_BACK: u32 = 1 << 17;

impl Tags {
    /// Returns the map, if the packet goes to all its devices.
    pub fn to_all(&self) -> Option<Redirect> {
        let is_to_all = self.map != NO_MAP && self.map & TO_ALL != 0;
        let (map, excludes_ingress) = ((self.map & 0xffff) as usize, self.map & NOT_BACK != 0);
        is_to_all.then_some(Redirect::Broadcast { map, excludes_ingress })
    }
}

impl Sim {
    /// Returns the destination that tags describe.
    pub(super) fn redirect_of(&mut self, tags: &Tags) -> Result<Option<Redirect>, Failure> {
        if tags.map == NO_MAP {
            // No device has number 0: no destination was set.
            let device = Redirect::Device { ifindex: tags.key };
            return Ok((tags.key != 0).then_some(device));
        }
        if let Some(to_all) = tags.to_all() {
            return Ok(Some(to_all));
        }
        let map = (tags.map & 0xffff) as usize;
        let value = self.look_up(map, &tags.key.to_le_bytes())?;
        let target = value.map(|at| self.nic.read_memory(at - MAP_REGION, 4)).transpose()?;
        let target = target.and_then(|bytes| bytes.first_chunk().copied());
        Ok(target.map(|bytes| Redirect::Map {
            map,
            key: tags.key,
            target: u32::from_le_bytes(bytes),
        }))
    }
}
