// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A plugin for test suites of the instruction set: runs a program, read as hexadecimal bytes from
//! standard input, on memory given by the first argument in the same form, and prints register 0. A
//! program that cannot run or is aborted is an error.

use freeport_ebpf::conformance::{answer, bytes, program};
use freeport_ebpf::interpreter::{Environment, Machine, Packet};
use freeport_ebpf::object::{Object, Program, ProgramKind};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    answer(std::io::stdin(), std::io::stdout(), std::io::stderr(), |text| run(&arguments, text))
}

/// Runs the program in `text` and returns register 0 at its end.
fn run(arguments: &[String], text: &str) -> Result<u64, String> {
    if let Some(option) = arguments.iter().find(|argument| argument.starts_with("--")) {
        return Err(format!("{option}: unknown option; programs are given as plain bytes"));
    }
    let memory = arguments.first().map_or(Ok(vec![]), |memory| bytes(memory))?;
    let object = Object {
        programs: vec![Program {
            name: "standard input".to_owned(),
            section: "xdp".to_owned(),
            kind: ProgramKind::Xdp,
            instructions: program(text)?,
            ..Program::default()
        }],
        ..Object::default()
    };
    let mut machine =
        Machine::load(&object, Environment::default()).map_err(|error| error.to_string())?;
    let mut memory = Packet::new(&memory).map_err(|error| error.to_string())?;
    let outcome = machine.run_on_bytes(0, &mut memory);
    outcome.aborted.map_or(Ok(outcome.value), |abort| Err(abort.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(arguments: &[&str], text: &str) -> Result<u64, String> {
        let arguments: Vec<String> = arguments.iter().map(|text| text.to_string()).collect();
        run(&arguments, text)
    }

    #[test]
    fn a_program_runs_on_the_memory_that_is_given() {
        // r0 = the two bytes at r1, plus r2, which is the number of bytes.
        let program = "6910000000000000 0f20000000000000 95 00 00 00 00 00 00 00";
        assert_eq!(ran(&["01 02 03"], program), Ok(0x0204));
        assert_eq!(ran(&["0102"], &program.replace(' ', "")), Ok(0x0203));
        assert!(ran(&["01"], program).is_err_and(|reason| reason.contains("outside the packet")));
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        let exit = "9500000000000000";
        assert!(ran(&["--elf"], exit).is_err_and(|reason| reason.starts_with("--elf")));
        assert!(ran(&[], "").is_err() && ran(&[], "95").is_err());
        assert!(ran(&["zz"], exit).is_err() && ran(&["012"], exit).is_err());
        let unknown = ran(&[], "8500000009000000 9500000000000000");
        assert!(unknown.is_err_and(|reason| reason.contains("helper 9 is not supported")));
    }
}
