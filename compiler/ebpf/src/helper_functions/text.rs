// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that parse numbers and compare strings.

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::run::{Reason, Run};

/// Bits of the flags with the base.
const BASE_FLAGS: u64 = 0x1f;
/// Longest number in characters, as in the kernel.
const DIGITS_MAX: usize = 63;
/// Longest string that is compared, in bytes.
const TEXT_MAX: usize = 4_096;

/// `bpf_strtol`: parses a signed number; returns the number of characters.
pub fn signed_number(run: &mut Run, _: &'static str) -> Called {
    let parsed = parse_argument(run)?.and_then(|parsed| {
        let limit = if parsed.is_negative { 1 << 63 } else { (1 << 63) - 1 };
        if parsed.value > limit { Err(ErrorNumber::ERANGE) } else { Ok(parsed) }
    });
    let value = |parsed: &Parsed| match parsed.is_negative {
        true => parsed.value.wrapping_neg(),
        false => parsed.value,
    };
    finish(run, parsed.map(|parsed| (value(&parsed), parsed.length)))
}

/// `bpf_strtoul`: parses an unsigned number; returns the number of characters.
pub fn number(run: &mut Run, _: &'static str) -> Called {
    let parsed = parse_argument(run)?
        .and_then(|parsed| if parsed.is_negative { Err(ErrorNumber::EINVAL) } else { Ok(parsed) });
    finish(run, parsed.map(|parsed| (parsed.value, parsed.length)))
}

/// Stores the number, or 0 for an error, at the address in argument 4.
fn finish(run: &mut Run, parsed: Result<(u64, usize), ErrorNumber>) -> Called {
    let value = parsed.map_or(0, |(value, _)| value);
    run.write(run.argument(4), 8)?.copy_from_slice(&value.to_le_bytes());
    returned(parsed.map(|(_, length)| length as u64))
}

/// A parsed number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parsed {
    value: u64,
    is_negative: bool,
    length: usize,
}

fn parse_argument(run: &Run) -> Result<Result<Parsed, ErrorNumber>, Reason> {
    let text = run.read(run.argument(1), run.argument(2) as usize)?;
    Ok(parse(text, run.argument(3)))
}

/// Parses white space, a sign and digits of the base in the flags; base 0 is determined by a
/// prefix.
fn parse(text: &[u8], flags: u64) -> Result<Parsed, ErrorNumber> {
    let base = (flags & BASE_FLAGS) as u32;
    if !matches!(base, 0 | 8 | 10 | 16) || flags & !BASE_FLAGS != 0 {
        return Err(ErrorNumber::EINVAL);
    }
    let is_space = |&&byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r' | 0xa0);
    let mut length = text.iter().take_while(is_space).count();
    let is_negative = text.get(length) == Some(&b'-');
    length += usize::from(is_negative);
    let digits = &text[length..];
    let digits = &digits[..digits.len().min(DIGITS_MAX)];
    let (base, prefix) = base_of(digits, base);
    let (mut value, mut count, mut overflows) = (0_u64, 0, false);
    for digit in digits[prefix..].iter().map_while(|&byte| char::from(byte).to_digit(base)) {
        let next = value.checked_mul(base.into()).and_then(|v| v.checked_add(digit.into()));
        overflows |= next.is_none();
        value = next.unwrap_or(value);
        count += 1;
    }
    match (overflows, count) {
        (true, _) => Err(ErrorNumber::ERANGE),
        (_, 0) => Err(ErrorNumber::EINVAL),
        _ => Ok(Parsed { value, is_negative, length: length + prefix + count }),
    }
}

/// Returns the base of a number, and the length of its prefix.
fn base_of(digits: &[u8], base: u32) -> (u32, usize) {
    let says_hexadecimal = matches!(digits, [b'0', b'x' | b'X', ..]);
    match base {
        0 if says_hexadecimal && digits.get(2).is_some_and(u8::is_ascii_hexdigit) => (16, 2),
        0 if digits.first() == Some(&b'0') => (8, 0),
        0 => (10, 0),
        16 if says_hexadecimal => (16, 2),
        base => (base, 0),
    }
}

/// `bpf_strncmp`: compares at most argument 2 characters with a string of the program.
pub fn compare(run: &mut Run, _: &'static str) -> Called {
    let first = run.read(run.argument(1), run.argument(2) as u32 as usize)?;
    let second = run.text(run.argument(3), TEXT_MAX)?;
    for (at, &byte) in first.iter().enumerate() {
        let other = second.get(at).copied().unwrap_or(0);
        if byte != other {
            return Ok(Some(if byte < other { -1_i64 as u64 } else { 1 }));
        }
        if byte == 0 {
            break;
        }
    }
    Ok(Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, base: u64) -> Result<(u64, bool, usize), ErrorNumber> {
        parse(text.as_bytes(), base).map(|p| (p.value, p.is_negative, p.length))
    }

    #[test]
    fn numbers_are_read_as_the_kernel_reads_them() {
        assert_eq!(parsed("42", 10), Ok((42, false, 2)));
        assert_eq!(parsed(" \t-42x", 0), Ok((42, true, 5)));
        assert_eq!(parsed("0x1fg", 0), Ok((31, false, 4)));
        assert_eq!(parsed("0x1f", 16), Ok((31, false, 4)));
        assert_eq!(parsed("017", 0), Ok((15, false, 3)));
        assert_eq!(parsed("0x", 0), Ok((0, false, 1)), "an octal 0, and what follows");
        assert_eq!(parsed("18446744073709551615", 10), Ok((u64::MAX, false, 20)));
        assert_eq!(parsed("18446744073709551616", 10), Err(ErrorNumber::ERANGE));
        for (text, base) in [("", 10), ("-", 10), ("x", 10), ("9", 8), ("1", 2), ("1", 32)] {
            assert_eq!(parsed(text, base), Err(ErrorNumber::EINVAL), "{text} {base}");
        }
    }
}
