// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs golden cases. The element runs in a [`Machine`], so that a case means the same in the
//! interpreter and in native code.

use super::{Action, Case, Variable, is_mixture, record};
use freeport_ir::interp::{Interpreter, Options, Outcome, Schedule};
use freeport_ir::{Bits, Direction, EndpointId, InstanceId, Item, Program, SIGNAL_WORDS};
use freeport_runtime::signal::Signal;

/// Name of the instance under test.
pub const INSTANCE: &str = "dut";

const INTO: [&str; 4] = ["from_tor", "from_nic", "from_host", "from_memory"];
const OUT_OF: [&str; 4] = ["to_tor", "to_nic", "to_host", "to_memory"];
/// Number of firings after which an element is assumed to run forever.
const FIRING_LIMIT: u64 = 10_000_000;

/// Manager of a group under test, which has the methods and variables named without an instance.
const MANAGER: &str = "manager";

/// Resolves the name of a method or variable in a case: a plain name belongs to the element under
/// test, or in a group to its manager; `inner.name` belongs to an instance inside the group. `find`
/// looks an instance up.
///
/// # Errors
/// There is no such instance.
pub fn place<T>(name: &str, find: impl Fn(&str) -> Option<T>) -> Result<(T, &str), String> {
    if let Some(element) = find(INSTANCE) {
        return Ok((element, name));
    }
    let (inner, rest) = name.rsplit_once('.').unwrap_or((MANAGER, name));
    let found = find(&format!("{INSTANCE}.{inner}"));
    Ok((found.ok_or(format!("there is no {inner} in it"))?, rest))
}

/// A runner for a program with one instance, or one group, [`INSTANCE`].
pub trait Machine {
    /// Queues a packet (or a record, as little-endian bytes) at an endpoint into the program.
    ///
    /// # Errors
    /// There is no such endpoint.
    fn feed(&mut self, endpoint: &str, packet: &[u8]) -> Result<(), String>;

    /// Runs until nothing moves.
    ///
    /// # Errors
    /// The program runs forever, or stalls although packets wait.
    fn settle(&mut self) -> Result<(), String>;

    /// Returns the packets that have left an endpoint since the last call.
    ///
    /// # Errors
    /// There is no such endpoint.
    fn take(&mut self, endpoint: &str) -> Result<Vec<Vec<u8>>, String>;

    /// Returns the value of a state variable.
    ///
    /// # Errors
    /// There is no such variable.
    fn read(&mut self, variable: &Variable) -> Result<u64, String>;

    /// Writes a state variable.
    ///
    /// # Errors
    /// There is no such variable.
    fn write(&mut self, variable: &Variable, value: u64) -> Result<(), String>;

    /// Sends a signal of these words; returns the words of its answer.
    ///
    /// # Errors
    /// The element handles no signals.
    fn signal(&mut self, words: &[u64]) -> Result<[u64; SIGNAL_WORDS], String>;

    /// Calls a method with arguments given as bytes in memory; returns its result, if it has one.
    ///
    /// # Errors
    /// There is no such method, or the arguments do not fit its parameters.
    fn call(&mut self, method: &str, arguments: &[Vec<u8>]) -> Result<Option<Bits>, String>;
}

/// Converts the arguments of a call to the widths of the parameters.
///
/// # Errors
/// The number of arguments is wrong, or one does not fit.
pub fn arguments(given: &[Vec<u8>], widths: &[u32]) -> Result<Vec<Bits>, String> {
    if given.len() != widths.len() {
        return Err(format!("it takes {} arguments, not {}", widths.len(), given.len()));
    }
    given.iter().zip(widths).map(|(bytes, width)| record::bits(bytes, *width)).collect()
}

/// Ports that a case names, in the order in which they are connected to endpoints.
struct Ports<'c> {
    inputs: Vec<&'c str>,
    outputs: Vec<&'c str>,
}

impl<'c> Ports<'c> {
    fn of(case: &'c Case) -> Self {
        let (mut inputs, mut outputs): (Vec<&str>, Vec<&str>) = (vec![], vec![]);
        for step in &case.steps {
            match &step.action {
                Action::In { port, .. } if !inputs.contains(&port.as_str()) => inputs.push(port),
                Action::Out { port, .. } if !outputs.contains(&port.as_str()) => outputs.push(port),
                _ => {}
            }
        }
        Self { inputs, outputs }
    }

