// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Host access to maps on the card: operations that search or link entries are done by the card's
//! helpers, with keys and values in the host's part of map memory; entries at a fixed place are
//! written directly.

use super::{Failure, Sim};
use crate::layout::{Holds, Kind, Placed};
use crate::nic::{MAP_HANDLES, MAP_REGION};
use crate::{NicError, address};
use freeport_ebpf::maps::{ErrorNumber, flags};
use freeport_ebpf::object::{MapDefinition, MapKind};
use freeport_xdp::{Contents, Error};
use std::collections::BTreeMap;

/// Helpers, by the kernel's numbers.
const LOOKUP: u64 = 1;
const UPDATE: u64 = 2;
const DELETE: u64 = 3;
const PUSH: u64 = 87;
const POP: u64 = 88;
/// Offsets in map memory of the keys and values of commands.
const KEY_AT: u64 = 0;
const VALUE_AT: u64 = 512;
/// Maximum queue length of a processor in a cpumap.
const QUEUE_MAX: u32 = 16_384;
/// Size in bytes of a `bpf_spin_lock` in a value.
const LOCK_BYTES: usize = 4;

/// Values by key.
type Values = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

impl From<ErrorNumber> for Failure {
    fn from(number: ErrorNumber) -> Self {
        Self(number.to_string())
    }
}

impl Sim {
    /// Writes the table of maps and the initial contents of maps.
    pub(super) fn fill_maps(&mut self) -> Result<(), Failure> {
        for number in 0..self.maps.len() {
            let Ok(placed) = self.layout.maps[number].clone() else { continue };
            self.nic.host_write(table_address(number, 0), &placed.words())?;
            if let Some(initial) = self.maps[number].initial.clone() {
                self.nic.write_memory(placed.entries_at, &initial)?;
            }
        }
        Ok(())
    }

    fn map(&self, name: &str) -> Result<(usize, MapDefinition, Placed), Failure> {
        let number = self.maps.iter().position(|map| map.name == name);
        let number = number.ok_or_else(|| Failure(Error::NoMap(name.into()).to_string()))?;
        let placed = self.layout.maps[number].clone().map_err(Failure)?;
        Ok((number, self.maps[number].clone(), placed))
    }

    pub(super) fn update_map(
        &mut self,
        name: &str,
        key: &[u8],
        value: &[u8],
        flags: u64,
    ) -> Result<(), Failure> {
        let (number, map, placed) = self.map(name)?;
        let is_of_size =
            key.len() == map.key_size as usize && value.len() == map.value_size as usize;
        // Entries of maps of maps are set by name.
        let is_settable = placed.holds != Holds::Maps && placed.has_keys();
        if !is_of_size || !is_settable || (flags & flags::LOCK != 0 && map.lock_at.is_none()) {
            return Err(ErrorNumber::EINVAL.into());
        }
        let mut value = value.to_vec();
        if let Some(at) = map.lock_at {
            // A lock must not be overwritten.
            value.iter_mut().skip(at as usize).take(LOCK_BYTES).for_each(|byte| *byte = 0);
        }
        let flags = flags & !flags::LOCK;
        match placed.kind {
            Kind::Array => {
                let entry = checked_entry(key, flags, &placed)?;
                if flags == flags::NOEXIST {
                    return Err(ErrorNumber::EEXIST.into());
                }
                for core in 0..placed.values {
                    let at = placed.entry_at(entry) + placed.value_of(core);
                    self.nic.write_memory(at, &value)?;
                }
                Ok(())
            }
            Kind::Programs | Kind::Queue | Kind::Stack | Kind::Bloom => {
                Err(ErrorNumber::EINVAL.into())
            }
            Kind::Sparse => self.update_sparse(map.kind, key, &value, flags, &placed),
            Kind::Hash | Kind::LruHash | Kind::Prefixes => {
                let is_device = map.kind == MapKind::DevmapHash;
                if is_device && value.iter().take(4).all(|byte| *byte == 0) {
                    return Err(ErrorNumber::EINVAL.into());
                }
                self.set(number, key, &value, flags)?;
                let lookup = [MAP_HANDLES + number as u64, MAP_REGION + KEY_AT];
                self.spread(&lookup, &value, &placed)
            }
        }
    }

