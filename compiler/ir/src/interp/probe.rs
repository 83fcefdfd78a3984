// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Output of probes to the host, and the text of a `printf`.

use crate::{Bits, InstanceId, Probe};
use num_bigint::BigUint;

/// An event from a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeEvent {
    /// Instance that ran the probe.
    pub instance: InstanceId,
    /// Number of firings of the instance that did something before this one.
    pub firing: u64,
    /// Kind of probe.
    pub kind: ProbeKind,
    /// Text of a printf; for other kinds the probe's name and operands.
    pub text: String,
}

/// The kind of a [`Probe`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProbeKind {
    /// `printf`.
    Printf,
    /// A breakpoint.
    Breakpoint,
    /// Operands under a name.
    Log,
}

/// Returns the kind and the text of a probe with these operands.
pub(super) fn describe(probe: &Probe, args: &[Bits]) -> (ProbeKind, String) {
    let listed =
        |name: &String| args.iter().fold(name.clone(), |text, arg| format!("{text} {arg}"));
    match probe {
        Probe::Printf(format) => (ProbeKind::Printf, format_printf(format, args)),
        Probe::Breakpoint(name) => (ProbeKind::Breakpoint, listed(name)),
        Probe::Log(name) => (ProbeKind::Log, listed(name)),
    }
}

/// Formats a C-style format string: `%d %i %u %x %X %o %c %p %%` with the flags `-`, `0`, `+`,
/// space and `#`, a width and a precision. Length modifiers are skipped: an operand is printed in
/// its own width, however wide, `%d` as a signed number. A conversion without an operand, or of
/// another kind, is copied verbatim.
pub fn format_printf(format: &str, args: &[Bits]) -> String {
    let mut text = String::new();
    let mut args = args.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let (spec, length) = Spec::parse(&rest[at..]);
        let written = &rest[at..at + length];
        rest = &rest[at + length..];
        match spec {
            Some(Spec { conversion: '%', .. }) => text.push('%'),
            Some(spec) => match args.next() {
                Some(arg) => text.push_str(&spec.render(arg)),
                None => text.push_str(written),
            },
            None => text.push_str(written),
        }
    }
    text + rest
}

/// Maximum field width that a format can request.
const MAX_WIDTH: usize = 4_096;

/// A conversion specification.
#[derive(Default)]
struct Spec {
    is_left: bool,
    fills_with_zeros: bool,
    shows_plus: bool,
    leaves_space: bool,
    is_alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

impl Spec {
    /// Parses the conversion at the start of `text`, which is a `%`, and returns it with its length
    /// in bytes; `None` if the conversion is unknown.
    fn parse(text: &str) -> (Option<Self>, usize) {
        let mut spec = Self::default();
        let mut left = text[1..].char_indices().map(|(at, c)| (at + 1, c)).peekable();
        while let Some((_, flag)) = left.next_if(|(_, c)| "-0+ #".contains(*c)) {
            match flag {
                '-' => spec.is_left = true,
                '0' => spec.fills_with_zeros = true,
                '+' => spec.shows_plus = true,
                ' ' => spec.leaves_space = true,
                _ => spec.is_alternate = true,
            }
        }
        let number = |left: &mut std::iter::Peekable<_>| {
            let mut value = 0_usize;
            while let Some((_, digit)) = left.next_if(|(_, c): &(usize, char)| c.is_ascii_digit()) {
                let digit = digit as usize - '0' as usize;
                value = value.saturating_mul(10).saturating_add(digit).min(MAX_WIDTH);
            }
            value
        };
        spec.width = number(&mut left);
        if left.next_if(|(_, c)| *c == '.').is_some() {
            spec.precision = Some(number(&mut left));
        }
        while left.next_if(|(_, c)| "hljztLq".contains(*c)).is_some() {}
        match left.next() {
            Some((at, conversion)) if "diuxXocp%".contains(conversion) => {
                spec.conversion = conversion;
                (Some(spec), at + 1)
            }
            _ => (None, 1),
        }
    }

