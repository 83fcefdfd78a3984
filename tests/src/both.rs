// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a program in the interpreter, which must not read beyond a packet, and as native code,
//! which must do the same; to compare the effects of an element with a model.

use crate::repository;
use freeport_clicknp::{Options, compile_text};
use freeport_golden::native::Native;
use freeport_golden::run::{INSTANCE, Machine, Reference};
use freeport_golden::{Variable, record};
use freeport_ir::{Direction, Program};
use freeport_native::Image;
use freeport_testbed::cache::Cache;
use std::collections::BTreeMap;

/// A program with an instance `dut`, for both machines.
pub struct Both {
    program: Program,
    image: Image,
    _cache: Cache,
}

/// Effects of an element on its input: items that left at each outer end, and its counters.
#[derive(Debug)]
pub struct Outcomes {
    /// Packets and records by the outer end at which they left.
    pub out: BTreeMap<String, Vec<Vec<u8>>>,
    /// Scalar variables of the instance, by name.
    pub counters: BTreeMap<String, u64>,
}

/// A method call: its name, and arguments as written in a golden, or as records.
pub type Call<'c> = (&'c str, Vec<Vec<u8>>);

impl Both {
    /// Compiles a program that may use the library.
    ///
    /// # Panics
    /// If it cannot be compiled.
    pub fn new(text: &str) -> Self {
        let library = Options { library: vec![repository().join("elements")] };
        let compiled = compile_text("both.cnp", text, &library);
        let program = compiled.unwrap_or_else(|failure| panic!("{text}\n{failure}")).program;
        let cache = Cache::of("native");
        let options = freeport_native::Options {
            optimization: 1,
            cache: Some(cache.path().to_owned()),
            ..freeport_native::Options::default()
        };
        let image = freeport_native::build(&program, &options);
        let image = image.unwrap_or_else(|error| panic!("{text}\n{error}"));
        Self { program, image, _cache: cache }
    }

    /// Calls methods, feeds packets and records at outer ends, and runs until nothing moves.
    ///
    /// # Panics
    /// If the interpreter reads beyond a packet, or native code behaves differently.
    pub fn run(&self, calls: &[Call<'_>], input: &[(&str, &[Vec<u8>])]) -> Outcomes {
        let mut reference = Reference::new(&self.program, 0).expect("it runs");
        let found = self.outcomes(&mut reference, calls, input);
        assert_eq!(reference.out_of_range(), 0, "a read beyond a packet");
        let mut native = Native::new(&self.image, 1).expect("it runs");
        let same = self.outcomes(&mut native, calls, input);
        for (end, items) in &found.out {
            let pairs = items.iter().zip(&same.out[end]).enumerate();
            for (at, (item, other)) in pairs {
                assert_eq!(item, other, "native code gives another item {at} at {end}");
            }
            assert_eq!(items.len(), same.out[end].len(), "at {end}");
        }
        assert_eq!(found.counters, same.counters);
        found
    }

    /// Returns the interpreter and native code, to be run step by step.
    ///
    /// # Panics
    /// If one of them cannot run the program.
    pub fn machines(&self) -> [Box<dyn Machine + '_>; 2] {
        let reference = Reference::new(&self.program, 0).expect("it runs");
        [Box::new(reference), Box::new(Native::new(&self.image, 1).expect("it runs"))]
    }

    fn outcomes(
        &self,
        machine: &mut dyn Machine,
        calls: &[Call<'_>],
        input: &[(&str, &[Vec<u8>])],
    ) -> Outcomes {
        for (method, arguments) in calls {
            machine.call(method, arguments).unwrap_or_else(|error| panic!("{method}: {error}"));
        }
        for (end, items) in input {
            items.iter().for_each(|item| machine.feed(end, item).expect("an end"));
        }
        machine.settle().expect("it comes to rest");
        let ends = self.program.graph.endpoints.iter();
        let ends = ends.filter(|end| end.direction == Direction::OutOf);
        let out = ends.map(|end| (end.name.clone(), machine.take(&end.name).expect("an end")));
        let out = out.collect();
        let instance = self.program.graph.instances.iter().find(|it| it.name == INSTANCE);
        let element = instance.map(|it| &self.program.elements[it.element.index()]);
        let state = element.map_or(&[][..], |element| &element.state[..]);
        let mut counters = BTreeMap::new();
        for object in state.iter().filter(|object| object.depth == 1 && object.elem_bits <= 64) {
            let variable = Variable { name: object.name.clone(), index: 0 };
            counters.insert(object.name.clone(), machine.read(&variable).expect("a variable"));
        }
        Outcomes { out, counters }
    }
}

/// Parses an argument of a call, as written in a golden.
///
/// # Panics
/// If it is invalid.
pub fn argument(text: &str) -> Vec<u8> {
    record::value(text, &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"))
}

/// Expected counters, by name.
#[derive(Default)]
pub struct Counts(pub BTreeMap<String, u64>);

impl Counts {
    /// Increments a counter.
    pub fn add(&mut self, name: &str) {
        *self.0.entry(name.to_owned()).or_default() += 1;
    }

    /// Asserts that the counters have these values, and all others are 0.
    ///
    /// # Panics
    /// If they are not.
    pub fn check(&self, counters: &BTreeMap<String, u64>) {
        for (name, value) in counters {
            assert_eq!(*value, self.0.get(name).copied().unwrap_or(0), "{name}");
        }
        let unknown = self.0.keys().find(|name| !counters.contains_key(*name));
        assert_eq!(unknown, None);
    }
}