    /// Copies the first core's value of an entry to the other cores.
    fn spread(&mut self, lookup: &[u64], value: &[u8], placed: &Placed) -> Result<(), Failure> {
        if placed.values == 1 {
            return Ok(());
        }
        let found = self.nic.command(LOOKUP, lookup)?;
        // A program may have deleted the entry.
        let Some(first) = found.checked_sub(MAP_REGION) else { return Ok(()) };
        for core in 1..placed.values {
            self.nic.write_memory(first + placed.value_of(core) - placed.value_of(0), value)?;
        }
        Ok(())
    }

    /// Sets an entry of a map with keys, by the card's helper.
    fn set(&mut self, number: usize, key: &[u8], value: &[u8], flags: u64) -> Result<(), Failure> {
        self.stage(KEY_AT, key)?;
        self.stage(VALUE_AT, value)?;
        let [key, value] = [KEY_AT, VALUE_AT].map(|at| MAP_REGION + at);
        let arguments = [MAP_HANDLES + number as u64, key, value, flags];
        succeeded(self.nic.command(UPDATE, &arguments)?)
    }

    pub(super) fn push_value(&mut self, name: &str, value: &[u8]) -> Result<(), Failure> {
        let (number, map, placed) = self.map(name)?;
        if placed.has_keys() {
            return Err(ErrorNumber::EOPNOTSUPP.into());
        }
        if value.len() != map.value_size as usize {
            return Err(ErrorNumber::EINVAL.into());
        }
        self.stage(VALUE_AT, value)?;
        let arguments = [MAP_HANDLES + number as u64, MAP_REGION + VALUE_AT, flags::ANY];
        succeeded(self.nic.command(PUSH, &arguments)?)
    }

