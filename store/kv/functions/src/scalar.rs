// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single elements: arguments and results, as bytes and as text.

use crate::element::{Element, for_element};
use crate::error::Error;
use crate::number::Number;
use std::error;
use std::fmt;

/// One element with its type. Two are equal if their types and bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    element: Element,
    bits: u64,
}

impl Scalar {
    /// Returns the element with these bits, extended as [`Self::bits`] says. Higher bits than the
    /// element has are ignored.
    pub fn from_bits(element: Element, bits: u64) -> Self {
        let bits =
            for_element!(element, T => <T as Number>::to_bits(<T as Number>::from_bits(bits)));
        Self { element, bits }
    }

    /// Reads an element from its bytes in memory.
    ///
    /// # Errors
    /// [`Error::NotScalar`] if there are more or less bytes.
    pub fn load(element: Element, bytes: &[u8]) -> Result<Self, Error> {
        let length = bytes.len();
        if length != element.width() {
            return Err(Error::NotScalar { length, element });
        }
        let bits = for_element!(element, T => <T as Number>::to_bits(T::load(bytes)));
        Ok(Self { element, bits })
    }

    /// Reads an element from the text of an argument: a number in decimals, or `0x` and the bits
    /// in hexadecimal digits. A float can have a fraction and an exponent, or be `inf` or `nan`
    /// with a sign; it is rounded to nearest.
    ///
    /// # Errors
    /// The text is no number, or out of range. The error names `argument`.
    pub fn parse(element: Element, argument: &str, text: &[u8]) -> Result<Self, ScalarError> {
        let error = |reason| {
            let argument = argument.to_owned();
            ScalarError { argument, text: excerpt(text), element, reason }
        };
        let text = std::str::from_utf8(text).map_err(|_| error(Reason::Syntax))?;
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let bits = match hexadecimal {
            Some(digits) => parse_bits(digits, element),
            None => match element {
                Element::F32 => parse_float::<f32>(text).map(<f32 as Number>::to_bits),
                Element::F64 => parse_float::<f64>(text).map(<f64 as Number>::to_bits),
                _ => parse_integer(text, element),
            },
        };
        Ok(Self::from_bits(element, bits.map_err(error)?))
    }

    /// Type of the element.
    pub fn element(self) -> Element {
        self.element
    }

    /// The element extended to 64 bits: the sign of a signed integer, otherwise zeros. A float is
    /// its pattern in the low bits.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// Appends the bytes in memory.
    pub fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.bits.to_le_bytes()[..self.element.width()]);
    }
}

impl fmt::Display for Scalar {
    /// Writes the shortest decimal number that [`Scalar::parse`] reads as the same element; all
    /// NaN are `NaN`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for_element!(self.element, T => <T as Number>::from_bits(self.bits).fmt(out))
    }
}

/// The text of an argument that is no element of the wanted type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarError {
    argument: String,
    text: String,
    element: Element,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Syntax,
    Range,
}

impl fmt::Display for ScalarError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argument, text, element, reason } = self;
        match reason {
            Reason::Syntax => write!(out, "{argument}: `{text}` is no number ({element})"),
            Reason::Range => {
                write!(out, "{argument}: {text} is out of range for {element}, ")?;
                match element {
                    Element::F32 => write!(out, "{:e} to {:e}", f32::MIN, f32::MAX),
                    Element::F64 => write!(out, "{:e} to {:e}", f64::MIN, f64::MAX),
                    _ => for_element!(element, T => write!(out, "{} to {}", T::MIN, T::MAX)),
                }
            }
        }
    }
}

impl error::Error for ScalarError {}

/// The beginning of a text, fit for a message.
fn excerpt(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    let end = text.len().min(LONGEST);
    let more = if text.len() > LONGEST { "..." } else { "" };
    format!("{}{more}", text[..end].escape_ascii())
}

/// Reads the bits of an element.
fn parse_bits(digits: &str, element: Element) -> Result<u64, Reason> {
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(Reason::Syntax);
    }
    let bits = u64::from_str_radix(digits, 16).map_err(|_| Reason::Range)?;
    let is_wider = element.width() < 8 && bits >> (8 * element.width()) != 0;
    if is_wider { Err(Reason::Range) } else { Ok(bits) }
}

/// Reads an integer, extended to 64 bits.
fn parse_integer(text: &str, element: Element) -> Result<u64, Reason> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(Reason::Syntax);
    }
    let number: i128 = text.parse().map_err(|_| Reason::Range)?;
    let scalar = Scalar::from_bits(element, number as u64);
    let is_signed = element.widest() == Element::I64;
    let stored = if is_signed { (scalar.bits as i64).into() } else { i128::from(scalar.bits) };
    if stored == number { Ok(scalar.bits) } else { Err(Reason::Range) }
}

