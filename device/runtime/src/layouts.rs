// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the front end knows of the variables and methods of each element: how their bits are read.

use crate::layout::Layout;
use std::collections::BTreeMap;

/// The layouts of a program. What is missing is a number of as many bits as there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layouts {
    /// By element type and variable: the layout of one element of it.
    pub variables: BTreeMap<(String, String), Layout>,
    /// By element type and table.
    pub tables: BTreeMap<(String, String), TableLayout>,
    /// By element type and method.
    pub methods: BTreeMap<(String, String), MethodLayout>,
}

/// What a table holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableLayout {
    /// A key; of a longest-prefix table the number that prefixes are of.
    pub key: Layout,
    /// A value.
    pub value: Layout,
}

/// What a method takes and gives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MethodLayout {
    /// Names and layouts, in order.
    pub parameters: Vec<(String, Layout)>,
    /// None for a method that gives nothing.
    pub result: Option<Layout>,
}

impl MethodLayout {
    /// `insert(key, action, priority)`, for messages.
    pub fn signature(&self, name: &str) -> String {
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| name.as_str()).collect();
        format!("{name}({})", names.join(", "))
    }
}
