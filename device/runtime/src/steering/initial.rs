// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Initial values and calls from a file. A file may hold a million rules, and traffic must not wait
//! for all of them: it is applied in pieces, whose length the caller determines.
//!
//! 1. Every name and value is checked; an error stops the process before anything is changed.
//! 2. Variables are written.
//! 3. Methods are called, in order.

use super::call::Call;
use super::error::ManagerError;
use super::manager::Manager;
use super::methods::Prepared;
use crate::device::Device;
use crate::layout::parse_json;
use freeport_ir::{Bits, InstanceId};
use serde_json::{Map, Value};
use std::collections::VecDeque;

/// The part of a file that is still to be applied.
pub struct Initial {
    unchecked: VecDeque<Entry>,
    writes: VecDeque<Write>,
    calls: VecDeque<(String, Prepared)>,
    results: Vec<(String, Value)>,
}

/// An entry as written.
enum Entry {
    Variable(String, Value),
    Call(Call),
}

struct Write {
    instance: InstanceId,
    variable: String,
    index: u64,
    bits: Bits,
}

impl Initial {
    /// Reads an object as [`Manager::set_initial`] describes it. Names and values are not checked
    /// yet.
    ///
    /// # Errors
    /// An object of another shape.
    pub fn of_value(value: Value) -> Result<Self, ManagerError> {
        let mut unchecked = VecDeque::new();
        for (instance, members) in object(value, "the file is not an object of instances")? {
            let what = format!("{instance} is not an object of variables and methods");
            for (member, value) in object(members, &what)? {
                let path = format!("{instance}.{member}");
                let Some(path) = path.strip_suffix("()") else {
                    unchecked.push_back(Entry::Variable(path, value));
                    continue;
                };
                for arguments in list(value, path)? {
                    let call = Call { path: path.to_owned(), arguments: list(arguments, path)? };
                    unchecked.push_back(Entry::Call(call));
                }
            }
        }
        Ok(Self { unchecked, writes: VecDeque::new(), calls: VecDeque::new(), results: vec![] })
    }
}

impl<D: Device> Manager<D> {
    /// Sets variables and calls methods as a JSON object of instances specifies: `{"instance":
    /// {"variable": value, "method()": [[argument, ...], ...]}}`. A method is called once for each
    /// list of arguments. The value of an array is a list from its first element on, or an object
    /// with indices as names. Everything is checked before anything is changed; variables come
    /// first. Returns the calls with their results.
    ///
    /// # Errors
    /// Text of another shape, unknown names, values that do not fit.
    pub fn set_initial(&mut self, json: &str) -> Result<Vec<(String, Value)>, ManagerError> {
        let value = parse_json(json.as_bytes());
        let value = value.map_err(|error| ManagerError::Initial(error.to_string()))?;
        let mut initial = Initial::of_value(value)?;
        loop {
            if let Some(results) = self.proceed_with(&mut initial, || false)? {
                return Ok(results);
            }
        }
    }

    /// Applies a piece of the file, at least one step, until `is_time_up`. Once everything is done,
    /// returns the calls with their results.
    ///
    /// # Errors
    /// Unknown names and values that do not fit, before anything is changed.
    pub fn proceed_with(
        &mut self,
        initial: &mut Initial,
        mut is_time_up: impl FnMut() -> bool,
    ) -> Result<Option<Vec<(String, Value)>>, ManagerError> {
        loop {
            if let Some(entry) = initial.unchecked.pop_front() {
                self.check_entry(entry, initial)?;
            } else if let Some(write) = initial.writes.pop_front() {
                let Write { instance, variable, index, bits } = write;
                self.device_mut().write_variable(instance, &variable, index, &bits)?;
            } else if let Some((path, call)) = initial.calls.pop_front() {
                let result = self.call_prepared(&call)?;
                initial.results.push((path, result));
            } else {
                return Ok(Some(std::mem::take(&mut initial.results)));
            }
            if is_time_up() {
                return Ok(None);
            }
        }
    }

    fn check_entry(&self, entry: Entry, initial: &mut Initial) -> Result<(), ManagerError> {
        match entry {
            Entry::Call(call) => {
                let prepared = self.prepare(&call)?;
                initial.calls.push_back((call.path, prepared));
            }
            Entry::Variable(path, value) => {
                let place = self.place(&path)?;
                for (index, bits) in place.values(&value)? {
                    let (instance, variable) = (place.instance, place.variable.clone());
                    initial.writes.push_back(Write { instance, variable, index, bits });
                }
            }
        }
        Ok(())
    }
}

fn list(value: Value, path: &str) -> Result<Vec<Value>, ManagerError> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(ManagerError::Initial(format!("{path}() is not a list of lists of arguments"))),
    }
}

fn object(value: Value, otherwise: &str) -> Result<Map<String, Value>, ManagerError> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(ManagerError::Initial(otherwise.to_owned())),
    }
}
