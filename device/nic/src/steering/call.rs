// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls of methods, also of those of tables, by name and with values as people write them:
//! `exact.insert({source: 10.0.0.1, source_port: 80}, 1, 5)`.
//!
//! An argument is a number in any form that [`Layout`] knows, an object `{member: value, ...}`, or
//! a list `[value, ...]`. Names and numbers need no quotes.

use super::manager::{Manager, ManagerError};
use super::tables::TableCall;
use crate::device::Device;
use crate::layout::Layout;
use crate::layouts::MethodLayout;
use freeport_ir::{Bits, InstanceId, Program, Type};
use serde_json::{Map, Value};
use std::str::FromStr;

/// A call as written.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// `instance.method`.
    pub path: String,
    /// In order.
    pub arguments: Vec<Value>,
}

/// Most objects and lists inside each other: it bounds the parser's stack.
const MOST_NESTED: usize = 32;

/// Why a text is no call.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason} at character {at}; a call is written instance.method(value, value)")]
pub struct CallError {
    reason: String,
    at: usize,
}

impl FromStr for Call {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Self, CallError> {
        let Some((path, rest)) = text.split_once('(') else {
            return Err(CallError { reason: "no ( was found".into(), at: text.len() });
        };
        let mut parser = Parser { text, at: text.len() - rest.len(), nested: 0 };
        let arguments = parser.list(')')?;
        parser.skip_space();
        match parser.rest().is_empty() && !path.trim().is_empty() {
            true => Ok(Self { path: path.trim().to_owned(), arguments }),
            false => Err(parser.error("something is behind the call, or no name before it")),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    nested: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, reason: &str) -> CallError {
        let at = self.text[..self.at].chars().count() + 1;
        CallError { reason: reason.to_owned(), at }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Whether `mark` comes next; it is then behind.
    fn passes(&mut self, mark: char) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len_utf8() } else { 0 };
        is_next
    }

