// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps as tables, and data as variables.

use crate::object::{MapDefinition, MapKind};
use freeport_ir::{
    Addressing, Bits, Lifetime, Loc, Object, ObjectId, Space, Table, TableId, TableKind,
};

/// What a map has become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapPlace {
    /// A table of the same name.
    Table(TableId),
    /// A variable of the same name, addressed by byte.
    Data(ObjectId),
}

/// The variables and tables of an element for these maps, and which map is which. The first
/// variables of the element are those of [`declare`](super::element::declare).
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

/// The bytes of a section of data.
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

/// A map as a table; none for kinds that are none.
fn table(map: &MapDefinition) -> Option<Table> {
    use MapKind::*;
    let kind = match map.kind {
        // Entries of maps of devices are there or not, as those of a hash are.
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