    /// Removes and returns all values of a queue or stack.
    fn take_values(&mut self, number: usize, placed: &Placed) -> Result<Vec<Vec<u8>>, Failure> {
        let mut values = vec![];
        let arguments = [MAP_HANDLES + number as u64, MAP_REGION + VALUE_AT];
        loop {
            match succeeded(self.nic.command(POP, &arguments)?) {
                Ok(()) => values.push(self.nic.read_memory(VALUE_AT, placed.value_bytes as usize)?),
                Err(_) if values.len() as u64 <= placed.entries => return Ok(values),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Stores a map in a map of maps, by their names.
    pub(super) fn put_map(&mut self, outer: &str, key: &[u8], inner: &str) -> Result<(), Failure> {
        let (number, map, placed) = self.map(outer)?;
        let (inner, added, _) = self.map(inner)?;
        let is_alike = map.inner.as_ref().is_none_or(|alike| {
            (alike.kind, alike.key_size, alike.value_size)
                == (added.kind, added.key_size, added.value_size)
        });
        let is_of_size = key.len() == map.key_size as usize;
        if placed.holds != Holds::Maps || !is_alike || added.kind.is_of_maps() || !is_of_size {
            return Err(ErrorNumber::EINVAL.into());
        }
        let handle = (MAP_HANDLES + inner as u64).to_le_bytes();
        if placed.kind == Kind::Array {
            let entry = checked_entry(key, flags::ANY, &placed)?;
            return Ok(self.nic.write_memory(placed.entry_at(entry), &handle)?);
        }
        self.set(number, key, &handle, flags::ANY)
    }

    /// Removes a map from an array of maps.
    fn take_map(&mut self, key: &[u8], placed: &Placed) -> Result<(), Failure> {
        let at = placed.entry_at(checked_entry(key, flags::ANY, placed)?);
        if self.nic.read_memory(at, 8)? == [0; 8] {
            return Err(ErrorNumber::ENOENT.into());
        }
        Ok(self.nic.write_memory(at, &[0; 8])?)
    }

    fn update_sparse(
        &mut self,
        kind: MapKind,
        key: &[u8],
        value: &[u8],
        flags: u64,
        placed: &Placed,
    ) -> Result<(), Failure> {
        let entry = checked_entry(key, flags, placed)?;
        let first = first_word(value);
        let is_numbered = matches!(kind, MapKind::Devmap | MapKind::Cpumap);
        let exists = self.nic.read_memory(placed.entry_at(entry), 8)? != [0; 8];
        match flags {
            flags::NOEXIST if is_numbered || exists => return Err(ErrorNumber::EEXIST.into()),
            flags::EXIST if !is_numbered && !exists => return Err(ErrorNumber::ENOENT.into()),
            _ => {}
        }
        if kind == MapKind::Cpumap && first > QUEUE_MAX {
            return Err(ErrorNumber::EOVERFLOW.into());
        }
        let is_set = !is_numbered || first != 0;
        self.put(entry, value, is_set, placed)
    }

    /// Sets or removes an entry of a sparse map.
    fn put(
        &mut self,
        entry: u64,
        value: &[u8],
        is_set: bool,
        placed: &Placed,
    ) -> Result<(), Failure> {
        let mut bytes = u64::from(is_set).to_le_bytes().to_vec();
        bytes.extend(value);
        bytes.resize(placed.stride as usize, 0);
        Ok(self.nic.write_memory(placed.entry_at(entry), &bytes)?)
    }

    pub(super) fn put_row(&mut self, name: &str, key: &[u8], row: usize) -> Result<(), Failure> {
        let (_, _, placed) = self.map(name)?;
        if placed.kind != Kind::Programs || key.len() != 4 {
            return Err(ErrorNumber::EINVAL.into());
        }
        let entry = checked_entry(key, flags::ANY, &placed)?;
        self.put(entry, &(row as u32).to_le_bytes(), true, &placed)
    }

    pub(super) fn delete_in_map(&mut self, name: &str, key: &[u8]) -> Result<(), Failure> {
        let (number, map, placed) = self.map(name)?;
        let is_array = placed.kind == Kind::Array;
        if is_array && placed.holds == Holds::Maps && key.len() == map.key_size as usize {
            return self.take_map(key, &placed);
        }
        if key.len() != map.key_size as usize || is_array || !placed.has_keys() {
            return Err(ErrorNumber::EINVAL.into());
        }
        if matches!(placed.kind, Kind::Sparse | Kind::Programs) {
            let beyond = match placed.kind {
                Kind::Programs => ErrorNumber::E2BIG,
                _ => ErrorNumber::EINVAL,
            };
            let entry = checked_entry(key, flags::ANY, &placed).map_err(|_| beyond)?;
            let exists = self.nic.read_memory(placed.entry_at(entry), 8)? != [0; 8];
            if placed.kind == Kind::Programs && !exists {
                return Err(ErrorNumber::ENOENT.into());
            }
            return self.put(entry, &[], false, &placed);
        }
        self.stage(KEY_AT, key)?;
        let arguments = [MAP_HANDLES + number as u64, MAP_REGION + KEY_AT];
        succeeded(self.nic.command(DELETE, &arguments)?)
    }

    /// Returns the result of the card's lookup helper for a key.
    pub(super) fn lookup_in_map(
        &mut self,
        name: &str,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Failure> {
        let (number, map, placed) = self.map(name)?;
        if key.len() != map.key_size as usize {
            return Err(ErrorNumber::EINVAL.into());
        }
        if !placed.has_keys() {
            return Err(ErrorNumber::EOPNOTSUPP.into());
        }
        if matches!(placed.kind, Kind::Array | Kind::Sparse | Kind::Programs) {
            return Ok(match self.contents_of(name)? {
                Contents::Entries(mut entries) => entries.remove(key),
                Contents::Items(_) | Contents::Opaque => None,
            });
        }
        match self.look_up(number, key)? {
            Some(address) => {
                let at = address - MAP_REGION;
                Ok(Some(self.nic.read_memory(at, placed.value_bytes as usize)?))
            }
            None => Ok(None),
        }
    }

    /// Returns the address of a key's value.
    pub(super) fn look_up(&mut self, map: usize, key: &[u8]) -> Result<Option<u64>, Failure> {
        self.stage(KEY_AT, key)?;
        let arguments = [MAP_HANDLES + map as u64, MAP_REGION + KEY_AT];
        let address = self.nic.command(LOOKUP, &arguments)?;
        Ok(Some(address).filter(|address| (MAP_REGION..MAP_HANDLES).contains(address)))
    }

    /// Writes a key or a value to the place where commands read it.
    fn stage(&mut self, at: u64, bytes: &[u8]) -> Result<(), NicError> {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        self.nic.write_memory(at, &bytes)
    }

    pub(super) fn contents_of(&mut self, name: &str) -> Result<Contents, Failure> {
        if self.maps.iter().any(|map| map.name == name && map.check().is_err()) {
            return Ok(Contents::Opaque);
        }
        let (number, map, placed) = self.map(name)?;
        let is_opaque = matches!(map.kind, MapKind::ProgramArray | MapKind::Xskmap);
        if is_opaque || placed.holds == Holds::Maps || placed.kind == Kind::Bloom {
            return Ok(Contents::Opaque);
        }
        if !placed.has_keys() {
            return Ok(Contents::Items(self.take_values(number, &placed)?));
        }
        let entries = self.values_of(name)?.into_iter();
        let first = entries.filter_map(|(key, values)| Some((key, values.into_iter().next()?)));
        Ok(Contents::Entries(first.collect()))
    }

    /// Returns all values of all entries: one, or one for each core.
    pub(super) fn values_of(&mut self, name: &str) -> Result<Values, Failure> {
        let (number, _, placed) = self.map(name)?;
        let used = match placed.kind {
            Kind::Hash | Kind::LruHash | Kind::Prefixes => self.used_entries(number, &placed)?,
            _ => (0..placed.entries).collect(),
        };
        let stride = placed.stride as usize;
        let (key_bytes, value_bytes) = (placed.key_bytes as usize, placed.value_bytes as usize);
        let all = used.last().map_or(0, |last| last + 1);
        let memory = self.nic.read_memory(placed.entries_at, all as usize * stride)?;
        let mut entries = BTreeMap::new();
        for number in used {
            let entry = &memory[number as usize * stride..][..stride];
            let key = match placed.kind {
                Kind::Array => (number as u32).to_ne_bytes().to_vec(),
                Kind::Sparse | Kind::Programs if entry[..8] == [0; 8] => continue,
                Kind::Sparse | Kind::Programs => (number as u32).to_ne_bytes().to_vec(),
                _ => entry[..key_bytes].to_vec(),
            };
            let value = |core| entry[placed.value_of(core) as usize..][..value_bytes].to_vec();
            entries.insert(key, (0..placed.values).map(value).collect());
        }
        Ok(entries)
    }

    /// Returns the entries of a hash that are in use: all that were ever used, except those in the
    /// free list.
    fn used_entries(&mut self, number: usize, placed: &Placed) -> Result<Vec<u64>, Failure> {
        let word = self.nic.read(table_address(number, 7))?;
        let ever = (word & 0xffff_ffff).min(placed.entries);
        let mut is_used = vec![true; ever as usize];
        let links = self.nic.read_memory(placed.links_at, 4 * ever as usize)?;
        let mut next = word >> 32;
        while let Some(free) = next.checked_sub(1) {
            match is_used.get_mut(free as usize) {
                Some(is_used) if *is_used => *is_used = false,
                _ => return Err(Failure("the list of free entries is corrupt".into())),
            }
            next = first_word(&links[4 * free as usize..]).into();
        }
        Ok((0..ever).filter(|&entry| is_used[entry as usize]).collect())
    }
}

/// Returns the address of a word of a map's table entry.
fn table_address(map: usize, word: u32) -> u32 {
    address::TABLE + 64 * map as u32 + 8 * word
}

/// Returns the first four bytes as a number; 0 if there are fewer.
fn first_word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

/// Returns the entry of a key, after a check of key and flags.
fn checked_entry(key: &[u8], flags: u64, placed: &Placed) -> Result<u64, ErrorNumber> {
    if flags > flags::EXIST {
        return Err(ErrorNumber::EINVAL);
    }
    let entry = u64::from(first_word(key));
    if entry < placed.entries { Ok(entry) } else { Err(ErrorNumber::E2BIG) }
}

/// Checks the result of a helper.
fn succeeded(result: u64) -> Result<(), Failure> {
    match result as i64 {
        0 => Ok(()),
        number => Err(ErrorNumber(-number as i32).into()),
    }
}
