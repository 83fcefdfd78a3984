// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contents of the maps that name devices, read when first needed and cached until a map is
//! changed. Programs cannot change such maps.

use crate::{Error, Way};
use freeport_ebpf::interpreter::Redirect;
use freeport_ebpf::object::{MapKind, Object};
use freeport_xdp::{Contents, Target};
use std::collections::BTreeMap;

/// Maps of an object, and the cached contents of those that name devices.
pub struct Devices {
    maps: Vec<(String, MapKind)>,
    known: BTreeMap<usize, BTreeMap<u32, u32>>,
}

impl Devices {
    /// Creates an empty cache for the maps of an object.
    pub fn of(object: &Object) -> Self {
        let maps = object.maps.iter().map(|map| (map.name.clone(), map.kind)).collect();
        Self { maps, known: BTreeMap::new() }
    }

    /// Clears the cache, because a map has changed.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Returns where a redirected packet goes.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn way(
        &mut self,
        redirect: Redirect,
        ingress_ifindex: u32,
        target: &mut dyn Target,
    ) -> Result<Way, Error> {
        match redirect {
            Redirect::Device { ifindex } => Ok(Way::Device(ifindex)),
            Redirect::Map { map, target: number, .. } => Ok(self.of_entry(map, Some(number))),
            Redirect::Broadcast { map, excludes_ingress } => {
                let all = self.read(map, target)?.values().copied();
                let to = all.filter(|&to| !excludes_ingress || to != ingress_ifindex);
                Ok(Way::Devices(to.collect()))
            }
        }
    }

    /// Returns where a packet goes of whose redirection only the map and the key are known.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn way_by_key(
        &mut self,
        map: usize,
        key: u32,
        target: &mut dyn Target,
    ) -> Result<Way, Error> {
        let is_of_devices = self.kind(map).is_some_and(names_devices);
        let number = if is_of_devices { self.read(map, target)?.get(&key).copied() } else { None };
        Ok(self.of_entry(map, number))
    }

    /// Returns the destination that an entry names whose value begins with this number.
    fn of_entry(&self, map: usize, number: Option<u32>) -> Way {
        match (self.kind(map), number) {
            (Some(MapKind::Cpumap), _) => Way::Host,
            (Some(MapKind::Xskmap), _) => Way::Socket,
            (Some(kind), Some(number)) if names_devices(kind) => Way::Device(number),
            _ => Way::Nowhere,
        }
    }

    fn kind(&self, map: usize) -> Option<MapKind> {
        self.maps.get(map).map(|(_, kind)| *kind)
    }

    /// Returns the devices of a map by key.
    fn read(&mut self, map: usize, target: &mut dyn Target) -> Result<&BTreeMap<u32, u32>, Error> {
        if !self.known.contains_key(&map) {
            let name = self.maps.get(map).map_or("", |(name, _)| name);
            let devices = match target.contents(name)? {
                Contents::Entries(entries) => {
                    let numbers = entries.iter().map(|(key, value)| (number(key), number(value)));
                    // Empty slots of an array of devices have the number 0.
                    numbers.filter(|(_, device)| *device != 0).collect()
                }
                Contents::Items(_) | Contents::Opaque => BTreeMap::new(),
            };
            self.known.insert(map, devices);
        }
        Ok(&self.known[&map])
    }
}

fn names_devices(kind: MapKind) -> bool {
    matches!(kind, MapKind::Devmap | MapKind::DevmapHash)
}

/// Returns the first four bytes of a key or a value as a number.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word))
}
