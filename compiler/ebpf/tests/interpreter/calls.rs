// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers other than those of packets: their results, their errors, and the reasons for aborts.

use crate::program;
use crate::program::{
    add, call, constant, copy, definition, exit, if_zero, load, machine, map, object, packet,
    reason, set, slot, store, store_constant, store_word, value,
};
use freeport_ebpf::instruction::Instruction;
use freeport_ebpf::interpreter::{Clock, Environment, Machine, Outcome};
use freeport_ebpf::maps::ErrorNumber;
use freeport_ebpf::object::{MapDefinition, MapKind};

/// Returns `error` as register 0 shows it.
fn negative(error: ErrorNumber) -> u64 {
    error.returned()
}

/// Runs a program with one map, and returns the outcome and the machine.
fn ran(instructions: Vec<Instruction>, map: MapDefinition) -> (Outcome, Machine) {
    let mut machine = machine(instructions, vec![map]);
    let outcome = machine.run(0, &mut packet(60));
    (outcome, machine)
}

/// Loads the address of the stack at `offset` into `register`.
fn stack(register: u8, offset: i32) -> [Instruction; 2] {
    [copy(register, 10), add(register, offset)]
}

/// Loads a reference to the function `distance` slots after the next instruction.
fn function(register: u8, distance: i32) -> [Instruction; 2] {
    [slot(0x18, (register, 4), 0, distance + 1), slot(0, (0, 0), 0, 0)]
}

#[test]
fn elements_are_set_found_and_removed() {
    let begin = program![store_word(10, -4, 7), store_constant(10, -16, 99)];
    let update = program![map(1, 0), stack(2, -4), stack(3, -16), set(4, 0), call(2),];
    let lookup = program![map(1, 0), stack(2, -4), call(1)];
    let delete = program![map(1, 0), stack(2, -4), call(3)];
    for kind in [MapKind::Hash, MapKind::LruHash, MapKind::PerCpuHash, MapKind::LruPerCpuHash] {
        let hash = || definition(kind, (4, 8), 4);
        let found = program![
            begin.clone(),
            update.clone(),
            lookup.clone(),
            if_zero(0, 1),
            load(0, 0, 0),
            exit()
        ];
        let (outcome, machine) = ran(found, hash());
        assert_eq!(outcome.value, 99, "{kind}");
        let entries = machine.map("map").expect("it is there").entries();
        assert_eq!(entries, [(7_u32.to_ne_bytes().to_vec(), 99_u64.to_le_bytes().to_vec())]);
        let removed =
            program![begin.clone(), update.clone(), delete.clone(), lookup.clone(), exit()];
        assert_eq!(ran(removed, hash()).0.value, 0, "{kind}");
        let absent = program![begin.clone(), delete.clone(), exit()];
        assert_eq!(ran(absent, hash()).0.value, negative(ErrorNumber::ENOENT), "{kind}");
    }
    let array = program![begin.clone(), update, exit()];
    let (outcome, _) = ran(array, definition(MapKind::Array, (4, 8), 7));
    assert_eq!(outcome.value, negative(ErrorNumber::E2BIG));
    let removed = program![begin, delete, exit()];
    let (outcome, _) = ran(removed, definition(MapKind::Array, (4, 8), 8));
    assert_eq!(outcome.value, negative(ErrorNumber::EINVAL));
}

/// The kernel replaces the element on an update, and a program may still read the old one.
#[test]
fn who_has_the_address_of_a_hashed_value_sees_it_as_it_was() {
    let twice = |kind| {
        let update = |number| {
            program![
                store_constant(10, -16, number),
                map(1, 0),
                stack(2, -4),
                stack(3, -16),
                set(4, 0),
                call(2),
            ]
        };
        let program = program![
            store_word(10, -4, 7),
            update(1),
            map(1, 0),
            stack(2, -4),
            call(1),
            copy(6, 0),
            update(2),
            if_zero(6, 1),
            load(0, 6, 0),
            exit(),
        ];
        ran(program, definition(kind, (4, 8), 8)).0.value
    };
    assert_eq!((twice(MapKind::Hash), twice(MapKind::LruHash)), (1, 1));
    assert_eq!((twice(MapKind::PerCpuHash), twice(MapKind::Array)), (2, 2), "written in place");
}

