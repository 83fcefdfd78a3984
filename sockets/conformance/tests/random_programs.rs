// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs, and programs that differed once (`kept/`), have equal results with accelerated
//! sockets and without.
//!
//! `FREEPORT_SEED` is the first seed, `FREEPORT_PROGRAMS` the number of programs, and
//! `FREEPORT_LONG` runs thousands; `FREEPORT_EVERYTHING` includes calls with known differences. A
//! differing program is reduced by trying up to `FREEPORT_LOOKS` smaller ones, and printed.
//! `FREEPORT_STEPS` is a file with a program to run instead; both its runs are printed.

mod accelerating;
mod unsteady;

use freeport_sockets_conformance::random::{
    Interpreter, Program, Reach, Verdict, generate, generate_in_turn, judge, shrink,
};
use freeport_sockets_conformance::{Preload, compile_folder, difference};
use freeport_testbed::{number, seed, usual_or_long};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use unsteady::unsteady_cases;

/// Number of programs that run concurrently.
const WORKERS: usize = 3;
/// Number of programs that are tried to reduce one.
const LOOKS: usize = 150;

#[test]
fn random_programs_are_the_same_with_accelerated_sockets() {
    let upgraded = try_seeds(RANDOM, generate, false);
    let [upgraded, dialogues, _] = upgraded;
    assert!(upgraded * 2 > dialogues, "hardly anything was upgraded, which proves nothing");
}

#[test]
fn random_programs_that_connect_again_are_the_same_over_streams_that_are_kept() {
    let [_, dialogues, reused] = try_seeds(IN_TURN, generate_in_turn, true);
    assert!(reused * 10 > dialogues, "hardly any stream was kept, which proves nothing");
}

/// Kind of random programs, one per test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    /// Its name in `unsteady-cases.txt`.
    name: &'static str,
    /// Number of programs in a usual run.
    usual: u64,
}

impl Kind {
    /// Number of programs in a long run.
    fn long(self) -> u64 {
        40 * self.usual
    }
}

const RANDOM: Kind = Kind { name: "random", usual: 120 };
const IN_TURN: Kind = Kind { name: "in turn", usual: 15 };

/// Runs the programs of a kind, as many as usual or as the environment requests. Returns the number
/// of upgraded dialogues, of all dialogues, and of connections over kept streams.
fn try_seeds(kind: Kind, generate: fn(u64, Reach) -> Program, keeps_streams: bool) -> [u64; 3] {
    let first = seed();
    let count = number("FREEPORT_PROGRAMS");
    let seeds = first..first + count.unwrap_or(usual_or_long(kind.usual, kind.long()));
    let folder = tempfile::tempdir().unwrap();
    let interpreter = Interpreter { keeps_streams, ..interpreter(folder.path()) };
    let results = Results { kind: kind.name, ..Results::default() };
    let next = AtomicU64::new(seeds.start);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(seed) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| seeds.contains(seed))
                {
                    try_seed(&interpreter, seed, &generate(seed, reach()), &results);
                }
            });
        }
    });
    results.report(seeds.count())
}

/// Results so far.
#[derive(Default)]
struct Results {
    kind: &'static str,
    steps: AtomicU64,
    /// Programs whose plain runs differ.
    unsteady: Mutex<Vec<String>>,
    failures: Mutex<Vec<String>>,
    upgraded: Mutex<[u64; 3]>,
}

impl Results {
    fn report(self, programs: usize) -> [u64; 3] {
        let unsteady = self.unsteady.into_inner().unwrap();
        let sums = self.upgraded.into_inner().unwrap();
        let steps = self.steps.into_inner();
        println!(
            "{programs} programs of {steps} steps; {} of {} dialogues upgraded; {} accepted over \
             streams that were kept; {} differ in the kernel itself: {unsteady:#?}",
            sums[0],
            sums[1],
            sums[2],
            unsteady.len()
        );
        let failures = self.failures.into_inner().unwrap();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(unsteady.len() * 10 <= programs, "too many programs differ in the kernel itself");
        sums
    }
}