    /// Values up to the closing mark.
    fn list(&mut self, end: char) -> Result<Vec<Value>, CallError> {
        let mut values = vec![];
        while !self.passes(end) {
            if !values.is_empty() && !self.passes(',') {
                return Err(self.error(&format!("expected , or {end}")));
            }
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn object(&mut self) -> Result<Value, CallError> {
        let mut members = Map::new();
        while !self.passes('}') {
            if !members.is_empty() && !self.passes(',') {
                return Err(self.error("expected , or }"));
            }
            let name = match self.word(":,{}[]()") {
                Some(name) if self.passes(':') => name,
                _ => return Err(self.error("expected `member: value`")),
            };
            let value = self.value()?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }

    fn value(&mut self) -> Result<Value, CallError> {
        self.nested += 1;
        if self.nested > MOST_NESTED {
            return Err(self.error("too many values inside each other"));
        }
        let value = if self.passes('{') {
            self.object()?
        } else if self.passes('[') {
            Value::Array(self.list(']')?)
        } else {
            // A colon belongs to the word: 02:00:00:00:00:01.
            Value::String(self.word(",{}[]()").ok_or_else(|| self.error("expected a value"))?)
        };
        self.nested -= 1;
        Ok(value)
    }

    /// A word in quotes, or up to one of `ends`.
    fn word(&mut self, ends: &str) -> Option<String> {
        if self.passes('"') {
            let (word, _) = self.rest().split_once('"')?;
            self.at += word.len() + 1;
            return Some(word.to_owned());
        }
        let rest = self.rest();
        let is_end = |mark: char| mark.is_whitespace() || ends.contains(mark);
        let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        self.at += word.len();
        (!word.is_empty()).then(|| word.to_owned())
    }
}

/// A call whose names and values have been checked.
pub(crate) struct Prepared {
    pub instance: InstanceId,
    pub method: String,
    pub arguments: Vec<Bits>,
    pub result: Option<Layout>,
    /// Of a table's method.
    pub table: Option<TableCall>,
}

impl<D: Device> Manager<D> {
    /// Calls a method between two firings; gives its result, null where it has none.
    ///
    /// # Errors
    /// No such instance or method, or values that do not fit its parameters.
    pub fn call(&mut self, call: &Call) -> Result<Value, ManagerError> {
        let prepared = self.prepare(call)?;
        self.call_prepared(&prepared)
    }

    /// As [`call`](Self::call), for what has to be done: an answer of no is an error.
    ///
    /// # Errors
    /// Those of `call`, and [`Refused`](ManagerError::Refused).
    pub fn call_that_succeeds(&mut self, call: &Call) -> Result<Value, ManagerError> {
        let result = self.call(call)?;
        match self.is_refusal(&call.path, &result) {
            true => Err(ManagerError::Refused { path: call.path.clone() }),
            false => Ok(result),
        }
    }

    /// Whether a method, or an update or deletion of a table, answers with yes or no, and that was
    /// no.
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

    /// The methods of all instances, as `instance.method(parameters)`.
    pub fn methods(&self) -> Vec<String> {
        let program = self.device().program();
        let of = |instance: &freeport_ir::Instance| {
            let methods = program.element(instance.element).methods.iter();
            let shown = |name: &str| self.shape(program, instance, name).signature(name);
            methods.map(|it| format!("{}.{}", instance.name, shown(&it.name))).collect::<Vec<_>>()
        };
        program.graph.instances.iter().flat_map(of).collect()
    }

    pub(crate) fn prepare(&self, call: &Call) -> Result<Prepared, ManagerError> {
        let program = self.device().program();
        let (id, method) = self.split(&call.path)?;
        let instance = program.instance(id);
        let methods = &program.element(instance.element).methods;
        if !methods.iter().any(|it| it.name == method) {
            if let Some(prepared) = self.prepare_table(id, method, call)? {
                return Ok(prepared);
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

    pub(crate) fn call_prepared(&mut self, call: &Prepared) -> Result<Value, ManagerError> {
        if let Some(table) = &call.table {
            return self.act_on_table(call, table);
        }
        let device = self.device_mut();
        let result = device.call_method(call.instance, &call.method, &call.arguments)?;
        Ok(match (&call.result, result) {
            (Some(layout), Some(bits)) => layout.show(&bits),
            _ => Value::Null,
        })
    }

    /// What a method takes and gives; numbers, where the front end does not say more.
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
    fn values_are_written_without_quotes() {
        let call: Call = "fw.exact.insert({a: 10.0.0.1, mac: 02:00:00:00:00:01}, [1, -2], x )"
            .parse()
            .expect("a call");
        assert_eq!(call.path, "fw.exact.insert");
        let key = json!({"a": "10.0.0.1", "mac": "02:00:00:00:00:01"});
        assert_eq!(call.arguments, [key, json!(["1", "-2"]), json!("x")]);
        let json: Call = r#"a.b({"x": "1", "y": [ ]},"7")"#.parse().expect("JSON is a call too");
        assert_eq!(json.arguments, [json!({"x": "1", "y": []}), json!("7")]);
        assert_eq!("a.b()".parse::<Call>().expect("a call").arguments, [] as [Value; 0]);
    }

    #[test]
    fn what_is_no_call_is_told_with_its_place() {
        for text in ["", "a.b", "(", "a.b(", "a.b(1", "a.b(1,)", "a.b(,1)", "a.b(1) x", "(1)"] {
            assert!(text.parse::<Call>().is_err(), "{text}");
        }
        for text in ["a({)", "a({x})", "a({x:})", "a({:1})", "a([1 2)", "a(\"x)", "a({a:1 b:2})"] {
            assert!(text.parse::<Call>().is_err(), "{text}");
        }
        let deep = format!("a({}", "[".repeat(1 << 20));
        assert!(deep.parse::<Call>().is_err());
        let error = "a.b(1, {x 2})".parse::<Call>().expect_err("wrong").to_string();
        assert!(error.starts_with("expected `member: value` at character 11;"), "{error}");
    }

    #[test]
    fn a_call_reaches_the_method_and_gives_its_result() {
        let program = mac_swap();
        let device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        let mut manager = Manager::new(device, Layouts::default());
        let mut call = |text: &str| manager.call(&text.parse().expect("a call"));
        assert_eq!(call("swap.add(5)").expect("it is there"), json!(0));
        assert_eq!(call("swap.add(0x10)").expect("it is there"), json!(5));
        let told = call("swap.sub(1)").expect_err("no such method").to_string();
        assert_eq!(told, "there is no method swap.sub; there are add");
        let told = call("swap.add()").expect_err("too few").to_string();
        assert_eq!(told, "swap.add: 0 arguments given, it is add(0)");
        let told = call("swap.add(x)").expect_err("no number").to_string();
        assert_eq!(told, "swap.add, 0: \"x\" is no number");
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