#[test]
fn a_map_that_is_none_ends_the_program() {
    for helper in [1, 2, 3, 51, 87, 88, 89, 130, 131, 134, 164, 195] {
        let outcome = program::run(program![constant(1, 5), call(helper), exit()]);
        assert!(reason(&outcome).contains("received 0x5, which is not a map"), "{helper}");
    }
    let (outcome, _) = ran(program![map(1, 0), set(0, 1), load(0, 1, 0), exit()], {
        definition(MapKind::Array, (4, 8), 1)
    });
    assert!(reason(&outcome).contains("a map or a function has no bytes"));
    let short_key = program![map(1, 0), stack(2, -3), call(1), exit()];
    let (outcome, _) = ran(short_key, definition(MapKind::Array, (4, 8), 1));
    assert!(reason(&outcome).contains("a read of 4 bytes"));
    let (outcome, _) =
        ran(program![map(1, 0), call(1), exit()], definition(MapKind::Queue, (0, 8), 1));
    assert!(reason(&outcome).contains("bpf_map_lookup_elem does not take a map of kind"));
}

#[test]
fn queues_stacks_and_filters_are_pushed_and_peeked() {
    let through = |kind: MapKind, last: i32| {
        let push = |number| {
            program![store_constant(10, -8, number), map(1, 0), stack(2, -8), set(3, 0), call(87),]
        };
        let ask = program![push(5), push(6), map(1, 0), stack(2, -8), call(last)];
        let (outcome, _) = ran(
            program![ask, if_zero(0, 1), exit(), load(0, 10, -8), exit()],
            definition(kind, (0, 8), 2),
        );
        assert_eq!(outcome.aborted, None);
        outcome.value
    };
    assert_eq!((through(MapKind::Queue, 88), through(MapKind::Queue, 89)), (5, 5));
    assert_eq!((through(MapKind::Stack, 88), through(MapKind::Stack, 89)), (6, 6));
    assert_eq!(through(MapKind::BloomFilter, 89), 6, "it may hold what is on the stack still");
    let empty = program![store_constant(10, -8, 1), map(1, 0), stack(2, -8), call(88), exit()];
    let (outcome, _) = ran(empty, definition(MapKind::Queue, (0, 8), 2));
    assert_eq!(outcome.value, negative(ErrorNumber::ENOENT));
}

#[test]
fn records_of_a_ring_are_submitted_or_discarded() {
    let ring = || definition(MapKind::RingBuffer, (0, 0), 4_096);
    let reserved = program![
        map(1, 0),
        set(2, 8),
        set(3, 0),
        call(131),
        if_zero(0, 1),
        store_constant(0, 0, 42),
    ];
    let finished =
        |helper| program![reserved.clone(), copy(1, 0), set(2, 0), call(helper), set(0, 0), exit()];
    let (outcome, mut machine) = ran(finished(132), ring());
    assert_eq!(outcome.aborted, None);
    let records = machine.map_mut("map").expect("it is there").take_records();
    assert_eq!(records, [42_u64.to_le_bytes()]);
    let (_, mut machine) = ran(finished(133), ring());
    assert!(machine.map_mut("map").expect("it is there").take_records().is_empty());
    let (outcome, _) = ran(program![reserved.clone(), set(0, 2), exit()], ring());
    assert!(reason(&outcome).ends_with("with a record of ring buffer `map` reserved"));
    let beyond = program![reserved.clone(), store_constant(0, 1, 0), exit()];
    assert!(reason(&ran(beyond, ring()).0).contains("a write of 8 bytes"));
    let inside = program![reserved, copy(1, 0), add(1, 1), set(2, 0), call(132), exit()];
    assert!(reason(&ran(inside, ring()).0).contains("not a reserved ring-buffer record"));
    let output = |size: i32, flags: i32| {
        let program = program![
            store_constant(10, -8, 7),
            map(1, 0),
            stack(2, -8),
            set(3, size),
            set(4, flags),
            call(130),
            exit(),
        ];
        ran(program, ring())
    };
    assert_eq!(output(8, 4).0.value, negative(ErrorNumber::EINVAL));
    let (outcome, mut machine) = output(3, 1);
    assert_eq!(outcome.value, 0);
    assert_eq!(machine.map_mut("map").expect("it is there").take_records(), [[7, 0, 0]]);
    assert!(reason(&output(9, 0).0).contains("a read of 9 bytes"));
}

