// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plugin interface of the bpf_conformance runner: input and output of programs and memory as
//! hexadecimal digits.

use crate::instruction::Instruction;
use std::io::{Read, Write};
use std::process::ExitCode;

/// Reads a program's text, runs it, and writes its 64-bit result, or the reason for which it
/// failed.
pub fn answer(
    mut input: impl Read,
    mut output: impl Write,
    mut errors: impl Write,
    run: impl FnOnce(&str) -> Result<u64, String>,
) -> ExitCode {
    let mut text = String::new();
    let read = input.read_to_string(&mut text);
    let result = read.map_err(|error| format!("standard input: {error}"));
    let (written, code) = match result.and_then(|_| run(&text)) {
        Ok(value) => (writeln!(output, "{value:x}"), ExitCode::SUCCESS),
        Err(reason) => (writeln!(errors, "{reason}"), ExitCode::FAILURE),
    };
    if written.is_ok() { code } else { ExitCode::FAILURE }
}

/// Parses the instructions of a program from its bytes.
///
/// # Errors
/// The text is not a program.
pub fn program(text: &str) -> Result<Vec<Instruction>, String> {
    let code = bytes(text)?;
    let (slots, rest) = code.as_chunks();
    if !rest.is_empty() || code.is_empty() {
        return Err(format!(
            "{} bytes are not a program: each instruction has 8 bytes",
            code.len()
        ));
    }
    Ok(slots.iter().map(|slot| Instruction::from_bytes(*slot)).collect())
}

/// Parses bytes from hexadecimal digits, with or without spaces between them.
///
/// # Errors
/// The text contains anything else.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
        let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        byte.ok_or_else(|| "expected pairs of hexadecimal digits".to_owned())
    };
    digits.chunks(2).map(byte).collect()
}