    fn endpoint_of(
        ports: &[&str],
        endpoints: &[&'static str],
        port: &str,
    ) -> Result<&'static str, String> {
        let at = ports.iter().position(|name| *name == port).unwrap_or(endpoints.len());
        endpoints
            .get(at)
            .copied()
            .ok_or("an element under test has at most four ports a side".into())
    }
}

/// Returns the configuration that connects the element of a case to endpoints.
///
/// # Errors
/// The element has more ports than there are endpoints.
pub fn configuration(case: &Case) -> Result<String, String> {
    let ports = Ports::of(case);
    let takes_signals = case.steps.iter().any(|it| matches!(it.action, Action::Signal { .. }));
    let mark = if takes_signals { " @" } else { "" };
    let mut text = format!("{} :: {INSTANCE}{mark}\n", case.element);
    for port in &ports.inputs {
        let endpoint = Ports::endpoint_of(&ports.inputs, &INTO, port)?;
        text += &format!("{endpoint} -> [{port}] {INSTANCE}\n");
    }
    for port in &ports.outputs {
        let endpoint = Ports::endpoint_of(&ports.outputs, &OUT_OF, port)?;
        text += &format!("{INSTANCE} [{port}] -> {endpoint}\n");
    }
    Ok(text)
}

/// Runs a case.
///
/// # Errors
/// The first step that fails, with its line.
pub fn run_case(case: &Case, machine: &mut dyn Machine) -> Result<(), String> {
    let ports = Ports::of(case);
    for step in &case.steps {
        let done = run_step(&ports, &step.action, machine);
        done.map_err(|message| format!("line {} ({}): {message}", step.line, case.title))?;
    }
    machine.settle().map_err(|message| format!("line {}: {message}", case.line))?;
    for port in &ports.outputs {
        let left = machine.take(Ports::endpoint_of(&ports.outputs, &OUT_OF, port)?)?;
        if !left.is_empty() {
            let shown = show(&left);
            return Err(format!("line {} ({}): also out {port} = {shown}", case.line, case.title));
        }
    }
    Ok(())
}

fn run_step(ports: &Ports<'_>, action: &Action, machine: &mut dyn Machine) -> Result<(), String> {
    if let Action::In { port, packets } = action {
        let endpoint = Ports::endpoint_of(&ports.inputs, &INTO, port)?;
        return packets.iter().try_for_each(|packet| machine.feed(endpoint, packet));
    }
    machine.settle()?;
    match action {
        Action::In { .. } => {}
        Action::Out { port, groups } => {
            let seen = machine.take(Ports::endpoint_of(&ports.outputs, &OUT_OF, port)?)?;
            if !is_mixture(&seen, groups) {
                let wanted: Vec<String> = groups.iter().map(|group| show(group)).collect();
                let (wanted, seen) = (wanted.join(" | "), show(&seen));
                return Err(format!("out {port}\n  expected {wanted}\n  but got  {seen}"));
            }
        }
        Action::Set(variable, value) => machine.write(variable, *value)?,
        Action::Expect(variable, wanted) => {
            let seen = machine.read(variable)?;
            if seen != *wanted {
                return Err(format!("expected {wanted}, but it is {seen}"));
            }
        }
        Action::Signal { parameters, answer } => {
            let mut wanted = [0; SIGNAL_WORDS];
            wanted[..answer.len()].copy_from_slice(answer);
            let seen = machine.signal(parameters)?;
            if seen != wanted {
                return Err(format!("the answer is {seen:?} instead of {wanted:?}"));
            }
        }
        Action::Call { method, arguments, result } => {
            let seen = machine.call(method, arguments)?;
            let width = seen.as_ref().map_or(64, Bits::width);
            let wanted = result.as_ref().map(|bytes| record::bits(bytes, width)).transpose()?;
            if seen != wanted {
                let show =
                    |bits: &Option<Bits>| bits.as_ref().map_or("none".into(), Bits::to_string);
                let (wanted, seen) = (show(&wanted), show(&seen));
                return Err(format!("{method} returns {seen} instead of {wanted}"));
            }
        }
    }
    Ok(())
}

