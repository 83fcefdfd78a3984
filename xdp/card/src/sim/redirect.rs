// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where packets go that are redirected: the card resolves no entry, it says map and key with the
//! packet. Whoever has the devices asks the map then, as the kernel does behind the program.

use super::{Failure, Sim};
use crate::Tags;
use crate::nic::MAP_REGION;
use freeport_ebpf::interpreter::Redirect;

/// A device's number is in place of a key.
const NO_MAP: u32 = 0xffff_ffff;
/// To all devices of the map.
const TO_ALL: u32 = 1 << 16;
/// But the one by which the packet came.
const NOT_BACK: u32 = 1 << 17;

impl Tags {
    /// To which map's devices the packet goes, if it goes to all of them.
    pub fn to_all(&self) -> Option<Redirect> {
        let is_to_all = self.map != NO_MAP && self.map & TO_ALL != 0;
        let (map, excludes_ingress) = ((self.map & 0xffff) as usize, self.map & NOT_BACK != 0);
        is_to_all.then_some(Redirect::Broadcast { map, excludes_ingress })
    }
}

impl Sim {
    /// What tags mean.
    pub(super) fn redirect_of(&mut self, tags: &Tags) -> Result<Option<Redirect>, Failure> {
        if tags.map == NO_MAP {
            // No device has number 0: nobody has said where to.
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
