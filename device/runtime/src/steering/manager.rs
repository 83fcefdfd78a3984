// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The manager: access to a device by names (ClickNP 3.1). It sets initial values of variables,
//! sends signals, reads and writes variables, and reports counters, all by the names of the source.
//!
//! A variable is written `instance.variable` or `instance.variable[3]`, and a part of it
//! `instance.variable[3].member` or `instance.variable.member[2]`. Instance names may contain dots.

use super::error::ManagerError;
use super::place::{Place, index_in};
use crate::device::{Device, DeviceError, Ports, Run};
use crate::layout::{Layout, ValueError, value_of_text};
use crate::layouts::Layouts;
use crate::replace::{ReplaceError, ReplaceOptions, Replacement};
use crate::signal::Signal;
use crate::stats::Statistics;
use freeport_ir::{InstanceId, Object, Program};
use serde_json::{Map, Value};

/// A device whose instances and variables are accessed by name.
pub struct Manager<D> {
    device: D,
    layouts: Layouts,
}

impl<D: Device> Manager<D> {
    /// Manages `device`; a variable without a layout is a number, or a list of numbers.
    pub fn new(device: D, layouts: Layouts) -> Self {
        Self { device, layouts }
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the device for writing, for operations that only its kind has.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    pub(super) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// Continues with `new`, which has not run yet, and takes over the matching state and packets
    /// of the previous device.
    ///
    /// # Errors
    /// Packets would be lost and `is_forced` is not set, or the old device fails; the old device
    /// stays.
    pub fn replace(
        &mut self,
        mut new: D,
        layouts: Layouts,
        is_forced: bool,
    ) -> Result<Replacement, ReplaceError> {
        let both = Some((&self.layouts, &layouts));
        let options = ReplaceOptions { force: is_forced, layouts: both };
        let report = crate::replace::replace(&mut self.device, &mut new, &options)?;
        (self.device, self.layouts) = (new, layouts);
        Ok(report)
    }

    /// Runs between ports; see [`Device::run`].
    ///
    /// # Errors
    /// The errors of [`Device::run`].
    pub fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, ManagerError> {
        Ok(self.device.run(ports)?)
    }

    /// Sends a signal to the instance of that name and returns its answer.
    ///
    /// # Errors
    /// No such instance, or one without a signal handler.
    pub fn signal(
        &mut self,
        instance: &str,
        command: u32,
        params: &[u64],
    ) -> Result<Signal, ManagerError> {
        let id = self.instance(instance)?;
        let mut signal = Signal { command, element: id.0, ..Signal::default() };
        if params.len() > signal.params.len() {
            let (given, count) = (params.len(), signal.params.len() as u64);
            let path = format!("signal to {instance}");
            return Err(ManagerError::Value { path, source: ValueError::TooMany { given, count } });
        }
        signal.params[..params.len()].copy_from_slice(params);
        Ok(Signal::from_bits(&self.device.signal(id, &signal.to_bits())?))
    }

    /// Returns the value of a variable or a part of it; for an array without an index, all
    /// elements.
    ///
    /// # Errors
    /// No such variable or part.
    pub fn read(&self, path: &str) -> Result<Value, ManagerError> {
        let place = self.place(path)?;
        let element = |index| -> Result<Value, ManagerError> {
            let bits = self.device.read_variable(place.instance, &place.variable, index)?;
            Ok(place.layout.show(&bits.extract(place.lo, place.layout.bits())))
        };
        match place.index {
            Some(index) => element(index),
            None => (0..place.depth).map(element).collect(),
        }
    }

    /// Sets a variable or a part of it, given as text: JSON, or a number in any form that
    /// [`Layout`] knows.
    ///
    /// # Errors
    /// No such variable or part, or a value that does not fit.
    pub fn write(&mut self, path: &str, text: &str) -> Result<(), ManagerError> {
        self.write_value(path, &value_of_text(text))
    }

    /// Sets a variable or a part of it.
    ///
    /// # Errors
    /// No such variable or part, or a value that does not fit.
    pub fn write_value(&mut self, path: &str, value: &Value) -> Result<(), ManagerError> {
        let place = self.place(path)?;
        for (index, bits) in place.values(value)? {
            let is_whole = bits.width() == place.whole.bits();
            let bits = if is_whole {
                bits
            } else {
                let old = self.device.read_variable(place.instance, &place.variable, index)?;
                old.insert(place.lo, &bits)
            };
            self.device.write_variable(place.instance, &place.variable, index, &bits)?;
        }
        Ok(())
    }

    /// Returns the variables that the host may access, as `instance.variable`.
    pub fn variables(&self) -> Vec<String> {
        let program = self.device.program();
        let of = |instance: &freeport_ir::Instance| {
            let visible = visible_objects(program, instance.element);
            visible.map(|it| format!("{}.{}", instance.name, it.name)).collect::<Vec<_>>()
        };
        program.graph.instances.iter().flat_map(of).collect()
    }

    /// Returns the values of all variables that the host may access and that have at most
    /// `most_elements`, as an object of instances, each an object of variables.
    ///
    /// # Errors
    /// The device refuses to read a variable.
    pub fn values(&self, most_elements: u64) -> Result<Value, ManagerError> {
        let program = self.device.program();
        let mut instances = Map::new();
        for instance in &program.graph.instances {
            let mut variables = Map::new();
            let visible = visible_objects(program, instance.element);
            for object in visible.filter(|object| object.depth <= most_elements) {
                let value = match self.read(&format!("{}.{}", instance.name, object.name)) {
                    // The values of the copies are listed under the copies' names.
                    Err(ManagerError::Device(DeviceError::CopiesDiffer { .. })) => continue,
                    value => value?,
                };
                variables.insert(object.name.clone(), value);
            }
            instances.insert(instance.name.clone(), variables.into());
        }
        Ok(instances.into())
    }

    /// Returns the counters with their names.
    pub fn statistics(&self) -> Statistics {
        let statistics = Statistics::new(self.device.program(), &self.device.counters());
        statistics.with_waits(self.device.waits())
    }

    /// Returns the instance of that name.
    ///
    /// # Errors
    /// There is no such instance.
    pub fn instance(&self, name: &str) -> Result<InstanceId, ManagerError> {
        let instances = &self.device.program().graph.instances;
        let at = instances.iter().position(|instance| instance.name == name);
        at.map(InstanceId::new).ok_or_else(|| ManagerError::Unknown {
            what: "instance",
            name: name.to_owned(),
            known: instances.iter().map(|instance| instance.name.clone()).collect(),
        })
    }

    pub(super) fn place(&self, path: &str) -> Result<Place, ManagerError> {
        let program = self.device.program();
        let (instance, rest) = self.split(path)?;
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, mut rest) = rest.split_at(end);
        let element = program.instance(instance).element;
        let found = visible_objects(program, element).find(|object| object.name == name);
        let object = found.ok_or_else(|| ManagerError::Unknown {
            what: "variable",
            name: path.to_owned(),
            known: visible_objects(program, element).map(|it| it.name.clone()).collect(),
        })?;
        let key = (program.element(element).name.clone(), name.to_owned());
        let layout = self.layouts.variables.get(&key).cloned();
        let layout = layout.unwrap_or(Layout::Unsigned(object.elem_bits));
        let mut place = Place {
            path: path.to_owned(),
            instance,
            variable: name.to_owned(),
            whole: layout.clone(),
            depth: object.depth,
            index: (object.depth == 1).then_some(0),
            lo: 0,
            layout,
        };
        if object.depth > 1 && rest.starts_with('[') {
            let (index, behind) = index_in(rest).ok_or_else(|| ManagerError::Path(path.into()))?;
            place.check(index, object.depth)?;
            place.index = Some(index);
            rest = behind;
        }
        while !rest.is_empty() {
            rest = place.descend(rest)?;
        }
        Ok(place)
    }