#[test]
fn events_go_to_buffers_that_are_open() {
    let output = |flags: u64, is_open: bool| {
        let program = program![
            store_constant(10, -8, 7),
            map(2, 0),
            constant(3, flags),
            stack(4, -8),
            set(5, 8),
            call(25),
            exit(),
        ];
        let mut machine = machine(program, vec![definition(MapKind::PerfEventArray, (4, 4), 2)]);
        let map = machine.map_mut("map").expect("it is there");
        if is_open {
            map.update(&[0; 4], &[1; 4], 0).expect("there is a place");
        }
        let outcome = machine.run(0, &mut packet(60));
        (outcome.value, machine.map_mut("map").expect("it is there").take_events())
    };
    let (result, events) = output(3 << 32 | 0xffff_ffff, true);
    assert_eq!((result, events.len()), (0, 1));
    assert_eq!(
        (events[0].data.as_slice(), events[0].packet.as_slice()),
        (&7_u64.to_le_bytes()[..], &[0, 1, 2][..],)
    );
    assert_eq!(output(0, false).0, negative(ErrorNumber::ENOENT));
    assert_eq!(output(2, true).0, negative(ErrorNumber::E2BIG));
    assert_eq!(output(61 << 32, true).0, negative(ErrorNumber::EFAULT));
    assert_eq!(output(1 << 60, true).0, negative(ErrorNumber::EINVAL));
}

#[test]
fn time_and_chance_are_those_of_the_environment() {
    let mut machine = machine(program![call(5), exit()], vec![]);
    machine.environment_mut().clock = Clock::Set(123);
    assert_eq!(machine.run(0, &mut packet(60)).value, 123);
    let random = || {
        let mut machine = program::machine(program![call(7), exit()], vec![]);
        [0; 3].map(|_| machine.run(0, &mut packet(60)).value)
    };
    let numbers = random();
    assert_eq!(numbers, random(), "they can be repeated");
    assert!(numbers[0] != numbers[1] && numbers.iter().all(|&number| number <= u32::MAX.into()));
    assert_eq!(value(program![call(8), exit()]), 0);
}

#[test]
fn another_program_takes_over_as_long_as_it_may() {
    let call_next = |index: i32, alone: i32| {
        program![
            set(6, 9),
            slot(0xbf, (7, 1), 0, 0),
            map(2, 0),
            set(3, index),
            call(12),
            set(0, alone),
            exit(),
        ]
    };
    let last = program![copy(0, 6), add(0, 50), exit()];
    let maps = || vec![definition(MapKind::ProgramArray, (4, 4), 4)];
    let programs = vec![call_next(1, 11), call_next(2, 12), last, call_next(3, 14)];
    let mut machine = Machine::load(&object(programs, maps()), Environment::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(machine.run(0, &mut packet(60)).value, 11, "an empty place");
    let map = machine.map_mut("map").expect("it is there");
    for place in 1..4_u32 {
        map.update(&place.to_ne_bytes(), &place.to_ne_bytes(), 0).expect("there is a place");
    }
    let outcome = machine.run(0, &mut packet(60));
    assert_eq!((outcome.value, outcome.aborted), (50, None), "with fresh registers");
    let outcome = machine.run(3, &mut packet(60));
    assert_eq!((outcome.value, outcome.instructions), (14, 34 * 5 + 2), "33 times");
}

#[test]
fn a_program_that_cannot_run_here_keeps_no_other_from_running() {
    let asks = program![call(9_999), exit()];
    let calls_it = program![map(2, 0), set(3, 1), call(12), set(0, 7), exit()];
    let programs = vec![program![set(0, 2), exit()], asks, calls_it];
    let object = object(programs, vec![definition(MapKind::ProgramArray, (4, 4), 4)]);
    let error = Machine::load(&object, Environment::default()).err().expect("one cannot");
    let mut machine = Machine::load_partly(&object, Environment::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let refused = machine.refused(1);
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].slot, refused[0].to_string()), (0, error.to_string()));
    assert!(machine.refused(0).is_empty() && machine.refused(2).is_empty());
    assert_eq!(machine.run(0, &mut packet(60)).value, 2);
    let outcome = machine.run(1, &mut packet(60));
    assert!(reason(&outcome).contains("was refused"));
    assert_eq!(machine.run(2, &mut packet(60)).value, 7, "an empty place");
    let map = machine.map_mut("map").expect("it is there");
    map.update(&1_u32.to_ne_bytes(), &1_u32.to_ne_bytes(), 0).expect("there is a place");
    let outcome = machine.run(2, &mut packet(60));
    assert!(reason(&outcome).contains("was refused"), "what it would have done is not known");
}

