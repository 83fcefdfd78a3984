// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads the bytes of an object into the kernel as programs and maps.

use super::{messages, plain};
use crate::{Error, Loading};
use freeport_ebpf::object::{MapDefinition, MapKind};
use libbpf_rs::{AsRawLibbpf, Object, ObjectBuilder, OpenMapMut, OpenObject, Result, libbpf_sys};
use std::path::Path;

/// A loaded object, and the names of its maps that were not created.
pub struct Loaded {
    pub object: Object,
    pub absent: Vec<String>,
}

/// Loads an object. The first attempt creates all maps. If it fails, the second attempt omits the
/// maps that the kernel refuses, so that programs that do not use them still run.
pub fn load(object: &[u8], loading: &Loading<'_>) -> std::result::Result<Loaded, Error> {
    let all = messages::collect(|| open(object, loading, &[])?.load());
    let failed = match all {
        Ok(object) => return Ok(Loaded { object, absent: vec![] }),
        Err(failed) => failed,
    };
    let wrong = |map: &&MapDefinition| !matches!(map.kind, MapKind::Other(_));
    let wrong: Vec<(&str, String)> = loading
        .maps
        .iter()
        .filter(wrong)
        .filter_map(|map| Some((map.name.as_str(), map.check().err()?)))
        .collect();
    if wrong.is_empty() {
        return Err(Error::Load(failed));
    }
    let absent: Vec<&str> = wrong.iter().map(|(name, _)| *name).collect();
    match messages::collect(|| open(object, loading, &absent)?.load()) {
        Ok(object) => {
            Ok(Loaded { object, absent: absent.into_iter().map(str::to_owned).collect() })
        }
        Err(_) => {
            let reasons = wrong.iter().map(|(name, reason)| format!("map `{name}`: {reason}"));
            let reasons: Vec<_> = reasons.collect();
            Err(Error::Load(format!("{}\n{failed}", reasons.join("\n"))))
        }
    }
}

/// Opens an object, selects programs, and prepares maps; those in `absent` are not created.
fn open(object: &[u8], loading: &Loading<'_>, absent: &[&str]) -> Result<OpenObject> {
    let mut builder = ObjectBuilder::default();
    let mut opened = builder.name("freeport")?.open_memory(object)?;
    for mut map in opened.maps_mut() {
        let name = plain(&map.name().to_string_lossy()).to_owned();
        pin(&mut map, &name, loading.pins)?;
        if let Some(definition) = loading.maps.iter().find(|it| it.name == name) {
            prepare(&mut map, definition)?;
        }
        if absent.contains(&name.as_str()) {
            map.set_autocreate(false)?;
        }
    }
    if !loading.programs.is_empty() {
        for mut program in opened.progs_mut() {
            let is_wanted =
                program.name().to_str().is_some_and(|it| loading.programs.contains(&it));
            program.set_autoload(is_wanted);
        }
    }
    Ok(opened)
}

/// Sets the size and initial value of a map, where the definition differs from the object.
fn prepare(map: &mut OpenMapMut<'_>, definition: &MapDefinition) -> Result<()> {
    let MapDefinition { max_entries, initial, .. } = definition;
    // libbpf may choose the size of a map whose definition has 0.
    if *max_entries != 0 && *max_entries != map.max_entries() {
        map.set_max_entries(*max_entries)?;
    }
    match initial {
        Some(initial) if map.initial_value().is_some_and(|now| now != &initial[..]) => {
            map.set_initial_value(initial)
        }
        _ => Ok(()),
    }
}

/// Pins a map that requests it in `folder`, or does not pin it if there is no folder.
fn pin(map: &mut OpenMapMut<'_>, name: &str, folder: Option<&Path>) -> Result<()> {
    let raw = map.as_libbpf_object().as_ptr();
    // SAFETY: the map is open, so the pointer is valid.
    let path = unsafe { libbpf_sys::bpf_map__pin_path(raw) };
    if path.is_null() {
        return Ok(());
    }
    if let Some(folder) = folder {
        return map.set_pin_path(folder.join(name));
    }
    // SAFETY: the map is open; without a path it is not pinned.
    let result = unsafe { libbpf_sys::bpf_map__set_pin_path(raw, std::ptr::null()) };
    match result {
        0 => Ok(()),
        error => Err(libbpf_rs::Error::from_raw_os_error(-error)),
    }
}