    /// Returns the instance at the beginning of a path, and the rest after the dot. The longest
    /// matching name is used.
    pub(super) fn split<'a>(&self, path: &'a str) -> Result<(InstanceId, &'a str), ManagerError> {
        let instances = self.device.program().graph.instances.iter().enumerate();
        let follows = |name: &str| path.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
        let matches =
            instances.filter_map(|(at, it)| Some((it.name.len(), at, follows(&it.name)?)));
        match matches.max_by_key(|(length, ..)| *length) {
            Some((_, at, rest)) => Ok((InstanceId::new(at), rest)),
            None => match path.rsplit_once('.') {
                Some((name, _)) => self.instance(name).map(|id| (id, "")),
                None => Err(ManagerError::Path(path.to_owned())),
            },
        }
    }
}

fn visible_objects(
    program: &Program,
    element: freeport_ir::ElementId,
) -> impl Iterator<Item = &Object> {
    program.element(element).state.iter().filter(|object| object.host_visible)
}

#[cfg(test)]
mod tests {
    use super::super::Initial;
    use super::*;
    use crate::interpreter::InterpreterDevice;
    use crate::layout::Member;
    use crate::programs::mac_swap;
    use freeport_ir::interp::Options;
    use serde_json::json;

    fn program() -> Program {
        let mut program = mac_swap();
        program.graph.instances[0].name = "group.swap".into();
        program
    }