fn try_seed(interpreter: &Interpreter, seed: u64, program: &Program, results: &Results) {
    results.steps.fetch_add(program.lines.len() as u64, Ordering::Relaxed);
    match judge(interpreter, program) {
        Ok(Verdict::Same(said)) => {
            let mut upgraded = results.upgraded.lock().unwrap();
            for (sum, word) in upgraded.iter_mut().zip(said.split(' ').skip(1).step_by(2)) {
                *sum += word.parse::<u64>().unwrap();
            }
        }
        Ok(Verdict::KernelUnsteady(line)) => {
            results.unsteady.lock().unwrap().push(format!("{seed}: {line}"));
        }
        Ok(Verdict::DifferedOnce(plain, accelerated)) => {
            let name = format!("{}: seed {seed}", results.kind);
            let report = format!(
                "--- {name} differed once, and then no more; FREEPORT_SEED={seed} \
                 FREEPORT_PROGRAMS=1\n- {plain}\n+ {accelerated}\n{program}"
            );
            println!("{report}");
            if !unsteady_cases().contains(&*name) {
                results.failures.lock().unwrap().push(report);
            }
        }
        Ok(verdict @ Verdict::Different(..)) => {
            let report = report(interpreter, program, seed, &verdict);
            println!("{report}");
            results.failures.lock().unwrap().push(report);
        }
        Err(error) => results.failures.lock().unwrap().push(format!("seed {seed}: {error}")),
    }
}

/// Describes a difference, with a reduced program.
fn report(interpreter: &Interpreter, program: &Program, seed: u64, verdict: &Verdict) -> String {
    let quick = Interpreter { patience_ms: 400, more_plain_runs: 1, ..interpreter.clone() };
    let is_alike =
        |it: &Program| judge(&quick, it).is_ok_and(|found| found.kind() == verdict.kind());
    let looks = number("FREEPORT_LOOKS").map_or(LOOKS, |looks| looks as usize);
    let small = shrink(program, looks, is_alike);
    let Verdict::Different(plain, accelerated) = verdict else { return String::new() };
    let both = side_by_side(interpreter, &small);
    format!("--- FREEPORT_SEED={seed} FREEPORT_PROGRAMS=1\n- {plain}\n+ {accelerated}\n{both}")
}

/// With `FREEPORT_EVERYTHING`, programs include calls with known differences.
fn reach() -> Reach {
    let everything = std::env::var_os("FREEPORT_EVERYTHING").is_some();
    if everything { Reach::Everything } else { Reach::Settled }
}

/// Returns the difference of both runs of a program.
fn side_by_side(interpreter: &Interpreter, program: &Program) -> String {
    let text = |is_accelerated| {
        let transcript = interpreter.run(program, is_accelerated);
        transcript.map_or_else(|error| error.to_string(), |it| it.lines.join("\n"))
    };
    let (plain, accelerated) = (text(false), text(true));
    difference(&plain, &accelerated).unwrap_or(plain)
}

fn interpreter(folder: &Path) -> Interpreter {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let program =
        compile_folder(&root.join("interpreter"), &root.join("programs"), &cache).unwrap();
    let preload = Preload {
        library: accelerating::library().to_owned(),
        monitor: accelerating::monitor(folder),
    };
    let folder = folder.to_owned();
    Interpreter {
        executable: program.executable,
        preload,
        folder,
        // Some programs have a call that never returns, and each takes this long: no more than a
        // loaded machine may need for a call that does return.
        patience_ms: 30_000,
        keeps_streams: false,
        more_plain_runs: 5,
    }
}

#[test]
fn every_unsteady_program_is_one_that_is_tried() {
    let kinds = [RANDOM, IN_TURN];
    let is_tried = |entry: &str| {
        let (name, seed) = entry.split_once(": seed ")?;
        let kind = kinds.into_iter().find(|kind| kind.name == name)?;
        Some((1..=kind.long()).contains(&seed.parse().ok()?))
    };
    let entries = unsteady_cases().into_iter().filter(|entry| entry.contains(": seed "));
    let gone: Vec<_> = entries.filter(|entry| is_tried(entry) != Some(true)).collect();
    assert!(gone.is_empty(), "not tried: {gone:?}");
}

#[test]
fn programs_that_differed_once_do_not_any_more() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("kept");
    let folder = tempfile::tempdir().unwrap();
    let interpreter = interpreter(folder.path());
    let mut failures = vec![];
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        let program = Program::parse(&fs::read_to_string(&path).unwrap());
        match judge(&interpreter, &program).unwrap() {
            Verdict::Same(_) => {}
            verdict => failures.push(format!("{}: {verdict:?}", path.display())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a given program: for the analysis of a difference.
#[test]
fn a_program_that_is_given() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/kept/end_behind_bytes_in_the_kernel.steps");
    let file = std::env::var_os("FREEPORT_STEPS").unwrap_or_else(|| own.into());
    let program = Program::parse(&fs::read_to_string(file).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let reported = side_by_side(&interpreter(folder.path()), &program);
    println!("{reported}");
    assert!(!reported.is_empty());
}
