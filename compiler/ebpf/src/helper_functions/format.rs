// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formatted strings: to the trace, and to the program's memory.
//!
//! Formats support the kernel's subset of conversions: flags and a width, then `d i u x X c s` or
//! `p` with its suffixes; `l` or `ll` means 64 bits.

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::run::{Reason, Run};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Longest string argument or format, in bytes.
const TEXT_MAX: usize = 4_096;
/// Maximum width of a field.
const WIDTH_MAX: usize = 512;
/// Maximum size of arguments in memory, in bytes.
const ARGUMENT_BYTES_MAX: usize = 96;

/// `bpf_trace_printk`: prints a line with at most three arguments.
pub fn trace(run: &mut Run, _: &'static str) -> Called {
    let format = run.read(run.argument(1), run.argument(2) as u32 as usize)?.to_vec();
    let arguments = [3, 4, 5].map(|which| run.argument(which));
    let text = formatted(run, &format, &arguments)?;
    traced(run, text)
}

/// `bpf_trace_vprintk`: prints a line with arguments in memory.
pub fn trace_many(run: &mut Run, _: &'static str) -> Called {
    let format = run.read(run.argument(1), run.argument(2) as u32 as usize)?.to_vec();
    let arguments = match arguments(run, 3, 4)? {
        Ok(arguments) => arguments,
        Err(error) => return returned(Err(error)),
    };
    let text = formatted(run, &format, &arguments)?;
    traced(run, text)
}

fn traced(run: &mut Run, text: Result<String, ErrorNumber>) -> Called {
    returned(text.map(|text| {
        let length = text.len() as u64;
        run.scratch.note(text);
        length
    }))
}

/// `bpf_snprintf`: prints to memory; returns the full length including the terminator.
pub fn into_memory(run: &mut Run, _: &'static str) -> Called {
    let (address, size) = (run.argument(1), run.argument(2) as u32 as usize);
    run.write(address, size)?;
    let format = run.text(run.argument(3), TEXT_MAX)?.to_vec();
    let arguments = match arguments(run, 4, 5)? {
        Ok(arguments) => arguments,
        Err(error) => return returned(Err(error)),
    };
    let text = match formatted(run, &format, &arguments)? {
        Ok(text) => text,
        Err(error) => return returned(Err(error)),
    };
    if let Some(last) = size.checked_sub(1) {
        let kept = last.min(text.len());
        let memory = run.write(address, size)?;
        memory[..kept].copy_from_slice(&text.as_bytes()[..kept]);
        memory[kept] = 0;
    }
    Ok(Some(text.len() as u64 + 1))
}

/// Reads 64-bit arguments from memory; two arguments of the helper give address and size.
fn arguments(
    run: &Run,
    address: usize,
    size: usize,
) -> Result<Result<Vec<u64>, ErrorNumber>, Reason> {
    let size = run.argument(size) as u32 as usize;
    if !size.is_multiple_of(8) || size > ARGUMENT_BYTES_MAX {
        return Ok(Err(ErrorNumber::EINVAL));
    }
    let words = run.read(run.argument(address), size)?.chunks_exact(8);
    let number = |word: &[u8]| u64::from_le_bytes(word.try_into().expect("chunks of eight"));
    Ok(Ok(words.map(number).collect()))
}

/// A conversion of a format.
#[derive(Default)]
struct Conversion {
    pads_with_zeros: bool,
    is_left: bool,
    has_sign: bool,
    has_space: bool,
    width: usize,
    is_wide: bool,
}

/// Formats a string with its arguments.
fn formatted(
    run: &Run,
    format: &[u8],
    arguments: &[u64],
) -> Result<Result<String, ErrorNumber>, Reason> {
    let invalid = Ok(Err(ErrorNumber::EINVAL));
    let end = format.iter().position(|&byte| byte == 0).unwrap_or(format.len());
    let mut rest = &format[..end];
    let (mut text, mut arguments) = (String::new(), arguments.iter());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            if !byte.is_ascii() || (byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
                return invalid;
            }
            text.push(char::from(byte));
            continue;
        }
        if let [b'%', after @ ..] = rest {
            rest = after;
            text.push('%');
            continue;
        }
        let conversion = Conversion::read(&mut rest);
        let Some((&kind, after)) = rest.split_first() else { return invalid };
        rest = after;
        let Some(&argument) = arguments.next() else { return invalid };
        match converted(run, &conversion, kind, argument, &mut rest)? {
            Some(field) => conversion.pad(&mut text, &field),
            None => return invalid,
        }
    }
    Ok(Ok(text))
}

