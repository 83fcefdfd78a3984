// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A plugin for test suites of the instruction set: runs a program, read as hexadecimal bytes from
//! standard input, on the simulated card, on memory given by the first argument in the same form,
//! and prints register 0. `--on vliw` runs it on the model of the processor instead, `--on
//! interpreter` in the interpreter. The program is a function of an XDP program whose packet is the
//! memory; without memory the packet is one zero byte. A program that cannot run or is aborted is
//! an error.

use freeport_card::Sim;
use freeport_ebpf::conformance::{answer, bytes, program};
use freeport_ebpf::interpreter::Environment;
use freeport_vliw::Options;
use freeport_xdp::{Interpreter, Vliw, object_of_bare, run_bare};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    answer(std::io::stdin(), std::io::stdout(), std::io::stderr(), |text| run(&arguments, text))
}

/// Runs the program in `text` and returns register 0 at its end.
fn run(arguments: &[String], text: &str) -> Result<u64, String> {
    let (mut memory, mut on) = (vec![0], "sim".to_owned());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--on" {
            let place = arguments.next().ok_or("--on needs interpreter, vliw or sim")?;
            on.clone_from(place);
        } else if argument.starts_with("--") {
            return Err(format!("{argument}: unknown option; programs are given as plain bytes"));
        } else {
            memory = bytes(argument)?;
        }
    }
    let object = object_of_bare(&program(text)?);
    let environment = Environment::default();
    let said = |error: freeport_xdp::Error| error.to_string();
    match on.as_str() {
        "interpreter" => {
            let mut target = Interpreter::load(&object, environment).map_err(said)?;
            run_bare(&mut target, &memory).map_err(said)
        }
        "vliw" => {
            let target = Vliw::load(&object, &Options::default(), environment);
            run_bare(&mut target.map_err(said)?, &memory).map_err(said)
        }
        "sim" => {
            let mut target = Sim::load(&object, &Options::default(), &environment).map_err(said)?;
            let returned = run_bare(&mut target, &memory);
            let stop = target.last().map_or(0, |tags| tags.stop);
            returned.map_err(|error| match stop {
                0 => said(error),
                reason => format!("{error}: reason {reason} of docs/internals/sephirot.md"),
            })
        }
        other => Err(format!("--on {other}: expected interpreter, vliw or sim")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(arguments: &[&str], text: &str) -> Result<u64, String> {
        let arguments: Vec<String> = arguments.iter().map(|text| text.to_string()).collect();
        run(&arguments, text)
    }

    #[test]
    fn a_program_runs_wherever_it_is_told_to() {
        // r0 = the eight bytes at r1, plus r2, which is the number of bytes.
        let program = "7910000000000000 0f20000000000000 9500000000000000";
        let memory = "01 00 00 00 00 00 00 80 09";
        for on in ["interpreter", "vliw", "sim"] {
            assert_eq!(ran(&[memory, "--on", on], program), Ok(0x8000_0000_0000_000a), "{on}");
            assert!(ran(&["01", "--on", on], program).is_err(), "{on}");
        }
        assert!(ran(&["01"], program).is_err_and(|reason| reason.contains("reason 1")));
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        let exit = "9500000000000000";
        assert!(ran(&["--elf"], exit).is_err_and(|reason| reason.starts_with("--elf")));
        assert!(ran(&["--on", "kernel"], exit).is_err_and(|reason| reason.contains("kernel")));
        assert!(ran(&["--on"], exit).is_err() && ran(&["zz"], exit).is_err());
        // The register of the call does not hold a function.
        assert!(ran(&[], "8d02000000000000 9500000000000000").is_err());
    }
}
