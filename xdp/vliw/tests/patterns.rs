// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Exhaustive patterns: branches of one row taken in any combination, and operations with three
//! operands in any registers (sheet of hXDP, HX-16 and HX-11). The model must do with the compiled
//! program what the interpreter does with the program.

use freeport_ebpf::instruction::assemble;
use freeport_ebpf::interpreter::{Environment, Machine, Packet};
use freeport_ebpf::object::{Object, Program};
use freeport_vliw::image::Image;
use freeport_vliw::model::{Mode, Model};
use freeport_vliw::{Options, compile};

/// Makes an object of a program.
fn object(text: &str) -> Object {
    let instructions = assemble(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let program = Program { name: "main".into(), instructions, ..Program::default() };
    Object { programs: vec![program], ..Object::default() }
}

/// Returns register 0 at the end, in the interpreter and on the model.
fn values(object: &Object, image: &Image, packet: &[u8]) -> [u64; 2] {
    let mut machine = Machine::load(object, Environment::default()).expect("it can run");
    let mut packets = [packet, packet].map(|it| Packet::new(it).expect("a short one"));
    let interpreted = machine.run(0, &mut packets[0]);
    let model = Model::new(vec![Some(image.clone())], Mode::Strict);
    let run = model.run(&mut machine, 0, &mut packets[1]);
    let executed = run.unwrap_or_else(|fault| panic!("{fault}\n{image}")).outcome;
    assert_eq!((&interpreted.aborted, &executed.aborted), (&None, &None));
    [interpreted.value, executed.value]
}

#[test]
fn branches_of_a_row_are_taken_in_the_order_of_the_program() {
    let text = "r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = r2
        r4 += 16
        if r4 > r3 goto short
        r5 = *(u8 *)(r2 + 0)
        r6 = *(u8 *)(r2 + 1)
        r7 = *(u8 *)(r2 + 2)
        r8 = *(u8 *)(r2 + 3)
        r0 = 11
        if r5 != 0 goto out
        r0 = 12
        if r6 != 0 goto out
        r0 = 13
        if r7 != 0 goto out
        r0 = 14
        if r8 != 0 goto out
        r0 = 15
        out:
        exit
        short:
        r0 = 16
        exit";
    let object = object(text);
    let mut most = 0;
    for lanes in 1..=8 {
        let mut options = Options::default();
        options.machine.lanes = lanes;
        let image = compile(&object.programs[0], &[], &options).expect("it can be executed");
        let jumps = |row: &freeport_vliw::image::Row| {
            row.slots().filter(|(_, slot)| slot.operation.target().is_some()).count()
        };
        most = image.rows.iter().map(jumps).max().unwrap_or(0).max(most);
        for pattern in 0..16_u8 {
            let mut packet = [0; 16];
            (0..4).for_each(|bit| packet[bit] = pattern >> bit & 1);
            let [interpreted, executed] = values(&object, &image, &packet);
            assert_eq!(interpreted, executed, "{pattern:04b}, {lanes} lanes\n{image}");
            // The first taken branch determines the exit.
            assert_eq!(interpreted, 11 + u64::from(pattern.trailing_zeros().min(4)));
        }
    }
    assert!(most >= 4, "no row has four branches: {most}");
}

#[test]
fn three_operands_may_be_any_registers() {
    // None of these values is known statically.
    let others: String = (1..10).map(|it| format!("r{it} = r0\nr{it} *= {}\n", 3 + it)).collect();
    let start = format!("r0 = *(u32 *)(r1 + 12)\nr0 += 1000\n{others}");
    let end: String = (1..10).map(|it| format!("r0 *= 31\nr0 += r{it}\n")).collect();
    for registers in 0..1_000 {
        let [destination, left, right] = [registers / 100, registers / 10 % 10, registers % 10];
        let text =
            format!("{start}r{destination} = r{left}\nr{destination} -= r{right}\n{end}exit");
        let object = object(&text);
        let image = compile(&object.programs[0], &[], &Options::default());
        let image = image.expect("it can be executed");
        let [interpreted, executed] = values(&object, &image, &[0; 16]);
        assert_eq!(interpreted, executed, "{text}\n{image}");
    }
}