/// Formats one argument, or returns `None` for an unknown conversion.
fn converted(
    run: &Run,
    conversion: &Conversion,
    kind: u8,
    argument: u64,
    rest: &mut &[u8],
) -> Result<Option<String>, Reason> {
    let (unsigned, signed) = match conversion.is_wide {
        true => (argument, argument as i64),
        false => (u64::from(argument as u32), i64::from(argument as i32)),
    };
    Ok(Some(match kind {
        b'd' | b'i' => match (conversion.has_sign, conversion.has_space) {
            (true, _) if signed >= 0 => format!("+{signed}"),
            (_, true) if signed >= 0 => format!(" {signed}"),
            _ => signed.to_string(),
        },
        b'u' => unsigned.to_string(),
        b'x' => format!("{unsigned:x}"),
        b'X' => format!("{unsigned:X}"),
        b'c' => char::from(argument as u8).to_string(),
        b's' => String::from_utf8_lossy(run.text(argument, TEXT_MAX)?).into_owned(),
        b'p' => return pointer(run, argument, rest),
        _ => return Ok(None),
    }))
}

/// Formats an argument by `%p` and the characters after it.
fn pointer(run: &Run, argument: u64, rest: &mut &[u8]) -> Result<Option<String>, Reason> {
    let mut text = String::new();
    let after = match *rest {
        [b'i' | b'I', b'4', after @ ..] => {
            let bytes: [u8; 4] = run.read(argument, 4)?.try_into().expect("four bytes");
            let address = Ipv4Addr::from(bytes);
            let parts = address.octets();
            if rest[0] == b'i' {
                let [a, b, c, d] = parts;
                write!(text, "{a:03}.{b:03}.{c:03}.{d:03}")
            } else {
                write!(text, "{address}")
            }
            .expect("texts take anything");
            after
        }
        [b'i' | b'I', b'6', after @ ..] => {
            let bytes: [u8; 16] = run.read(argument, 16)?.try_into().expect("sixteen bytes");
            let separator = if rest[0] == b'I' { ":" } else { "" };
            let parts = Ipv6Addr::from(bytes).segments().map(|part| format!("{part:04x}"));
            text.push_str(&parts.join(separator));
            after
        }
        [b'k' | b'u', b's', after @ ..] => {
            text.push_str(&String::from_utf8_lossy(run.text(argument, TEXT_MAX)?));
            after
        }
        [b'x' | b'K' | b's' | b'S' | b'B', after @ ..] => {
            text = format!("{argument:016x}");
            after
        }
        [next, ..] if next.is_ascii_alphanumeric() => return Ok(None),
        after => {
            text = format!("{argument:016x}");
            after
        }
    };
    *rest = after;
    Ok(Some(text))
}

impl Conversion {
    /// Reads flags, width and length, which precede the conversion character.
    fn read(rest: &mut &[u8]) -> Self {
        let mut read = Self::default();
        while let [flag @ (b'0' | b'+' | b'-' | b' '), after @ ..] = *rest {
            match flag {
                b'0' => read.pads_with_zeros = true,
                b'+' => read.has_sign = true,
                b'-' => read.is_left = true,
                _ => read.has_space = true,
            }
            *rest = after;
        }
        while let [digit @ b'0'..=b'9', after @ ..] = *rest {
            read.width = (read.width * 10 + usize::from(digit - b'0')).min(WIDTH_MAX);
            *rest = after;
        }
        for _ in 0..2 {
            if let [b'l', after @ ..] = *rest {
                read.is_wide = true;
                *rest = after;
            }
        }
        read
    }

    /// Appends a field, padded to its width.
    fn pad(&self, text: &mut String, field: &str) {
        let missing = self.width.saturating_sub(field.chars().count());
        if self.is_left {
            text.push_str(field);
            text.extend(std::iter::repeat_n(' ', missing));
        } else if self.pads_with_zeros {
            let sign = usize::from(field.starts_with(['-', '+', ' ']));
            text.push_str(&field[..sign]);
            text.extend(std::iter::repeat_n('0', missing));
            text.push_str(&field[sign..]);
        } else {
            text.extend(std::iter::repeat_n(' ', missing));
            text.push_str(field);
        }
    }
}