/// Reads a float. A finite number beyond the range is an error, and is not rounded to infinity.
fn parse_float<T: Number + std::str::FromStr>(text: &str) -> Result<T, Reason> {
    let number: T = text.parse().map_err(|_| Reason::Syntax)?;
    let is_infinite = number == T::HIGHEST || number == T::LOWEST;
    let is_written = text.bytes().any(|letter| letter.eq_ignore_ascii_case(&b'i'));
    if is_infinite && !is_written { Err(Reason::Range) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(element: Element, text: &str) -> Result<String, String> {
        match Scalar::parse(element, "delta", text.as_bytes()) {
            Ok(scalar) => Ok(scalar.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn integers_are_checked_against_their_range() {
        for element in &Element::ALL[..8] {
            let (least, greatest): (i128, i128) = for_element!(element, T => {
                if T::MIN < (0 as T) {
                    let half = 1_i128 << (8 * element.width() - 1);
                    (-half, half - 1)
                } else {
                    (0, (1_i128 << (8 * element.width())) - 1)
                }
            });
            for number in [least, greatest, 0, 1, 100] {
                let text = number.to_string();
                assert_eq!(parse(*element, &text), Ok(text.clone()));
            }
            for number in [least - 1, greatest + 1, i128::MAX, i128::MIN] {
                let expected =
                    format!("delta: {number} is out of range for {element}, {least} to {greatest}");
                assert_eq!(parse(*element, &number.to_string()), Err(expected));
            }
            assert_eq!(parse(*element, "+7"), Ok("7".into()));
            let sevens = "7".repeat(60);
            assert!(parse(*element, &sevens).unwrap_err().contains("7777... is out of range"));
            for text in ["", "-", "+", "1.0", "1e3", " 1", "1 ", "--1", "٣", "nan", "1_000"] {
                let error = parse(*element, text).unwrap_err();
                assert!(error.ends_with(&format!("is no number ({element})")), "{error}");
            }
        }
    }

    #[test]
    fn hexadecimal_digits_are_bits() {
        assert_eq!(parse(Element::U8, "0xfF"), Ok("255".into()));
        assert_eq!(parse(Element::I8, "0XFF"), Ok("-1".into()));
        assert_eq!(parse(Element::I64, "0x8000000000000000"), Ok(i64::MIN.to_string()));
        assert_eq!(parse(Element::F32, "0x3fc00000"), Ok("1.5".into()));
        assert_eq!(parse(Element::U64, "0x0000000000000000001"), Ok("1".into()));
        for (element, text) in [(Element::U8, "0x100"), (Element::U64, "0x10000000000000000")] {
            assert!(parse(element, text).unwrap_err().contains("out of range"), "{text}");
        }
        for text in ["0x", "0x+1", "0x-1", "-0x1", "0xg", "0x1.0"] {
            assert!(parse(Element::U32, text).unwrap_err().contains("no number"), "{text}");
        }
    }

    #[test]
    fn floats_are_rounded_but_not_to_infinity() {
        assert_eq!(parse(Element::F64, "0.1"), Ok("0.1".into()));
        assert_eq!(parse(Element::F32, "16777217"), Ok("16777216".into()));
        assert_eq!(parse(Element::F32, "-0"), Ok("-0".into()));
        assert_eq!(parse(Element::F32, "-inf"), Ok("-inf".into()));
        assert_eq!(parse(Element::F64, "Infinity"), Ok("inf".into()));
        assert_eq!(parse(Element::F64, "nan"), Ok("NaN".into()));
        let error = parse(Element::F32, "1e39").unwrap_err();
        let range = "-3.4028235e38 to 3.4028235e38";
        assert_eq!(error, format!("delta: 1e39 is out of range for f32, {range}"));
        assert!(parse(Element::F64, "-1e309").unwrap_err().contains("out of range for f64"));
        for text in ["", "e", "1e", "0x1p3", "infinite", "1,5"] {
            assert!(parse(Element::F64, text).unwrap_err().contains("no number"), "{text}");
        }
    }

    #[test]
    fn a_message_quotes_any_bytes() {
        let error = Scalar::parse(Element::U8, "amount", b"\xff\n`").unwrap_err();
        assert_eq!(error.to_string(), r"amount: `\xff\n`` is no number (u8)");
    }

    #[test]
    fn bytes_and_bits_agree() {
        for element in Element::ALL {
            for bits in [0, 1, 0x80, 0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210, u64::MAX] {
                let scalar = Scalar::from_bits(element, bits);
                let mut bytes = vec![];
                scalar.append_to(&mut bytes);
                assert_eq!(bytes, bits.to_le_bytes()[..element.width()]);
                assert_eq!(Scalar::load(element, &bytes), Ok(scalar));
                assert_eq!(Scalar::from_bits(element, scalar.bits()), scalar);
                bytes.push(0);
                assert!(Scalar::load(element, &bytes).is_err());
            }
        }
        assert_eq!(Scalar::from_bits(Element::I16, 0x8000).bits(), 0xffff_ffff_ffff_8000);
        assert_eq!(Scalar::from_bits(Element::F32, u64::MAX).bits(), 0xffff_ffff);
    }
}
