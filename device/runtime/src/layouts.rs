// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layouts of the variables, tables and methods of each element, as the front end knows them.

use crate::layout::Layout;
use std::collections::BTreeMap;

/// The layouts of a program. A missing entry stands for an unsigned number of the full width.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layouts {
    /// Layout of one element of a variable, by element type and variable.
    pub variables: BTreeMap<(String, String), Layout>,
    /// Layout of a table, by element type and table.
    pub tables: BTreeMap<(String, String), TableLayout>,
    /// Layout of a method, by element type and method.
    pub methods: BTreeMap<(String, String), MethodLayout>,
}

/// Layout of a table's entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableLayout {
    /// Layout of a key; for a longest-prefix table, of the number that the prefixes belong to.
    pub key: Layout,
    /// Layout of a value.
    pub value: Layout,
}

/// Layout of a method's parameters and result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MethodLayout {
    /// Names and layouts, in order.
    pub parameters: Vec<(String, Layout)>,
    /// None for a method without a result.
    pub result: Option<Layout>,
}

impl MethodLayout {
    /// Returns `insert(key, action, priority)`, for messages.
    pub fn signature(&self, name: &str) -> String {
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| name.as_str()).collect();
        format!("{name}({})", names.join(", "))
    }
}
