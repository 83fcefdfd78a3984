// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Host operations on the tables of a running graph, between runs: lookup, update, delete and
//! listing of entries. Updates and deletes are recorded; a lookup is not a use of an entry.

use crate::manifest::{Manifest, TableInfo};
use crate::{Error, Graph, abi};
use freeport_ir::oracle::{HostAction, TableEntries, sort_entries};
use freeport_ir::{Bits, InstanceId, TableId};

impl Graph {
    /// Returns the value that a key matches in a table.
    ///
    /// # Errors
    /// There is no such table, or the key has another width.
    pub fn table_lookup(
        &self,
        instance: InstanceId,
        table: &str,
        key: &Bits,
    ) -> Result<Option<Bits>, Error> {
        let (at, info) = self.table(instance, table)?;
        check(info, key, None)?;
        let mut value = vec![0; info.value_bytes()];
        let mut key = key.to_le_bytes();
        let request = abi::TableRequest::new(instance, at, abi::TABLE_LOOKUP);
        let exists = self.code.act_on_table(request, &mut key, &mut value, &mut 0);
        Ok(exists.then(|| Bits::from_le_bytes(info.value_bits, &value)))
    }

    /// Sets the value under a key; returns false if there is no room or the key is invalid.
    ///
    /// # Errors
    /// There is no such table, or the key or value has another width.
    pub fn table_update(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: Bits,
        value: Bits,
    ) -> Result<bool, Error> {
        let (at, info) = self.table(instance, table)?;
        check(info, &key, Some(&value))?;
        let (mut key_bytes, mut value_bytes) = (key.to_le_bytes(), value.to_le_bytes());
        let request = abi::TableRequest::new(instance, at, abi::TABLE_UPDATE);
        let done = self.code.act_on_table(request, &mut key_bytes, &mut value_bytes, &mut 0);
        let table = TableId::new(at);
        self.acted_on_table(instance, HostAction::TableUpdate { table, key, value }, done);
        Ok(done)
    }

    /// Removes the entry under a key; returns false if there is none.
    ///
    /// # Errors
    /// There is no such table, or the key has another width.
    pub fn table_delete(
        &mut self,
        instance: InstanceId,
        table: &str,
        key: Bits,
    ) -> Result<bool, Error> {
        let (at, info) = self.table(instance, table)?;
        check(info, &key, None)?;
        let (mut key_bytes, mut value_bytes) = (key.to_le_bytes(), vec![0; info.value_bytes()]);
        let request = abi::TableRequest::new(instance, at, abi::TABLE_DELETE);
        let done = self.code.act_on_table(request, &mut key_bytes, &mut value_bytes, &mut 0);
        let action = HostAction::TableDelete { table: TableId::new(at), key };
        self.acted_on_table(instance, action, done);
        Ok(done)
    }

    /// Returns all entries of a table.
    ///
    /// # Errors
    /// There is no such table.
    pub fn table_entries(&self, instance: InstanceId, table: &str) -> Result<TableEntries, Error> {
        let (at, info) = self.table(instance, table)?;
        Ok(self.entries(instance, at, info))
    }

    /// Returns the contents of all tables, by instance.
    pub(crate) fn tables(&self, manifest: &Manifest) -> Vec<Vec<TableEntries>> {
        let of_instance = |at: usize| {
            let element = &manifest.elements[manifest.instances[at].element];
            let tables = element.tables.iter().enumerate();
            tables.map(|(table, info)| self.entries(InstanceId::new(at), table, info)).collect()
        };
        (0..manifest.instances.len()).map(of_instance).collect()
    }

    fn entries(&self, instance: InstanceId, at: usize, info: &TableInfo) -> TableEntries {
        let request = abi::TableRequest::new(instance, at, abi::TABLE_NEXT);
        let (mut key, mut value) = (vec![0; info.key_bytes()], vec![0; info.value_bytes()]);
        let (mut entries, mut cursor) = (vec![], 0);
        while self.code.act_on_table(request, &mut key, &mut value, &mut cursor) {
            let key = Bits::from_le_bytes(info.key_bits, &key);
            entries.push((key, Bits::from_le_bytes(info.value_bits, &value)));
        }
        if !info.is_ordered_by_use {
            sort_entries(&mut entries);
        }
        entries
    }

    fn acted_on_table(&mut self, instance: InstanceId, action: HostAction, done: bool) {
        self.code.instance_mut(instance.index()).is_quiet = 0;
        self.note(instance, action, Some(Bits::from_bool(done)));
    }

    fn table(&self, instance: InstanceId, name: &str) -> Result<(usize, &TableInfo), Error> {
        let tables = &self.manifest().elements[self.info(instance)?].tables;
        let found = tables.iter().enumerate().find(|(_, table)| table.name == name);
        found.ok_or_else(|| self.unknown(instance, &format!("table {name}")))
    }
}

fn check(table: &TableInfo, key: &Bits, value: Option<&Bits>) -> Result<(), Error> {
    let bits = |width: u32| format!("{width} bits");
    if key.width() != table.key_bits {
        let what = format!("a key of {}", table.name);
        return Err(Error::mismatch(&what, bits(table.key_bits), bits(key.width())));
    }
    match value {
        Some(value) if value.width() != table.value_bits => {
            let what = format!("a value of {}", table.name);
            Err(Error::mismatch(&what, bits(table.value_bits), bits(value.width())))
        }
        _ => Ok(()),
    }
}
