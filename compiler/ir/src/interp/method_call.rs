// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that run between firings, called by the host or by an instance that calls methods of
//! others.
//!
//! A call between two instances is recorded twice: as a host event of the callee, as if the host
//! had made it, and as a choice of the caller, for its result. So a replay needs no order between
//! the two: the callee applies the call before the same firing, and the caller takes the result
//! from its record.

use super::Interpreter;
use super::firing::merge;
use super::frame::{Datum, End, Stop};
use super::instance::InstanceState;
use super::machine::Machine;
use crate::oracle::{HostAction, HostEvent, MethodCall};
use crate::{Bits, FunctionId, InstanceId, MethodId, Type};

impl Interpreter<'_> {
    /// Runs a function of an instance without ports, with arguments that fit its parameters;
    /// returns its result, 0 if it trapped.
    pub(super) fn call_alone(
        &mut self,
        id: InstanceId,
        function: FunctionId,
        args: Vec<Bits>,
    ) -> Result<Option<Bits>, Stop> {
        let mut instance = std::mem::take(&mut self.instances[id.index()]);
        let activation = self.shared.activation();
        let mut machine = Machine {
            program: &self.program,
            loops: &self.loops,
            id,
            instance: &mut instance,
            others: &mut self.instances,
            channels: &mut self.channels,
            shared: &mut self.shared,
            activation,
        };
        let outcome = machine.call_alone(function, args);
        self.instances[id.index()] = instance;
        outcome
    }
}

impl InstanceState {
    /// Records an action between firings and its answer.
    pub fn note(&mut self, action: HostAction, answer: Option<Bits>) {
        let before_firing = self.counters.firings;
        self.choice.made.host.push(HostEvent { before_firing, action });
        self.answers.extend(answer);
        self.quiet_ready = None;
    }
}