/// Formats packets as their lengths and first bytes.
fn show(packets: &[Vec<u8>]) -> String {
    let one = |packet: &Vec<u8>| {
        let start: String = packet.iter().take(48).map(|byte| format!("{byte:02x}")).collect();
        format!("[{} bytes: {start}{}]", packet.len(), if packet.len() > 48 { ".." } else { "" })
    };
    match packets {
        [] => "nothing".into(),
        _ => packets.iter().map(one).collect::<Vec<_>>().join(" "),
    }
}

/// The reference interpreter as a machine, with arrivals and stalls drawn from a seed.
pub struct Reference<'p> {
    interpreter: Interpreter<'p>,
    program: &'p Program,
}

impl<'p> Reference<'p> {
    /// Starts a program. Seed 0 runs round-robin without stalls; any other stalls inputs and
    /// outputs at random.
    ///
    /// # Errors
    /// The program cannot run.
    pub fn new(program: &'p Program, seed: u64) -> Result<Self, String> {
        let schedule = if seed == 0 { Schedule::RoundRobin } else { Schedule::Random { seed } };
        let options = Options { schedule, random_seed: seed, ..Options::default() };
        let mut interpreter = Interpreter::new(program, &options).map_err(|it| it.to_string())?;
        for (at, endpoint) in program.graph.endpoints.iter().enumerate() {
            if seed != 0 && endpoint.direction == Direction::OutOf {
                let percent = (seed * 29 % 90) as u8;
                let stalled = interpreter.stall_output(EndpointId::new(at), percent, seed);
                stalled.map_err(|it| it.to_string())?;
            }
        }
        Ok(Self { interpreter, program })
    }

    /// Returns how often instances have accessed memory out of range, such as beyond a packet.
    pub fn out_of_range(&self) -> u64 {
        let instances = (0..self.program.graph.instances.len()).map(InstanceId::new);
        instances.map(|it| self.interpreter.counters(it).out_of_range).sum()
    }

    fn endpoint(&self, name: &str) -> Result<(EndpointId, Item), String> {
        let id = self.interpreter.endpoint(name).ok_or(format!("there is no {name}"))?;
        Ok((id, self.program.graph.endpoints[id.index()].item))
    }

    fn place<'n>(&self, name: &'n str) -> Result<(InstanceId, &'n str), String> {
        place(name, |instance| self.interpreter.instance(instance))
    }

    fn width_of(&self, instance: InstanceId, variable: &str) -> Result<u32, String> {
        let element = self.program.element_of(instance);
        let object = element.state.iter().find(|object| object.name == variable);
        Ok(object.ok_or(format!("there is no variable {variable}"))?.elem_bits)
    }
}