    /// `marks` is shown as a struct of a byte and an array of two 4-bit numbers.
    fn layouts() -> Layouts {
        let nibbles =
            Layout::Array { element: Box::new(Layout::Unsigned(4)), stride_bits: 4, count: 2 };
        let member = |name: &str, lo, layout| Member { name: name.into(), lo, layout };
        let members = vec![member("low", 0, Layout::Signed(8)), member("nibbles", 8, nibbles)];
        let marks = (("MacSwap".into(), "marks".into()), Layout::Struct { bits: 16, members });
        Layouts { variables: [marks].into(), ..Layouts::default() }
    }

    fn with_manager(layouts: Layouts, check: impl FnOnce(Manager<InterpreterDevice<'_>>)) {
        let program = program();
        let device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        check(Manager::new(device, layouts));
    }

    #[test]
    fn variables_are_read_and_written_by_name() {
        with_manager(Layouts::default(), |mut manager| {
            assert_eq!(manager.variables(), ["group.swap.count", "group.swap.marks"]);
            manager.write("group.swap.count", "0xffff_ffff_ffff_ffff").expect("it fits");
            assert_eq!(manager.read("group.swap.count").expect("there"), json!(u64::MAX));
            manager.write("group.swap.marks[3]", "9").expect("it fits");
            manager.write("group.swap.marks", "[7]").expect("it fits");
            assert_eq!(manager.read("group.swap.marks").expect("there"), json!([7, 2, 0, 9]));
            assert_eq!(manager.read("group.swap.marks[1]").expect("there"), json!(2));
        });
    }

    #[test]
    fn initial_values_are_set_in_pieces_once_all_are_checked() {
        with_manager(Layouts::default(), |mut manager| {
            let initial = |last: &str| {
                let calls = json!([[1], [2], [last]]);
                let values = json!({"group.swap": {"count": 5, "marks": [7, 8], "add()": calls}});
                Initial::of_value(values).expect("it has that shape")
            };
            let mut wrong = initial("x");
            let error = loop {
                match manager.proceed_with(&mut wrong, || true) {
                    Ok(done) => assert!(done.is_none(), "it cannot be done"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains("\"x\" is not a number"), "{error}");
            assert_eq!(manager.read("group.swap.count").expect("there"), json!(0));
            let (mut good, mut steps) = (initial("3"), 0);
            let results = loop {
                steps += 1;
                if let Some(results) = manager.proceed_with(&mut good, || true).expect("it fits") {
                    break results;
                }
            };
            // Checks, writes of a variable and of two elements, calls, and the final step that
            // finds nothing left.
            assert_eq!(steps, 5 + 3 + 3 + 1);
            let values: Vec<_> = results.into_iter().map(|(_, value)| value).collect();
            assert_eq!(values, [5, 6, 8].map(|value| json!(value)));
        });
    }

    #[test]
    fn parts_of_a_variable_have_paths_and_keep_their_neighbours() {
        with_manager(layouts(), |mut manager| {
            manager.write("group.swap.marks[0]", r#"{"low": -1, "nibbles": [3]}"#).expect("fits");
            manager.write("group.swap.marks[0].nibbles[1]", "12").expect("it fits");
            manager.write("group.swap.marks[0].low", "-128").expect("it fits");
            let expected = json!({"low": -128, "nibbles": [3, 12]});
            assert_eq!(manager.read("group.swap.marks[0]").expect("there"), expected);
            let nibble = manager.read("group.swap.marks[0].nibbles[1]").expect("there");
            assert_eq!(nibble, json!(12));
        });
    }

    #[test]
    fn initial_values_are_written_all_or_none() {
        with_manager(Layouts::default(), |mut manager| {
            let good = r#"{"group.swap": {"count": "10.0.0.1", "marks": {"2": 5}}}"#;
            manager.set_initial(good).expect("everything fits");
            assert_eq!(manager.read("group.swap.count").expect("there"), json!(0x0a00_0001));
            assert_eq!(manager.read("group.swap.marks").expect("there"), json!([1, 2, 5, 0]));
            let bad = r#"{"group.swap": {"count": 1, "marks": [65536]}}"#;
            let error = manager.set_initial(bad).expect_err("too large").to_string();
            assert_eq!(error, "group.swap.marks: 65536 does not fit 16 bits");
            assert_eq!(manager.read("group.swap.count").expect("there"), json!(0x0a00_0001));
        });
    }

    #[test]
    fn initial_calls_come_after_initial_values_and_give_their_results() {
        with_manager(Layouts::default(), |mut manager| {
            let text = r#"{"group.swap": {"add()": [[1], ["0x10"]], "count": 5}}"#;
            let results = manager.set_initial(text).expect("everything fits");
            let path = || "group.swap.add".to_owned();
            assert_eq!(results, [(path(), json!(5)), (path(), json!(6))]);
            assert_eq!(manager.read("group.swap.count").expect("there"), json!(22));
            for bad in ["[[1], [2, 3]]", "[1]", "1", "[[-1]]"] {
                let text = format!(r#"{{"group.swap": {{"count": 0, "add()": {bad}}}}}"#);
                assert!(manager.set_initial(&text).is_err(), "{bad}");
            }
            assert_eq!(manager.read("group.swap.count").expect("there"), json!(22));
        });
    }

    #[test]
    fn values_are_those_of_every_variable_that_is_small_enough() {
        with_manager(Layouts::default(), |mut manager| {
            manager.write("group.swap.count", "5").expect("it fits");
            let all = json!({"group.swap": {"count": 5, "marks": [1, 2, 0, 0]}});
            assert_eq!(manager.values(4).expect("there"), all);
            assert_eq!(manager.values(3).expect("there"), json!({"group.swap": {"count": 5}}));
        });
    }

    #[test]
    fn mistakes_tell_what_there_is() {
        with_manager(layouts(), |mut manager| {
            let read = |path: &str| manager.read(path).expect_err("wrong").to_string();
            let unknown = "there is no variable group.swap.x; there are count, marks";
            assert_eq!(read("group.swap.x"), unknown);
            assert_eq!(read("swap.x"), "there is no instance swap; there are group.swap");
            let index = "group.swap.marks[4]: index 4, the array has 4 elements";
            assert_eq!(read("group.swap.marks[4]"), index);
            let member = "there is no member group.swap.marks[0].y; there are low, nibbles";
            assert_eq!(read("group.swap.marks[0].y"), member);
            for path in ["", "count", "group.swap.marks[", "group.swap.marks[-1]"] {
                assert!(read(path).contains("a variable is written"), "{path}");
            }
            for path in ["group.swap.count[0]", "group.swap.count.x", "group.swap.marks[0]]"] {
                assert!(read(path).contains("a variable is written"), "{path}");
            }
            for text in ["[]", "{\"group.swap\": 1}", "{", "{\"group.swap\": {\"marks\": 1}}"] {
                assert!(manager.set_initial(text).is_err(), "{text}");
            }
        });
    }

    #[test]
    fn signals_go_by_name_and_are_answered() {
        with_manager(Layouts::default(), |mut manager| {
            manager.signal("group.swap", 1, &[40]).expect("it takes signals");
            let answer = manager.signal("group.swap", 1, &[2, 7]).expect("it takes signals");
            assert_eq!((answer.command, answer.params[0], answer.params[1]), (1, 40, 7));
            assert_eq!(manager.read("group.swap.count").expect("there"), json!(42));
            assert!(manager.signal("other", 1, &[]).is_err());
            assert!(manager.signal("group.swap", 1, &[0; 8]).is_err());
        });
    }
}
