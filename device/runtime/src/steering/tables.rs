// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of a running program by name, as calls: `exact.flows.update({source: 10.0.0.1}, 5)`,
//! `exact.flows.lookup(...)`, `exact.flows.delete(...)` and `exact.flows.entries()`. Calls of a
//! longest-prefix table take the prefix length after the key.

use super::call::Call;
use super::error::ManagerError;
use super::manager::Manager;
use crate::device::Device;
use crate::layout::Layout;
use crate::layouts::TableLayout;
use freeport_ir::{Bits, InstanceId, Table, TableKind, UnaryOp};
use serde_json::{Value, json};

/// Bits of the prefix length in the key of a longest-prefix table.
const LENGTH_BITS: u32 = 32;

/// Action of a call on a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Lookup,
    Update,
    Delete,
    Entries,
}

/// A table, and the action on it.
pub(super) struct TableCall {
    name: String,
    action: Action,
    is_prefix: bool,
    value_bits: u32,
    layout: TableLayout,
}

impl TableCall {
    /// Returns the parameters with their layouts.
    fn parameters(&self) -> Vec<(&'static str, Layout)> {
        let key = ("key", self.layout.key.clone());
        let length = ("length", Layout::Unsigned(LENGTH_BITS));
        let value = ("value", self.layout.value.clone());
        match (self.action, self.is_prefix) {
            (Action::Entries, _) => vec![],
            (Action::Lookup, _) | (Action::Delete, false) => vec![key],
            (Action::Delete, true) => vec![key, length],
            (Action::Update, false) => vec![key, value],
            (Action::Update, true) => vec![key, length, value],
        }
    }

    /// Builds the key of the table from the arguments.
    fn key(&self, arguments: &[Bits]) -> Bits {
        if !self.is_prefix {
            return arguments[0].clone();
        }
        let whole = || Bits::from_u64(LENGTH_BITS, u64::from(arguments[0].width()));
        let length = match self.action {
            Action::Lookup => whole(),
            _ => arguments[1].clone(),
        };
        Bits::concat([&length, &Bits::unary(UnaryOp::ByteSwap, &arguments[0])])
    }

    /// Converts a value for people; a number may have fewer bits than its bytes.
    fn value(&self, value: &Bits) -> Value {
        self.layout.value.show(&value.extract(0, self.layout.value.bits()))
    }

    fn entry(&self, key: &Bits, value: &Bits) -> Value {
        let value = self.value(value);
        if !self.is_prefix {
            return json!({"key": self.layout.key.show(key), "value": value});
        }
        let data = key.extract(LENGTH_BITS, key.width() - LENGTH_BITS);
        let number = self.layout.key.show(&Bits::unary(UnaryOp::ByteSwap, &data));
        let length = key.extract(0, LENGTH_BITS).to_u64();
        json!({"key": number, "length": length, "value": value})
    }
}

impl<D: Device> Manager<D> {
    /// Returns the tables of all instances: a list of objects with `table` (`instance.table`),
    /// `kind`, `capacity`, and, in `key` and `value`, the shape of each with all values 0.
    pub fn tables(&self) -> Value {
        let program = self.device().program();
        let of = |instance: &freeport_ir::Instance| {
            let element = program.element(instance.element);
            let row = |table: &Table| {
                let layout = self.table_layout(&element.name, table);
                let zero = |layout: &Layout| layout.show(&Bits::zero(layout.bits()));
                json!({
                    "table": format!("{}.{}", instance.name, table.name),
                    "kind": match table.kind {
                        TableKind::Hash => "hash",
                        TableKind::LruHash => "least recently used",
                        TableKind::LongestPrefix => "longest prefix",
                        TableKind::Array => "array",
                    },
                    "capacity": table.capacity,
                    "key": zero(&layout.key),
                    "value": zero(&layout.value),
                })
            };
            element.tables.iter().map(row).collect::<Vec<_>>()
        };
        program.graph.instances.iter().flat_map(of).collect()
    }

    /// Checks a call of a table's method and its arguments; returns none if the name is not that of
    /// a table's method.
    pub(super) fn prepare_table(
        &self,
        instance: InstanceId,
        member: &str,
        call: &Call,
    ) -> Result<Option<(TableCall, Vec<Bits>)>, ManagerError> {
        let Some((name, action)) = member.rsplit_once('.') else { return Ok(None) };
        let element = self.device().program().element_of(instance);
        let Some(table) = element.tables.iter().find(|table| table.name == name) else {
            return Ok(None);
        };
        let action = match action {
            "lookup" => Action::Lookup,
            "update" => Action::Update,
            "delete" => Action::Delete,
            "entries" => Action::Entries,
            _ => {
                let known = ["lookup", "update", "delete", "entries"].map(str::to_owned).to_vec();
                let name = call.path.clone();
                return Err(ManagerError::Unknown { what: "method", name, known });
            }
        };
        let is_prefix = table.kind == TableKind::LongestPrefix;
        let (layout, value_bits) = (self.table_layout(&element.name, table), table.value_bits);
        let name = name.to_owned();
        let table = TableCall { name, action, is_prefix, value_bits, layout };
        let parameters = table.parameters();
        if parameters.len() != call.arguments.len() {
            let names: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
            return Err(ManagerError::Arguments {
                path: call.path.clone(),
                given: call.arguments.len(),
                signature: format!("{member}({})", names.join(", ")),
            });
        }
        let mut arguments = vec![];
        for ((name, layout), value) in parameters.iter().zip(&call.arguments) {
            let path = format!("{}, {name}", call.path);
            let bits = layout.parse(value);
            arguments.push(bits.map_err(|source| ManagerError::Value { path, source })?);
        }
        Ok(Some((table, arguments)))
    }