impl Machine<'_> {
    fn call_alone(&mut self, id: FunctionId, args: Vec<Bits>) -> Result<Option<Bits>, Stop> {
        let packets = self.instance.packets.len();
        let value = match self.invoke(id, args.into_iter().map(Datum::Bits)) {
            Ok(End::Return { value: Some(Datum::Bits(bits)) }) => Some(bits),
            Ok(_) => None,
            Err(Stop::Trap(code)) => {
                *self.activation.counters.traps.entry(code).or_default() += 1;
                None
            }
            Err(stop) => return Err(stop),
        };
        self.instance.packets.truncate(packets);
        merge(&mut self.instance.counters, std::mem::take(&mut self.activation.counters));
        let width = self.program.function(id).result.and_then(Type::bits);
        Ok(width.map(|width| value.unwrap_or_else(|| Bits::zero(width))))
    }

    /// Calls a method of another instance.
    pub fn call_method(
        &mut self,
        instance: InstanceId,
        method: MethodId,
        args: Vec<Bits>,
    ) -> Result<Option<Bits>, Stop> {
        let result = match self.instance.choice.recorded_call() {
            Some(recorded) => {
                let recorded = recorded?;
                let is_same = (recorded.instance, recorded.method) == (instance, method);
                if !is_same || recorded.args != args {
                    let name = &self.program.instance(instance).name;
                    let at = method.index();
                    let reason = format!("it calls method {at} of {name} with {args:?}");
                    return Err(Stop::Departed(format!("{reason}, not {recorded:?}")));
                }
                recorded.result.clone()
            }
            None => self.call_other(instance, method, args.clone())?,
        };
        let call = MethodCall { instance, method, args, result: result.clone() };
        self.instance.choice.made.calls.push(call);
        Ok(result)
    }

    fn call_other(
        &mut self,
        id: InstanceId,
        method: MethodId,
        args: Vec<Bits>,
    ) -> Result<Option<Bits>, Stop> {
        let function = self.program.element_of(id).methods[method.index()].function;
        let mut instance = std::mem::take(&mut self.others[id.index()]);
        let activation = self.shared.activation();
        let mut machine = Machine {
            program: self.program,
            loops: self.loops,
            id,
            instance: &mut instance,
            others: &mut *self.others,
            channels: &mut *self.channels,
            shared: &mut *self.shared,
            activation,
        };
        let outcome = machine.call_alone(function, args.clone());
        if let Ok(answer) = &outcome {
            instance.note(HostAction::Method(method.index(), args), answer.clone());
        }
        self.others[id.index()] = instance;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{run_to_idle, start, word};
    use super::super::{Interpreter, Options};
    use crate::oracle::HostAction;
    use crate::*;

    /// Two elements that add to what they take, and a manager that sets the amount: `set` returns
    /// the previous amounts of both, and keeps them in the manager's `last`.
    const MANAGED: &str = r#"
element Add {
  in in: bits<64>
  out out: bits<64>
  reg by: bits<64>[1] visible
  handler {
    entry:
      %zero = const 0:1
      %word = take in
      %by = load by[%zero]
      %sum = add %word, %by
      put out, %sum
      done
  }
  method set(%to: bits<64>) -> bits<64> {
    entry:
      %zero = const 0:1
      %old = load by[%zero]
      store by[%zero], %to
      %nine = const 9:64
      %is_nine = eq %to, %nine
      br %is_nine, bad, good
    bad:
      trap user 3
    good:
      ret %old
  }
}
element Manager {
  reg last: bits<64>[1] visible
  init {
    entry:
      %five = const 5:64
      %old = call_method first.set(%five)
      ret
  }
  handler {
    entry:
      done
  }
  method set(%to: bits<64>) -> bits<64> {
    entry:
      %zero = const 0:1
      %first = call_method first.set(%to)
      %second = call_method second.set(%to)
      %sum = add %first, %second
      store last[%zero], %sum
      ret %sum
  }
}
graph {
  instance first: Add
  instance second: Add
  instance manager: Manager host
  endpoint from: into bits<64>
  endpoint to: out_of bits<64>
  from -> first.in
  first.out -> second.in
  second.out -> to
}"#;

    fn managed() -> Program {
        let program = text::parse(MANAGED).unwrap_or_else(|error| panic!("{error}"));
        verify(&program).unwrap_or_else(|errors| panic!("{errors:?}"));
        program
    }

    fn pass(interpreter: &mut Interpreter<'_>, values: &[u64]) -> Vec<u64> {
        let ends = ["from", "to"].map(|name| interpreter.endpoint(name).unwrap());
        for value in values {
            interpreter.feed_item(ends[0], word(*value)).unwrap();
        }
        run_to_idle(interpreter);
        interpreter.take_items(ends[1]).unwrap().iter().map(Bits::to_u64).collect()
    }

    /// Runs the program; the manager acts between items.
    fn run(program: &Program) -> Interpreter<'_> {
        let mut interpreter = start(program);
        let manager = interpreter.instance("manager").unwrap();
        let set = |it: &mut Interpreter<'_>, to| it.call_method(manager, "set", vec![word(to)]);
        assert_eq!(pass(&mut interpreter, &[1, 2]), [6, 7]);
        assert_eq!(set(&mut interpreter, 20), Ok(Some(word(5))));
        assert_eq!(pass(&mut interpreter, &[1]), [41]);
        assert_eq!(set(&mut interpreter, 300), Ok(Some(word(40))));
        assert_eq!(set(&mut interpreter, 1), Ok(Some(word(600))));
        assert_eq!(pass(&mut interpreter, &[1, 1, 1]), [3, 3, 3]);
        assert_eq!(interpreter.read_variable(manager, "last", 0), Ok(word(600)));
        interpreter
    }

    #[test]
    fn a_manager_changes_other_instances_between_firings() {
        let program = managed();
        let oracles = run(&program).oracles();
        let of_first: Vec<u64> =
            oracles.instances[0].host.iter().map(|it| it.before_firing).collect();
        assert_eq!(of_first, [0, 2, 3, 3]);
        assert_eq!(oracles.instances[0].host[1].action, HostAction::Method(0, vec![word(20)]));
        assert_eq!(oracles.instances[1].host.len(), 3);
        let calls = &oracles.instances[2].calls;
        let results: Vec<u64> =
            calls.iter().filter_map(|it| Some(it.result.as_ref()?.to_u64())).collect();
        assert_eq!(results, [0, 5, 0, 20, 20, 300, 300]);
    }

    #[test]
    fn a_replay_calls_at_the_firings_of_those_that_were_called() {
        let program = managed();
        let made = run(&program);
        let options = Options::default();
        let mut replay = Interpreter::replay(&program, made.oracles(), &options).unwrap();
        // All input is present from the start, and the manager has nothing to wait for.
        assert_eq!(pass(&mut replay, &[1, 2, 1, 1, 1, 1]), [6, 7, 41, 3, 3, 3]);
        assert_eq!(replay.execution(), made.execution());
        assert_eq!(replay.oracles(), made.oracles());
    }

    #[test]
    fn a_replay_that_calls_anything_else_says_so() {
        let program = managed();
        let oracles = run(&program).oracles();
        for change in [0, 1, 2] {
            let mut oracles = oracles.clone();
            let calls = &mut oracles.instances[2].calls;
            match change {
                0 => calls[3].args[0] = word(301),
                1 => calls[3].instance = InstanceId(1),
                _ => calls.truncate(3),
            }
            let replay = Interpreter::replay(&program, oracles, &Options::default());
            let failed = match replay {
                Ok(mut replay) => replay.run(100).err(),
                Err(error) => Some(error),
            };
            let text = failed.expect("the record is another's").to_string();
            assert!(text.contains("manager"), "{text}");
        }
    }

    #[test]
    fn a_trap_of_the_method_ends_only_the_method() {
        let program = managed();
        let mut interpreter = start(&program);
        let manager = interpreter.instance("manager").unwrap();
        assert_eq!(interpreter.call_method(manager, "set", vec![word(9)]), Ok(Some(word(0))));
        for at in [0, 1] {
            let traps = &interpreter.counters(InstanceId(at)).traps;
            assert_eq!(traps.get(&TrapCode::User(3)), Some(&1));
        }
        assert!(interpreter.counters(manager).traps.is_empty());
        assert_eq!(pass(&mut interpreter, &[1]), [19]);
    }
}
