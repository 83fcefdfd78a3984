// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Managers: they call the methods of the instances beside them, of arrays and of groups, in the
//! interpreter, before and after the passes.

use freeport_clicknp::{Compiled, Options, compile_text};
use freeport_ir::interp::{self, Interpreter, Outcome};
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{Bits, Program, verify};

const ADDERS: &str = "
    struct Pair { uint low; ushort high; };
    .element Add (uint in -> uint out) {
        .state { uint by = 7; uint sets; }
        .handler { set_output_port(out, read_input_port(in) + by); }
        .method uint set(Pair to) { uint old = by; by = to.low + to.high; sets++; return old; }
        .method void clear() { by = 0; }
    }
    group Two <uint N = 3> (uint in -> uint out) {
        Add :: first
        Add :: second
        begin -> first -> second -> end
        .manager {
            .state { uint calls; }
            .init { first.clear(); }
            .method uint set(uint to) {
                calls++;
                Pair pair = { to, N };
                return first.set(pair) * 1000 + second.set(pair);
            }
        }
    }
";

const MANAGED: &str = "
    .manager {
        .state { uint last; uint sums[5]; }
        .init { before.set(pair(1, 2)); both.set(40); }
        Pair pair(uint low, ushort high) { Pair p = { low, high }; return p; }
        .method uint set(uint to) {
            last = both.set(to);
            uint sum = 0;
            for (uint i = 0; i < 5; i++) {
                sums[i] = many[i].set(pair(to, (ushort)i));
                sum = sum + sums[i];
            }
            many[1].clear();
            if (to > 5) before.clear();
            return sum;
        }
    }
    Add :: before
    Two<N = 5> :: both
    Two :: other
    Add :: many#3
    from_host -> before -> both -> other -> many#1 -> many#2 -> many#3 -> to_host
";

fn compiled(text: &str) -> Compiled {
    let compiled = compile_text("managers.cnp", text, &Options::default());
    compiled.unwrap_or_else(|failure| panic!("{failure}"))
}

/// Returns the program before and after the passes.
fn both_ways(program: &Program) -> [Program; 2] {
    verify(program).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let mut optimised = program.clone();
    passes::run(&mut optimised, &PassSet::for_cpu());
    [program.clone(), optimised]
}

fn word(value: u64) -> Bits {
    Bits::from_u64(32, value)
}

fn read(interpreter: &Interpreter<'_>, instance: &str, variable: &str, index: u64) -> u64 {
    let id = interpreter.instance(instance).expect("in the configuration");
    interpreter.read_variable(id, variable, index).expect("in its state").to_u64()
}

/// Returns the result of passing a 0 through.
fn sum(interpreter: &mut Interpreter<'_>) -> u64 {
    let ends = ["from_host", "to_host"].map(|name| interpreter.endpoint(name).expect("joined"));
    interpreter.feed_item(ends[0], word(0)).expect("a word");
    assert_eq!(interpreter.run(1000), Ok(Outcome::Idle));
    interpreter.take_items(ends[1]).expect("an output")[0].to_u64()
}

#[test]
fn a_manager_calls_instances_arrays_and_groups() {
    let Compiled { program, .. } = compiled(&format!("{ADDERS}{MANAGED}"));
    for program in both_ways(&program) {
        let mut interpreter = Interpreter::new(&program, &interp::Options::default()).unwrap();
        // Managers' init functions run after those of the instances they call: first 0, then 40 + 5
        // each.
        let at_first = 3 + 45 + 45 + 7 + 3 * 7;
        assert_eq!(sum(&mut interpreter), at_first);
        let manager = interpreter.instance("manager").expect("there is one");
        let set = |it: &mut Interpreter<'_>, to| {
            let result = it.call_method(manager, "set", vec![word(to)]);
            result.expect("it takes a word").expect("it has a result").to_u64()
        };
        // Calls of instances out of range give 0.
        assert_eq!(set(&mut interpreter, 5), 21);
        assert_eq!(sum(&mut interpreter), 3 + 10 + 10 + 7 + 5 + 7);
        assert_eq!(set(&mut interpreter, 6), 5 + 7);
        assert_eq!(sum(&mut interpreter), 11 + 11 + 7 + 6 + 8);
        assert_eq!(read(&interpreter, "manager", "last", 0), 10_010);
        let sums: Vec<u64> = (0..5).map(|at| read(&interpreter, "manager", "sums", at)).collect();
        assert_eq!(sums, [5, 0, 7, 0, 0]);
        assert_eq!(read(&interpreter, "both.manager", "calls", 0), 3);
        assert_eq!(read(&interpreter, "other.manager", "calls", 0), 0);
        assert_eq!(read(&interpreter, "many#3", "sets", 0), 2);
    }
}

#[test]
fn the_host_sees_a_manager_as_an_instance() {
    let Compiled { program, layouts, .. } = compiled(&format!("{ADDERS}{MANAGED}"));
    let named = |name: &str| {
        let found = program.graph.instances.iter().find(|it| it.name == name);
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    for (name, method, variable) in [("manager", "set", "last"), ("both.manager", "set", "calls")] {
        let instance = named(name);
        assert!(instance.host);
        let layout = &layouts.elements[instance.element.index()];
        assert_eq!(layout.methods[0].name, method);
        assert_eq!(layout.methods[0].params[0].1, "uint");
        assert_eq!(layout.variables[0].name, variable);
    }
    assert_eq!(program.graph.instances.last().expect("some").name, "manager");
}

#[test]
fn a_configuration_of_only_a_manager_is_one() {
    let text = ".manager { .state { ulong x; } .method ulong add(ulong y) { x += y; return x; } }";
    let Compiled { program, .. } = compiled(text);
    for program in both_ways(&program) {
        let mut interpreter = Interpreter::new(&program, &interp::Options::default()).unwrap();
        let manager = interpreter.instance("manager").expect("there is one");
        let add = |it: &mut Interpreter<'_>| {
            it.call_method(manager, "add", vec![Bits::from_u64(64, 3)]).expect("it takes one")
        };
        add(&mut interpreter);
        assert_eq!(add(&mut interpreter), Some(Bits::from_u64(64, 6)));
        assert_eq!(interpreter.run(10), Ok(Outcome::Idle));
    }
}