#[test]
fn a_function_is_called_again_and_again() {
    let repeat = |count: i32, until: i32, flags: i32| {
        value(program![
            store_constant(10, -8, 0),
            set(1, count),
            function(2, 9),
            stack(3, -8),
            set(4, flags),
            call(181),
            copy(6, 0),
            load(0, 10, -8),
            slot(0x67, (0, 0), 0, 32),
            slot(0x4f, (0, 6), 0, 0),
            exit(),
            // The function adds its number to the sum in the context, and stops at `until`.
            load(3, 2, 0),
            slot(0x0f, (3, 1), 0, 0),
            store(2, 0, 3),
            set(0, 0),
            slot(0x55, (1, 0), 1, until),
            set(0, 1),
            exit(),
        ])
    };
    assert_eq!(repeat(10, 100, 0), 45 << 32 | 10);
    assert_eq!(repeat(10, 3, 0), 6 << 32 | 4);
    assert_eq!(repeat(0, 3, 0), 0);
    assert_eq!(repeat(1, 3, 1), negative(ErrorNumber::EINVAL));
    assert_eq!(repeat((1 << 23) + 1, 3, 0), negative(ErrorNumber::E2BIG));
    let outcome = program::run(program![set(1, 2), set(2, 3), call(181), exit()]);
    assert!(reason(&outcome).contains("received 0x3, which is not a function"));
}

#[test]
fn a_function_is_called_for_each_element() {
    for kind in [MapKind::Array, MapKind::Hash, MapKind::LruHash, MapKind::PerCpuArray] {
        let program = program![
            store_constant(10, -8, 0),
            map(1, 0),
            function(2, 8),
            stack(3, -8),
            set(4, 0),
            call(164),
            slot(0x67, (0, 0), 0, 32),
            load(1, 10, -8),
            slot(0x4f, (0, 1), 0, 0),
            exit(),
            // The function adds key and value to the sum in the context, and doubles the value.
            slot(0x61, (5, 2), 0, 0),
            load(6, 3, 0),
            slot(0x0f, (5, 6), 0, 0),
            load(7, 4, 0),
            slot(0x0f, (5, 7), 0, 0),
            store(4, 0, 5),
            slot(0x0f, (6, 6), 0, 0),
            store(3, 0, 6),
            set(0, 0),
            exit(),
        ];
        let mut machine = machine(program, vec![definition(kind, (4, 8), 3)]);
        let map = machine.map_mut("map").expect("it is there");
        for key in 0..3_u32 {
            let value = u64::from(key) * 10 + 1;
            map.update(&key.to_ne_bytes(), &value.to_le_bytes(), 0).expect("there is room");
        }
        let outcome = machine.run(0, &mut packet(60));
        assert_eq!((outcome.aborted, outcome.value), (None, 3 << 32 | 36), "{kind}");
        let map = machine.map("map").expect("it is there");
        assert_eq!(map.lookup(&2_u32.to_ne_bytes()), Ok(&42_u64.to_le_bytes()[..]), "{kind}");
    }
}

#[test]
fn a_lock_is_held_once_and_released() {
    let locked = |parts: Vec<Instruction>| {
        let program = program![
            store_word(10, -4, 0),
            map(1, 0),
            stack(2, -4),
            call(1),
            if_zero(0, parts.len() as i16 + 1),
            copy(6, 0),
            parts,
            set(0, 2),
            exit(),
        ];
        ran(program, definition(MapKind::Array, (4, 8), 1)).0
    };
    let (lock, unlock) = (program![copy(1, 6), call(93)], program![copy(1, 6), call(94)]);
    assert_eq!(locked(program![lock.clone(), unlock.clone()]).value, 2);
    let twice = locked(program![lock.clone(), lock.clone()]);
    assert!(reason(&twice).ends_with("bpf_spin_lock, while the lock is held already"));
    assert!(reason(&locked(unlock)).ends_with("bpf_spin_unlock, while the lock is not held"));
    assert!(reason(&locked(lock)).ends_with("it ended with a lock held"));
}

#[test]
fn an_inner_map_is_looked_up_in_an_outer_one() {
    let program = program![
        store_word(10, -4, 2),
        map(1, 0),
        stack(2, -4),
        call(1),
        if_zero(0, 6),
        copy(1, 0),
        stack(2, -4),
        call(1),
        if_zero(0, 1),
        load(0, 0, 0),
        exit(),
    ];
    let outer = definition(MapKind::ArrayOfMaps, (4, 4), 4);
    let mut machine = machine(program, vec![outer]);
    assert_eq!(machine.run(0, &mut packet(60)).value, 0, "no map there");
    let inner = machine.add_map(&definition(MapKind::Array, (4, 8), 4)).expect("a small one");
    let key = 2_u32.to_ne_bytes();
    machine.set_inner(0, &key, inner).expect("there is a place");
    let map = machine.map_at_mut(inner).expect("it is there");
    map.update(&key, &77_u64.to_le_bytes(), 0).expect("there is room");
    let outcome = machine.run(0, &mut packet(60));
    assert_eq!((outcome.aborted, outcome.value), (None, 77));
    assert_eq!(machine.set_inner(inner, &key, 0), Err(ErrorNumber::EINVAL));
}