impl Machine for Reference<'_> {
    fn feed(&mut self, endpoint: &str, packet: &[u8]) -> Result<(), String> {
        let (id, item) = self.endpoint(endpoint)?;
        let fed = match item {
            Item::Bits(width) => self.interpreter.feed_item(id, Bits::from_le_bytes(width, packet)),
            _ => self.interpreter.feed_packet(id, packet),
        };
        fed.map_err(|error| error.to_string())
    }

    fn settle(&mut self) -> Result<(), String> {
        match self.interpreter.run(FIRING_LIMIT).map_err(|error| error.to_string())? {
            Outcome::Idle => Ok(()),
            other => Err(format!("it does not come to rest: {other:?}")),
        }
    }

    fn take(&mut self, endpoint: &str) -> Result<Vec<Vec<u8>>, String> {
        let (id, item) = self.endpoint(endpoint)?;
        let taken = match item {
            Item::Bits(_) => self
                .interpreter
                .take_items(id)
                .map(|items| items.iter().map(Bits::to_le_bytes).collect()),
            _ => self.interpreter.take_packets(id),
        };
        taken.map_err(|error| error.to_string())
    }

    fn read(&mut self, variable: &Variable) -> Result<u64, String> {
        let (instance, name) = self.place(&variable.name)?;
        let value = self
            .interpreter
            .read_variable(instance, name, variable.index)
            .map_err(|error| error.to_string())?;
        value.checked_u64().ok_or("it is above 64 bits".into())
    }

    fn write(&mut self, variable: &Variable, value: u64) -> Result<(), String> {
        let (instance, name) = self.place(&variable.name)?;
        let value = Bits::from_u64(self.width_of(instance, name)?, value);
        let written = self.interpreter.write_variable(instance, name, variable.index, value);
        written.map_err(|error| error.to_string())
    }

    fn signal(&mut self, words: &[u64]) -> Result<[u64; SIGNAL_WORDS], String> {
        let mut signal = Signal::default();
        signal.params[..words.len()].copy_from_slice(words);
        let instance = self.interpreter.instance(INSTANCE).ok_or("a group takes no signals")?;
        let answer = self.interpreter.signal(instance, signal.to_bits());
        Ok(Signal::from_bits(&answer.map_err(|error| error.to_string())?).params)
    }

    fn call(&mut self, method: &str, given: &[Vec<u8>]) -> Result<Option<Bits>, String> {
        let (instance, method) = self.place(method)?;
        let element = self.program.element_of(instance);
        let found = element.methods.iter().find(|it| it.name == method);
        let found = found.ok_or(format!("there is no method {method}"))?;
        let function = self.program.function(found.function);
        let widths = function.params().iter().map(|it| function.width_of(*it));
        let arguments = arguments(given, &widths.collect::<Vec<_>>())?;
        let result = self.interpreter.call_method(instance, method, arguments);
        result.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Golden;
    use std::collections::BTreeMap;

    /// Passes everything except every third packet; counts.
    #[derive(Default)]
    struct Sieve {
        fed: Vec<Vec<u8>>,
        out: Vec<Vec<u8>>,
        variables: BTreeMap<(String, u64), u64>,
    }

    impl Machine for Sieve {
        fn feed(&mut self, endpoint: &str, packet: &[u8]) -> Result<(), String> {
            assert_eq!(endpoint, "from_tor");
            self.fed.push(packet.to_vec());
            Ok(())
        }

        fn settle(&mut self) -> Result<(), String> {
            for packet in self.fed.drain(..) {
                let count = self.variables.entry(("count".into(), 0)).or_default();
                *count += 1;
                if !count.is_multiple_of(3) {
                    self.out.push(packet);
                }
            }
            Ok(())
        }

        fn take(&mut self, endpoint: &str) -> Result<Vec<Vec<u8>>, String> {
            assert_eq!(endpoint, "to_tor");
            Ok(std::mem::take(&mut self.out))
        }

        fn read(&mut self, variable: &Variable) -> Result<u64, String> {
            let key = (variable.name.clone(), variable.index);
            self.variables.get(&key).copied().ok_or("there is none".into())
        }

        fn write(&mut self, variable: &Variable, value: u64) -> Result<(), String> {
            self.variables.insert((variable.name.clone(), variable.index), value);
            Ok(())
        }

        fn signal(&mut self, words: &[u64]) -> Result<[u64; SIGNAL_WORDS], String> {
            Ok([words.iter().sum(), 0, 0, 0, 0, 0, 0])
        }

        fn call(&mut self, method: &str, given: &[Vec<u8>]) -> Result<Option<Bits>, String> {
            let arguments = arguments(given, &[16, 16])?;
            let sum = Bits::from_u64(32, arguments.iter().map(Bits::to_u64).sum());
            Ok((method == "add").then_some(sum))
        }
    }

    fn outcome(steps: &str) -> Result<(), String> {
        let text =
            format!("packet a = hex 01\npacket b = hex 02\ncase c\nelement Sieve\n{steps}\n");
        run_case(&Golden::parse(&text).unwrap().cases[0], &mut Sieve::default())
    }

    #[test]
    fn steps_that_hold_pass() {
        let steps = "in in = a b a\nout out = a b\nexpect count = 3\nset count = 1\n\
            in in = b b\nout out = b\nsignal 3 4 = 7\ncall add 3 4 = 7\ncall nothing 3 4 =";
        assert_eq!(outcome(steps), Ok(()));
    }

    #[test]
    fn each_kind_of_step_can_fail_and_names_its_line() {
        for (steps, line) in [
            ("in in = a b\nout out = b a", 6),
            ("in in = a b\nout out = a", 6),
            ("in in = a b a\nout out = a b a", 6),
            ("in in = a\nout out = a\nexpect count = 2", 7),
            ("in in = a\nout out = a\nexpect other = 0", 7),
            ("signal 1 = 2", 5),
            ("call add 1 2 = 4", 5),
            ("call add 1 2 =", 5),
            ("call nothing 1 2 = 3", 5),
            ("call add 1 0x10000 = 65537", 5),
            ("call add 1 = 1", 5),
            // Another packet leaves after the last check.
            ("in in = a\nout out = a\nin in = b", 3),
        ] {
            let error = outcome(steps).unwrap_err();
            assert!(error.starts_with(&format!("line {line} ")), "{steps}\n{error}");
        }
    }

    #[test]
    fn of_a_group_names_are_of_its_manager_or_of_what_is_inside() {
        let group = ["dut.manager", "dut.buffer", "dut.inner.manager"];
        let place_in =
            |there: &[&str], name| place(name, |it| there.iter().position(|own| *own == it));
        assert_eq!(place_in(&group, "insert"), Ok((0, "insert")));
        assert_eq!(place_in(&group, "buffer.sent"), Ok((1, "sent")));
        assert_eq!(place_in(&group, "inner.manager.rules"), Ok((2, "rules")));
        assert_eq!(place_in(&group, "exact.rules"), Err("there is no exact in it".into()));
        assert_eq!(place_in(&["dut"], "count"), Ok((0, "count")));
    }

    #[test]
    fn ports_are_joined_to_outer_ends_in_order() {
        let text = "case c\nelement Merge<2>\nin 1 =\nin 2 =\nout out =\nsignal 0 = 0\n";
        let golden = Golden::parse(text).unwrap();
        let wanted = "Merge<2> :: dut @\nfrom_tor -> [1] dut\nfrom_nic -> [2] dut\n\
            dut [out] -> to_tor\n";
        assert_eq!(configuration(&golden.cases[0]).unwrap(), wanted);
    }

    /// Passes flits on and counts packets; a signal returns the count plus its first word.
    const COUNT: &str = "
        element Count {
          in in: flit
          out out: flit
          reg count: bits<8>[1] visible
          handler {
            entry:
              %flit = take in
              put out, %flit
              %is_last = extract %flit[257 +: 1]
              br %is_last, add, end
            add:
              %zero = const 0:1
              %old = load count[%zero]
              %one = const 1:8
              %new = add %old, %one
              store count[%zero], %new
              jump end
            end:
              done
          }
          signal (%signal: bits<512>) -> bits<512> {
            entry:
              %zero = const 0:1
              %count = load count[%zero]
              %wide = zext %count to 64
              %asked = extract %signal[64 +: 64]
              %sum = add %wide, %asked
              %answer = insert %signal[64], %sum
              ret %answer
          }
        }
        graph {
          instance dut: Count controlled
          endpoint from_tor: into flit
          endpoint to_tor: out_of flit
          from_tor -> dut.in
          dut.out -> to_tor
        }";

    #[test]
    fn the_interpreter_runs_cases_whatever_the_arrivals() {
        let program = freeport_ir::text::parse(COUNT).unwrap();
        let case = "packet a = tcp 10.0.0.1:1 > 10.0.0.2:2 len 1500\npacket b = hex 01\n\
            case c\nelement Count\nset count = 250\nin in = 5*a 5*b\n";
        let holds = "out out = 5*a 5*b\nexpect count = 4\nsignal 3 = 7\n";
        for seed in 0..20 {
            for (steps, is_right) in [(holds, true), ("out out = 5*b 5*a\n", false)] {
                let golden = Golden::parse(&format!("{case}{steps}")).unwrap();
                let mut machine = Reference::new(&program, seed).unwrap();
                let outcome = run_case(&golden.cases[0], &mut machine);
                assert_eq!(outcome.is_ok(), is_right, "seed {seed}: {outcome:?}");
            }
        }
    }
}
