// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actions on an instance between firings: its init function and host actions, applied immediately
//! and recorded, or in a replay when the record has them. Functions run here have no ports: none is
//! ready, and a put is dropped.

use super::{Error, Interpreter};
use crate::oracle::HostAction;
use crate::{Bits, FunctionId, InstanceId, TableId, Type};

impl Interpreter<'_> {
    /// Runs the element's init function, before anything else.
    pub(super) fn initialise(&mut self, id: InstanceId) -> Result<(), Error> {
        if let Some(init) = self.program.element_of(id).init {
            self.call_between_firings(id, init, vec![])?;
        }
        Ok(())
    }

    /// Performs and records an action of the host; returns the answer, if there is one.
    pub(super) fn act(
        &mut self,
        id: InstanceId,
        action: HostAction,
    ) -> Result<Option<Bits>, Error> {
        let answer = match &action {
            HostAction::Signal(signal) => {
                let function = self.program.element_of(id).signal;
                let function = function.ok_or_else(|| self.unknown(id, "signal handler"))?;
                self.call_between_firings(id, function, vec![signal.clone()])?
            }
            HostAction::Method(method, args) => {
                let method = self.program.element_of(id).methods.get(*method);
                let method = method.ok_or_else(|| self.unknown(id, "such method"))?;
                self.call_between_firings(id, method.function, args.clone())?
            }
            HostAction::Write { object, index, value } => {
                let instance = &mut self.instances[id.index()];
                let memory = instance.objects.get_mut(object.index());
                let width = memory.as_ref().and_then(|memory| memory.element(*index));
                match (memory, width) {
                    (Some(memory), Some(old)) if old.width() == value.width() => {
                        memory.store(*index, 0, value, None);
                    }
                    _ => return Err(self.unknown(id, "such element of a variable")),
                }
                None
            }
            HostAction::TableUpdate { table, key, value } => {
                self.check_table(id, *table, key, Some(value))?;
                let memory = &mut self.instances[id.index()].tables[table.index()];
                Some(Bits::from_bool(memory.update(key, value)))
            }
            HostAction::TableDelete { table, key } => {
                self.check_table(id, *table, key, None)?;
                let memory = &mut self.instances[id.index()].tables[table.index()];
                Some(Bits::from_bool(memory.delete(key)))
            }
        };
        self.instances[id.index()].note(action, answer.clone());
        Ok(answer)
    }

    /// Checks that the table exists and that keys and values fit it.
    pub(super) fn check_table(
        &self,
        id: InstanceId,
        table: TableId,
        key: &Bits,
        value: Option<&Bits>,
    ) -> Result<(), Error> {
        let tables = &self.program.element_of(id).tables;
        let table = tables.get(table.index()).ok_or_else(|| self.unknown(id, "such table"))?;
        let instance = &self.instances[id.index()].name;
        for (what, wanted, given) in [
            ("keys", table.key_bits, key.width()),
            ("values", table.value_bits, value.map_or(table.value_bits, Bits::width)),
        ] {
            if wanted != given {
                return Err(Error::Mismatch {
                    what: format!("{instance}.{}: {what}", table.name),
                    wanted: format!("{wanted} bits"),
                    given: format!("{given} bits"),
                });
            }
        }
        Ok(())
    }

    /// Runs a function that has no ports; returns its result, 0 if it trapped.
    fn call_between_firings(
        &mut self,
        id: InstanceId,
        function: FunctionId,
        args: Vec<Bits>,
    ) -> Result<Option<Bits>, Error> {
        let wanted = self.program.function(function);
        let widths = wanted.params().iter().map(|param| wanted.type_of(*param));
        let given = args.iter().map(|arg| Type::Bits(arg.width()));
        if !widths.clone().eq(given.clone()) {
            return Err(Error::Mismatch {
                what: format!("{}: {}", self.instances[id.index()].name, wanted.name),
                wanted: format!("{:?}", widths.collect::<Vec<_>>()),
                given: format!("{:?}", given.collect::<Vec<_>>()),
            });
        }
        self.call_alone(id, function, args).map_err(|stop| self.departure(id, stop))
    }

    pub(super) fn replay_host_events(&mut self, id: InstanceId) -> Result<bool, Error> {
        let mut acted = false;
        while let Some(event) = {
            let instance = &self.instances[id.index()];
            instance.choice.due_host_event(instance.counters.firings)
        } {
            self.act(id, event.action)?;
            acted = true;
        }
        Ok(acted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{
        Fixture, WORD, collected, done, feed, object, put, run_to_idle, start, take, word,
    };
    use super::super::{Interpreter, Options};
    use crate::*;

    /// An element with a sum: init sets it to 100, the handler adds its input and puts the sum, the
    /// signal returns it, the method `add` adds to it.
    fn summing() -> Program {
        let sum = ObjectRef::State(ObjectId(0));
        let add = move |b: &mut Builder, by: ValueId| {
            let zero = b.number(1, 0);
            let old = b.load(sum, zero, 0, 64);
            let new = b.binary(BinaryOp::Add, old, by);
            b.store(sum, zero, 0, new);
            new
        };
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[WORD], |b| {
            let by = take(b, 0, 64);
            let new = add(b, by);
            put(b, 0, new);
            done(b);
        });
        let init = fixture.function(Some(element), |b| {
            let hundred = b.number(64, 100);
            add(b, hundred);
            b.end(Term::Return { value: None });
        });
        let signal = fixture.function(Some(element), |b| {
            let signal = b.add_param(Function::ENTRY, Type::Bits(SIGNAL_BITS), None);
            b.function_mut().result = Some(Type::Bits(SIGNAL_BITS));
            let zero = b.number(1, 0);
            let part = b.load(sum, zero, 0, 64);
            let op = Op::Insert { value: signal, lo: SIGNAL_PARAM_BIT, part };
            let answer = b.push(op, Type::Bits(SIGNAL_BITS));
            b.end(Term::Return { value: Some(answer) });
        });
        let method = fixture.function(Some(element), |b| {
            let by = b.add_param(Function::ENTRY, Type::Bits(64), None);
            b.function_mut().result = Some(Type::Bits(64));
            let new = add(b, by);
            b.end(Term::Return { value: Some(new) });
        });
        let element_type = &mut fixture.program.elements[0];
        element_type.state.push(object("sum".into(), 64, 1));
        element_type.init = Some(init);
        element_type.signal = Some(signal);
        element_type.methods = vec![Method { name: "add".into(), function: method }];
        fixture.alone(element)
    }

    #[test]
    fn init_comes_first_and_the_host_acts_between_firings() {
        let program = summing();
        let mut interpreter = start(&program);
        let id = interpreter.instance("alone").unwrap();
        assert_eq!(interpreter.read_variable(id, "sum", 0), Ok(word(100)));
        feed(&mut interpreter, "to_in0", &[1]);
        run_to_idle(&mut interpreter);
        assert_eq!(interpreter.call_method(id, "add", vec![word(10)]), Ok(Some(word(111))));
        let answer = interpreter.signal(id, Bits::zero(SIGNAL_BITS)).unwrap();
        assert_eq!(answer.extract(SIGNAL_PARAM_BIT, 64), word(111));
        feed(&mut interpreter, "to_in0", &[1]);
        run_to_idle(&mut interpreter);
        assert_eq!(collected(&mut interpreter), [101, 112]);
        assert_eq!(interpreter.execution().answers[0], [word(111), answer]);
        // A replay does the same at the same points, even with all input present from the start.
        let options = Options::default();
        let mut replay = Interpreter::replay(&program, interpreter.oracles(), &options).unwrap();
        feed(&mut replay, "to_in0", &[1, 1]);
        run_to_idle(&mut replay);
        assert_eq!(replay.execution(), interpreter.execution());
        assert!(replay.signal(id, Bits::zero(SIGNAL_BITS)).is_err());
    }

    #[test]
    fn wrong_requests_of_the_host_are_refused() {
        let program = summing();
        let mut interpreter = start(&program);
        let id = InstanceId(0);
        let refused = [
            interpreter.call_method(id, "subtract", vec![]).is_err(),
            interpreter.call_method(id, "add", vec![Bits::zero(8)]).is_err(),
            interpreter.signal(id, Bits::zero(8)).is_err(),
            interpreter.read_variable(id, "sum", 1).is_err(),
            interpreter.write_variable(id, "sum", 0, Bits::zero(8)).is_err(),
            interpreter.write_variable(id, "product", 0, word(0)).is_err(),
            interpreter.feed_item(EndpointId(0), Bits::zero(8)).is_err(),
            interpreter.feed_item(EndpointId(1), word(0)).is_err(),
            interpreter.feed_packet(EndpointId(0), &[1]).is_err(),
            interpreter.take_packets(EndpointId(1)).is_err(),
            interpreter.take_items(EndpointId(0)).is_err(),
        ];
        assert_eq!(refused, [true; 11]);
        assert!(interpreter.oracles().instances[0].host.is_empty());
    }
}
