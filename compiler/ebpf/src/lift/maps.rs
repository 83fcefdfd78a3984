// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts maps to tables, and data to variables.

use crate::object::{MapDefinition, MapKind};
use freeport_ir::{
    Addressing, Bits, Lifetime, Loc, Object, ObjectId, Space, Table, TableId, TableKind,
};

/// Counterpart of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapPlace {
    /// A table of the same name.
    Table(TableId),
    /// A variable of the same name, addressed by byte.
    Data(ObjectId),
}

/// Returns the variables and tables of an element for these maps, and the counterpart of each map.
/// The first variables of the element are those of [`declare`](super::element::declare).
pub(super) fn places(maps: &[MapDefinition]) -> (Vec<Object>, Vec<Table>, Vec<Option<MapPlace>>) {
    let (mut data, mut tables, mut places) = (vec![], vec![], vec![]);
    for map in maps {
        let place = if map.check().is_err() {
            None
        } else if let Some(initial) = &map.initial {
            data.push(variable(map, initial));
            let before = super::element::VARIABLES + data.len() - 1;
            Some(MapPlace::Data(ObjectId::new(before)))
        } else {
            table(map).map(|table| {
                tables.push(table);
                MapPlace::Table(TableId::new(tables.len() - 1))
            })
        };
        places.push(place);
    }
    (data, tables, places)
}

/// Returns a data section as a variable.
fn variable(map: &MapDefinition, initial: &[u8]) -> Object {
    Object {
        name: map.name.clone(),
        space: Space::Global,
        elem_bits: 8,
        depth: u64::from(map.value_size).max(1),
        addressing: Addressing::Byte,
        lifetime: Lifetime::Instance,
        init: initial.iter().map(|byte| Bits::from_u64(8, u64::from(*byte))).collect(),
        host_visible: true,
        is_pinned: true,
        loc: Loc::default(),
    }
}

/// Returns a map as a table, or `None` for kinds without a counterpart.
fn table(map: &MapDefinition) -> Option<Table> {
    use MapKind::*;
    let kind = match map.kind {
        // An entry of a device map may be absent, like an entry of a hash.
        Hash | PerCpuHash | Devmap | DevmapHash => TableKind::Hash,
        LruHash | LruPerCpuHash => TableKind::LruHash,
        Array | PerCpuArray => TableKind::Array,
        LpmTrie => TableKind::LongestPrefix,
        _ => return None,
    };
    Some(Table {
        name: map.name.clone(),
        kind,
        key_bits: map.key_size * 8,
        value_bits: map.value_size * 8,
        capacity: map.max_entries.into(),
        loc: Loc::default(),
    })
}