    pub(super) fn act_on_table(
        &mut self,
        instance: InstanceId,
        table: &TableCall,
        arguments: &[Bits],
    ) -> Result<Value, ManagerError> {
        let name = table.name.as_str();
        let device = self.device_mut();
        Ok(match table.action {
            Action::Entries => {
                let entries = device.table_entries(instance, name)?;
                entries.iter().map(|(key, value)| table.entry(key, value)).collect()
            }
            Action::Lookup => {
                let found = device.table_lookup(instance, name, &table.key(arguments))?;
                found.map_or(Value::Null, |value| table.value(&value))
            }
            Action::Delete => device.table_delete(instance, name, &table.key(arguments))?.into(),
            Action::Update => {
                let value = arguments[arguments.len() - 1].resize(table.value_bits);
                device.table_update(instance, name, &table.key(arguments), &value)?.into()
            }
        })
    }

    /// Returns the layouts of keys and values; numbers if the front end provides none.
    fn table_layout(&self, element: &str, table: &Table) -> TableLayout {
        let key = (element.to_owned(), table.name.clone());
        self.layouts().tables.get(&key).cloned().unwrap_or_else(|| {
            let length = match table.kind {
                TableKind::LongestPrefix => LENGTH_BITS,
                _ => 0,
            };
            TableLayout {
                key: Layout::Unsigned(table.key_bits - length),
                value: Layout::Unsigned(table.value_bits),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::InterpreterDevice;
    use crate::layout::Member;
    use crate::layouts::Layouts;
    use crate::programs::mac_swap;
    use freeport_ir::interp::Options;

    /// The key of `hosts` is shown as a struct, its value as a number of 13 bits.
    fn layouts() -> Layouts {
        let member =
            |name: &str, lo, bits| Member { name: name.into(), lo, layout: Layout::Unsigned(bits) };
        let members = vec![member("address", 0, 32), member("port", 32, 16)];
        let hosts =
            TableLayout { key: Layout::Struct { bits: 48, members }, value: Layout::Signed(13) };
        let key = ("MacSwap".to_owned(), "hosts".to_owned());
        Layouts { tables: [(key, hosts)].into(), ..Layouts::default() }
    }

    #[test]
    fn tables_are_looked_up_changed_and_listed_by_name() {
        let program = mac_swap();
        let device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        let mut manager = Manager::new(device, layouts());
        let mut call = |text: &str| {
            let result = manager.call(&text.parse().expect("a call"));
            result.map_err(|error| error.to_string())
        };
        let key = json!({"address": 0x0a00_0001, "port": 80});
        let entry = json!([{"key": key, "value": -7}]);
        for (text, wanted) in [
            ("swap.hosts.lookup({address: 10.0.0.1, port: 80})", Value::Null),
            ("swap.hosts.update({address: 10.0.0.1, port: 80}, -7)", json!(true)),
            ("swap.hosts.lookup({address: 10.0.0.1, port: 80})", json!(-7)),
            ("swap.hosts.entries()", entry),
            ("swap.hosts.delete({address: 10.0.0.1, port: 80})", json!(true)),
            ("swap.hosts.delete({address: 10.0.0.1, port: 80})", json!(false)),
            ("swap.routes.update(10.1.0.0, 16, 5)", json!(true)),
            ("swap.routes.update(10.0.0.0, 33, 5)", json!(false)),
            ("swap.routes.lookup(10.1.2.3)", json!(5)),
            ("swap.routes.lookup(10.2.2.3)", Value::Null),
            ("swap.routes.entries()", json!([{"key": 0x0a01_0000, "length": 16, "value": 5}])),
            ("swap.routes.delete(10.1.0.0, 16)", json!(true)),
        ] {
            assert_eq!(call(text), Ok(wanted), "{text}");
        }
        for (text, message) in [
            ("swap.hosts.find(1)", "there are lookup, update, delete, entries"),
            ("swap.hosts.update({port: 1})", "it is hosts.update(key, value)"),
            ("swap.routes.delete(1)", "it is routes.delete(key, length)"),
            ("swap.hosts.update({port: 1}, 4096)", "does not fit"),
            ("swap.others.lookup(1)", "there is no method swap.others.lookup"),
        ] {
            let error = call(text).expect_err("it is wrong");
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
