// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A plugin for test suites of the instruction set: runs the program that comes as hexadecimal
//! bytes on standard input, on memory that the first argument gives in the same form, and prints
//! register 0. What cannot run, and what aborts, is an error.

use freeport_ebpf::instruction::Instruction;
use freeport_ebpf::interpreter::{Environment, Machine, Packet};
use freeport_ebpf::object::{Object, Program, ProgramKind};
use std::io::{Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    let result = read.map_err(|error| format!("standard input: {error}"));
    let (written, code) = match result.and_then(|_| run(&arguments, &text)) {
        Ok(value) => (writeln!(std::io::stdout(), "{value:x}"), ExitCode::SUCCESS),
        Err(reason) => (writeln!(std::io::stderr(), "{reason}"), ExitCode::FAILURE),
    };
    if written.is_ok() { code } else { ExitCode::FAILURE }
}

/// Register 0 at the end of the program in `text`.
fn run(arguments: &[String], text: &str) -> Result<u64, String> {
    if let Some(option) = arguments.iter().find(|argument| argument.starts_with("--")) {
        return Err(format!("{option}: there is no such option; programs come as plain bytes"));
    }
    let memory = arguments.first().map_or(Ok(vec![]), |memory| bytes(memory))?;
    let code = bytes(text)?;
    let slots = code.chunks_exact(8);
    if !slots.remainder().is_empty() || code.is_empty() {
        return Err(format!("{} bytes are no program: instructions have 8", code.len()));
    }
    let slot = |slot: &[u8]| Instruction::from_bytes(slot.try_into().expect("chunks of eight"));
    let object = Object {
        programs: vec![Program {
            name: "standard input".to_owned(),
            section: "xdp".to_owned(),
            kind: ProgramKind::Xdp,
            instructions: slots.map(slot).collect(),
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

/// The bytes of a text of hexadecimal digits, with or without spaces between them.
fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
        let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        byte.ok_or_else(|| "it is not pairs of hexadecimal digits".to_owned())
    };
    digits.chunks(2).map(byte).collect()
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
        // r0 = the two bytes at r1, plus r2, which is how many bytes there are.
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
        assert!(unknown.is_err_and(|reason| reason.contains("helper 9 does not run here")));
    }
}
