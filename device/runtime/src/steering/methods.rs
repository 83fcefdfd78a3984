// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Methods of a running program by name: names and values are checked first, and a checked call can
//! be executed later.

use super::call::Call;
use super::error::ManagerError;
use super::manager::Manager;
use super::tables::TableCall;
use crate::device::Device;
use crate::layout::Layout;
use crate::layouts::MethodLayout;
use freeport_ir::{Bits, InstanceId, Program, Type};
use serde_json::Value;

/// A call whose names and values have been checked.
pub(super) struct Prepared {
    pub instance: InstanceId,
    pub method: String,
    pub arguments: Vec<Bits>,
    pub result: Option<Layout>,
    /// The call of a table's method, if it is one.
    pub table: Option<TableCall>,
}

impl<D: Device> Manager<D> {
    /// Calls a method between two firings and returns its result, or null if it has none.
    ///
    /// # Errors
    /// No such instance or method, or values that do not fit its parameters.
    pub fn call(&mut self, call: &Call) -> Result<Value, ManagerError> {
        let prepared = self.prepare(call)?;
        self.call_prepared(&prepared)
    }

    /// Like [`call`](Self::call), for a call that has to succeed: the answer "no" is an error.
    ///
    /// # Errors
    /// The errors of `call`, and [`Refused`](ManagerError::Refused).
    pub fn call_that_succeeds(&mut self, call: &Call) -> Result<Value, ManagerError> {
        let result = self.call(call)?;
        match self.is_refusal(&call.path, &result) {
            true => Err(ManagerError::Refused { path: call.path.clone() }),
            false => Ok(result),
        }
    }

    /// Returns whether the result is the answer "no" of a method, or of an update or deletion of a
    /// table, that answers yes or no.
    pub fn is_refusal(&self, path: &str, result: &Value) -> bool {
        let program = self.device().program();
        let Ok((id, method)) = self.split(path) else { return false };
        let methods = &program.element_of(id).methods;
        let is_bool = match methods.iter().find(|it| it.name == method) {
            Some(it) => program.function(it.function).result.and_then(Type::bits) == Some(1),
            None => method.ends_with(".update") || method.ends_with(".delete"),
        };
        is_bool && (result.as_u64() == Some(0) || result.as_bool() == Some(false))
    }

    /// Returns the methods of all instances, as `instance.method(parameters)`.
    pub fn methods(&self) -> Vec<String> {
        let program = self.device().program();
        let of = |instance: &freeport_ir::Instance| {
            let methods = program.element(instance.element).methods.iter();
            let shown = |name: &str| self.shape(program, instance, name).signature(name);
            methods.map(|it| format!("{}.{}", instance.name, shown(&it.name))).collect::<Vec<_>>()
        };
        program.graph.instances.iter().flat_map(of).collect()
    }

    pub(super) fn prepare(&self, call: &Call) -> Result<Prepared, ManagerError> {
        let program = self.device().program();
        let (id, method) = self.split(&call.path)?;
        let instance = program.instance(id);
        let methods = &program.element(instance.element).methods;
        if !methods.iter().any(|it| it.name == method) {
            if let Some((table, arguments)) = self.prepare_table(id, method, call)? {
                let (method, table) = (method.to_owned(), Some(table));
                return Ok(Prepared { instance: id, method, arguments, result: None, table });
            }
            let known = methods.iter().map(|it| it.name.clone()).collect();
            return Err(ManagerError::Unknown { what: "method", name: call.path.clone(), known });
        }
        let shape = self.shape(program, instance, method);
        if shape.parameters.len() != call.arguments.len() {
            return Err(ManagerError::Arguments {
                path: call.path.clone(),
                given: call.arguments.len(),
                signature: shape.signature(method),
            });
        }
        let mut arguments = vec![];
        for ((name, layout), value) in shape.parameters.iter().zip(&call.arguments) {
            let path = format!("{}, {name}", call.path);
            let bits = layout.parse(value);
            arguments.push(bits.map_err(|source| ManagerError::Value { path, source })?);
        }
        let (method, result) = (method.to_owned(), shape.result);
        Ok(Prepared { instance: id, method, arguments, result, table: None })
    }

    pub(super) fn call_prepared(&mut self, call: &Prepared) -> Result<Value, ManagerError> {
        if let Some(table) = &call.table {
            return self.act_on_table(call.instance, table, &call.arguments);
        }
        let device = self.device_mut();
        let result = device.call_method(call.instance, &call.method, &call.arguments)?;
        Ok(match (&call.result, result) {
            (Some(layout), Some(bits)) => layout.show(&bits),
            _ => Value::Null,
        })
    }

    /// Returns the layouts of a method's parameters and result; numbers if the front end provides
    /// none.
    fn shape(
        &self,
        program: &Program,
        instance: &freeport_ir::Instance,
        method: &str,
    ) -> MethodLayout {
        let element = program.element(instance.element);
        let key = (element.name.clone(), method.to_owned());
        if let Some(known) = self.layouts().methods.get(&key) {
            return known.clone();
        }
        let Some(found) = element.methods.iter().find(|it| it.name == method) else {
            return MethodLayout::default();
        };
        let function = program.function(found.function);
        let number = |ty: Type| Layout::Unsigned(ty.bits().unwrap_or(1));
        let parameter = |(at, value): (usize, &freeport_ir::ValueId)| {
            let name = function.values[value.index()].name.clone();
            (name.unwrap_or_else(|| format!("{at}")), number(function.type_of(*value)))
        };
        MethodLayout {
            parameters: function.params().iter().enumerate().map(parameter).collect(),
            result: function.result.map(number),
        }
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
    use serde_json::json;

    #[test]
    fn a_call_reaches_the_method_and_gives_its_result() {
        let program = mac_swap();
        let device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        let mut manager = Manager::new(device, Layouts::default());
        let mut call = |text: &str| manager.call(&text.parse().expect("a call"));
        assert_eq!(call("swap.add(5)").expect("it is there"), json!(0));
        assert_eq!(call("swap.add(0x10)").expect("it is there"), json!(5));
        let reported = call("swap.sub(1)").expect_err("no such method").to_string();
        assert_eq!(reported, "there is no method swap.sub; there are add");
        let reported = call("swap.add()").expect_err("too few").to_string();
        assert_eq!(reported, "swap.add: 0 arguments given; the signature is add(0)");
        let reported = call("swap.add(x)").expect_err("no number").to_string();
        assert_eq!(reported, "swap.add, 0: \"x\" is not a number");
        assert_eq!(manager.methods(), ["swap.add(0)"]);
    }

    #[test]
    fn arguments_and_results_have_the_shapes_that_the_front_end_knows() {
        let program = mac_swap();
        let device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        let member = |name: &str, lo| Member { name: name.into(), lo, layout: Layout::Signed(32) };
        let pair = Layout::Struct { bits: 64, members: vec![member("low", 0), member("high", 32)] };
        let shape =
            MethodLayout { parameters: vec![("by".into(), pair.clone())], result: Some(pair) };
        let methods = [(("MacSwap".into(), "add".into()), shape)].into();
        let mut manager = Manager::new(device, Layouts { methods, ..Layouts::default() });
        let mut call = |text: &str| manager.call(&text.parse().expect("a call"));
        call("swap.add({high: -1})").expect("it is there");
        let result = call("swap.add({low: 1})").expect("it is there");
        assert_eq!(result, json!({"low": 0, "high": -1}));
        assert_eq!(manager.methods(), ["swap.add(by)"]);
    }
}