    fn render(&self, arg: &Bits) -> String {
        if self.conversion == 'c' {
            return self.pad("", &char::from(arg.to_u64() as u8).to_string(), false);
        }
        let is_signed = "di".contains(self.conversion);
        let is_negative = is_signed && arg.is_negative();
        let magnitude = match is_negative {
            true => Bits::unary(crate::UnaryOp::Neg, arg),
            false => arg.clone(),
        };
        let magnitude = BigUint::from_bytes_le(&magnitude.to_le_bytes());
        let is_zero = magnitude == BigUint::ZERO;
        let mut digits = match self.conversion {
            'x' | 'p' => magnitude.to_str_radix(16),
            'X' => magnitude.to_str_radix(16).to_uppercase(),
            'o' => magnitude.to_str_radix(8),
            _ => magnitude.to_string(),
        };
        if self.precision == Some(0) && is_zero {
            digits.clear();
        }
        let missing = self.precision.unwrap_or(0).saturating_sub(digits.len());
        digits.insert_str(0, &"0".repeat(missing));
        let prefix = match self.conversion {
            _ if is_negative => "-",
            _ if is_signed && self.shows_plus => "+",
            _ if is_signed && self.leaves_space => " ",
            'p' => "0x",
            'x' if self.is_alternate && !is_zero => "0x",
            'X' if self.is_alternate && !is_zero => "0X",
            'o' if self.is_alternate && !digits.starts_with('0') => "0",
            _ => "",
        };
        self.pad(prefix, &digits, self.fills_with_zeros && self.precision.is_none())
    }

    fn pad(&self, prefix: &str, digits: &str, with_zeros: bool) -> String {
        let missing = self.width.saturating_sub(prefix.len() + digits.len());
        match (self.is_left, with_zeros) {
            (true, _) => format!("{prefix}{digits}{}", " ".repeat(missing)),
            (false, true) => format!("{prefix}{}{digits}", "0".repeat(missing)),
            (false, false) => format!("{}{prefix}{digits}", " ".repeat(missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(format: &str, args: &[(u32, u64)]) -> String {
        let args: Vec<Bits> = args.iter().map(|arg| Bits::from_u64(arg.0, arg.1)).collect();
        format_printf(format, &args)
    }

    /// The expected texts are those of the C library's printf.
    #[test]
    fn conversions_print_as_in_c() {
        let minus_five = (32, -5_i32 as u32 as u64);
        assert_eq!(print("%d|%u|%x", &[minus_five; 3]), "-5|4294967291|fffffffb");
        assert_eq!(print("%5d|%-5d|%05d|%+d", &[(32, 42); 4]), "   42|42   |00042|+42");
        assert_eq!(print("%#x|%08X|%#010x", &[(32, 0xbeef); 3]), "0xbeef|0000BEEF|0x0000beef");
        assert_eq!(print("%.4d|%8.3d|%-6.2x|", &[(32, 7); 3]), "0007|     007|07    |");
        assert_eq!(print("%o %#o %c %p", &[(8, 8), (8, 8), (8, 65), (8, 255)]), "10 010 A 0xff");
        assert_eq!(print("%.0d|%#x|% d", &[(8, 0), (8, 0), (8, 3)]), "|0| 3");
        assert_eq!(print("100%% of %llu %hhd", &[(64, u64::MAX), (8, 255)]), {
            "100% of 18446744073709551615 -1"
        });
    }

    #[test]
    fn wide_operands_print_whole() {
        let wide = Bits::parse(200, "123456789012345678901234567890", 10).unwrap();
        let negative = Bits::unary(crate::UnaryOp::Neg, &wide);
        let text = format_printf("%u %d", &[wide, negative]);
        assert_eq!(text, "123456789012345678901234567890 -123456789012345678901234567890");
    }

    #[test]
    fn what_is_no_conversion_or_has_no_operand_stays() {
        assert_eq!(print("%s %k %", &[(8, 1)]), "%s %k %");
        assert_eq!(print("a %d b %d é%", &[(8, 1)]), "a 1 b %d é%");
    }
}
