// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every program of `programs/xdp`, compiled for the small processor, obeys the rules of
//! `docs/internals/vliw.md` and behaves like the program on the paths that the checker follows; the
//! checker shares no code with the compiler. Its rows also survive encoding to bytes and back.

use crate::network;
use crate::objects::object;
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_testbed::is_long;
use freeport_vliw::check::check_paths;
use freeport_vliw::encode::{decode, encode};
use freeport_vliw::image::Image;
use freeport_vliw::{Options, Profile, compile_analysed, compile_profiled};
use freeport_xdp::scenario::{Scenario, compare};
use freeport_xdp::traffic::Traffic;
use freeport_xdp::{Interpreter, Target, Vliw};
use std::collections::{BTreeMap, BTreeSet};

/// Options with which schedules are checked, with their names.
fn variants() -> Vec<(String, Options)> {
    let lanes: &[u8] = if is_long() { &[1, 2, 3, 4, 6, 8] } else { &[4] };
    let all = lanes.iter().flat_map(|&lanes| {
        let kinds = [
            ("all passes", Options::default()),
            ("every instruction kept", Options::keeping_all()),
            ("no pass", Options::plain()),
        ];
        kinds.map(|(name, mut options)| {
            options.machine.lanes = lanes;
            (format!("{name}, {lanes} lanes"), options)
        })
    });
    all.collect()
}

/// Checks an image, beginning with its encoding to bytes.
fn check(image: &Image, object: &Object, number: usize, analysis: &Analysis) -> Result<(), String> {
    let paths = if is_long() { 4_000 } else { 100 };
    let bytes = encode(image).map_err(|error| error.to_string())?;
    let rows = decode(&bytes, image.machine.lanes.into()).map_err(|error| error.to_string())?;
    let own = image.rows.iter().map(|row| {
        row.lanes.iter().map(|slot| slot.as_ref().map(|slot| slot.operation)).collect::<Vec<_>>()
    });
    if !own.eq(rows) {
        return Err("its bytes are other rows".into());
    }
    let checked = check_paths(image, &object.programs[number], analysis, paths);
    let checked = checked.map_err(|violations| violations[0].to_string())?;
    // A program without branches has one path; zero paths would prove nothing.
    if checked.validated == 0 { Err("no path was followed".into()) } else { Ok(()) }
}

#[test]
fn schedules_keep_the_rules_and_the_meaning() {
    let sources: BTreeSet<_> = Scenario::all().iter().map(|scenario| scenario.source).collect();
    let mut failures = vec![];
    for source in sources {
        let object = object(source);
        for (number, program) in object.programs.iter().enumerate() {
            let analysis = Analysis::of(program, &object.maps).expect("it has a graph");
            for (name, options) in variants() {
                let image = compile_analysed(program, &analysis, &options);
                let image = image.expect("the processor can execute it");
                if let Err(failure) = check(&image, &object, number, &analysis) {
                    failures.push(format!("{source}, {}, {name}: {failure}", program.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// Records how often packets of a scenario take each path.
fn profile(scenario: &Scenario, object: &Object, number: usize) -> Profile {
    let mut interpreter =
        Interpreter::load(object, network::environment()).expect("the programs can run here");
    (scenario.set_up)(&mut interpreter).expect("its maps take what is put in");
    let mut profile = Profile::new(number);
    let mut traffic = Traffic::new(2, scenario.kinds);
    for _ in 0..300 {
        let packet = traffic.next_packet();
        let departure = interpreter.run_observed(scenario.program, &packet.arrival(), &mut profile);
        traffic.observe(&departure.expect("it is there"));
    }
    profile
}

/// Returns the number of rows that packets of a scenario execute.
fn executed_rows(scenario: &Scenario, processor: &mut Vliw) -> u64 {
    let mut traffic = Traffic::new(3, scenario.kinds);
    let rows = (0..300).map(|_| {
        let packet = traffic.next_packet();
        let departure = processor.run(scenario.program, &packet.arrival()).expect("it is there");
        traffic.observe(&departure);
        processor.statistics().map_or(0, |statistics| statistics.rows)
    });
    rows.sum()
}

#[test]
fn what_follows_a_profile_does_the_same_in_fewer_rows() {
    let mut objects = BTreeMap::new();
    let mut executed = [0, 0];
    for scenario in Scenario::all() {
        let object = objects.entry(scenario.source).or_insert_with(|| object(scenario.source));
        let mut programs = object.programs.iter();
        let number = programs.position(|program| program.name == scenario.program);
        let number = number.expect("the scenario has a program");
        let profile = profile(&scenario, object, number);
        for (is_profiled, rows) in [false, true].into_iter().zip(&mut executed) {
            let image = |(at, program)| {
                let analysis = Analysis::of(program, &object.maps).expect("it has a graph");
                let options = Options::default();
                let image = match is_profiled && at == number {
                    true => compile_profiled(program, &analysis, &profile, &options),
                    false => compile_analysed(program, &analysis, &options),
                };
                let image = image.expect("the processor can execute it");
                check(&image, object, at, &analysis)
                    .unwrap_or_else(|failure| panic!("{}: {failure}", scenario.name));
                Ok(image)
            };
            let images = object.programs.iter().enumerate().map(image).collect();
            let clock = Clock::Set(1_000_000_007);
            let environment = Environment { clock, ..network::environment() };
            let mut processor = Vliw::with_images(object, images, environment.clone())
                .expect("the maps can be made");
            let mut interpreter = Interpreter::load(object, environment).expect("it can run");
            let subject = &mut processor;
            let compared = compare(&scenario, 2, 300, &mut interpreter, subject);
            compared.unwrap_or_else(|difference| panic!("{}: {difference}", scenario.name));
            *rows += executed_rows(&scenario, &mut processor);
        }
    }
    assert!(executed[1] < executed[0], "{executed:?} rows");
}
