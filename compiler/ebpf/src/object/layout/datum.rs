// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes the bytes of a key or a value.

use super::{Layout, Member};
use std::fmt;

/// Maximum number of decoded numbers and names; further ones are omitted. Members may overlap, so a
/// file can define more data than there are bytes.
const DATA_MAX: usize = 1 << 20;

/// Decoded bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum {
    /// An unsigned number.
    Unsigned(u128),
    /// A signed number.
    Signed(i128),
    /// The name of an enum value.
    Name(String),
    /// Members with their names.
    Struct(Vec<(String, Datum)>),
    /// Elements.
    Array(Vec<Datum>),
    /// Bytes of unknown structure, or with some missing.
    Bytes(Vec<u8>),
}

impl Layout {
    /// Decodes bytes that begin with a value of this layout.
    pub fn decode(&self, bytes: &[u8]) -> Datum {
        self.decode_bits(bytes, 0, 0, &mut { DATA_MAX })
    }

    /// Decodes a part of the bytes, from a bit on; `field_bits` is as in [`Member`], and `left` is
    /// the number of data that may still be decoded.
    fn decode_bits(&self, bytes: &[u8], bit: usize, field_bits: u32, left: &mut usize) -> Datum {
        *left = left.saturating_sub(1);
        let size = self.bytes() as usize;
        let rest = bytes.get(bit / 8..).unwrap_or_default();
        let own = &rest[..rest.len().min(size)];
        let bits = if field_bits == 0 { 8 * size } else { field_bits as usize };
        let decoded = match self {
            Self::Integer { is_signed, .. } => {
                number(bytes, bit, bits).map(|word| signed_or_not(word, bits, *is_signed))
            }
            Self::Enum { is_signed, names, .. } => number(bytes, bit, bits).map(|word| {
                let number = signed_or_not(word, bits, *is_signed);
                let wide = match number {
                    Datum::Signed(number) => number as u64,
                    _ => word as u64,
                };
                let found = names.iter().find(|(_, value)| *value == wide);
                found.map_or(number, |(name, _)| Datum::Name(name.clone()))
            }),
            Self::Struct { members, .. } => {
                let mut found = vec![];
                for Member { name, bit_offset, field_bits, layout } in members {
                    if *left == 0 {
                        break;
                    }
                    let place = bit + *bit_offset as usize;
                    match layout.decode_bits(bytes, place, *field_bits, left) {
                        Datum::Struct(nested) if name.is_empty() => found.extend(nested),
                        datum => found.push((name.clone(), datum)),
                    }
                }
                Some(Datum::Struct(found))
            }
            Self::Array { element, .. } if element.bytes() > 0 => {
                let elements = own.chunks(element.bytes() as usize).take(*left);
                let decoded = elements.map(|bytes| element.decode_bits(bytes, 0, 0, left));
                Some(Datum::Array(decoded.collect()))
            }
            Self::Array { .. } | Self::Opaque { .. } => None,
        };
        decoded.unwrap_or_else(|| Datum::Bytes(own.to_vec()))
    }
}

/// Returns up to 128 bits from a bit on, lowest first, or `None` if some are missing.
fn number(bytes: &[u8], bit: usize, bits: usize) -> Option<u128> {
    if bits > 128 || bit.checked_add(bits)? > 8 * bytes.len() {
        return None;
    }
    let value = |at: usize| u128::from(bytes[(bit + at) / 8] >> ((bit + at) % 8) & 1) << at;
    Some((0..bits).map(value).sum())
}

fn signed_or_not(word: u128, bits: usize, is_signed: bool) -> Datum {
    if !is_signed {
        return Datum::Unsigned(word);
    }
    let unused = 128 - bits as u32;
    // Zero bits decode to 0.
    let widened = (word.checked_shl(unused).unwrap_or(0) as i128).checked_shr(unused);
    Datum::Signed(widened.unwrap_or(0))
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        match self {
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Struct(members) => {
                f.write_str("{")?;
                for (name, datum) in members {
                    write!(f, "{separator}{name}: {datum}")?;
                    separator = ", ";
                }
                f.write_str("}")
            }
            Self::Array(elements) => {
                f.write_str("[")?;
                for element in elements {
                    write!(f, "{separator}{element}")?;
                    separator = ", ";
                }
                f.write_str("]")
            }
            Self::Bytes(bytes) => {
                for byte in bytes {
                    write!(f, "{separator}{byte:02x}")?;
                    separator = " ";
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Layout = Layout::Integer { bytes: 4, is_signed: true };

    fn member(name: &str, bit_offset: u32, field_bits: u32, layout: Layout) -> Member {
        Member { name: name.into(), bit_offset, field_bits, layout }
    }

    #[test]
    fn members_are_told_by_their_names() {
        let short = Layout::Integer { bytes: 2, is_signed: false };
        let kinds = vec![("NONE".to_owned(), 0), ("LESS".to_owned(), -1_i64 as u64)];
        let kind = Layout::Enum { bytes: 1, is_signed: true, names: kinds };
        let pair = Layout::Array { element: Box::new(short.clone()), count: 2 };
        let inner = Layout::Struct { bytes: 4, members: vec![member("ports", 0, 0, pair)] };
        let members = vec![
            member("word", 0, 0, WORD),
            member("", 32, 0, inner.clone()),
            member("kind", 64, 0, kind.clone()),
            member("other", 72, 0, kind),
            member("low", 80, 3, short.clone()),
            member("high", 83, 13, short),
            member("pointer", 96, 0, Layout::Opaque { bytes: 2 }),
        ];
        let layout = Layout::Struct { bytes: 14, members };
        let bytes = [0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 1, 0xff, 5, 0x0d, 0x80, 0xaa, 0xbb];
        let expected = "{word: -2, ports: [1, 256], kind: LESS, other: 5, low: 5, high: 4097, \
            pointer: aa bb}";
        assert_eq!(layout.decode(&bytes).to_string(), expected);
    }

    #[test]
    fn no_more_is_told_than_a_bound() {
        let byte = Layout::Integer { bytes: 1, is_signed: false };
        let all = Layout::Array { element: Box::new(byte), count: 1 << 19 };
        let member = |at: u32| member(&at.to_string(), 0, 0, all.clone());
        let layout = Layout::Struct { bytes: 1 << 19, members: (0..1_000).map(member).collect() };
        let Datum::Struct(members) = layout.decode(&vec![7; 1 << 19]) else { panic!("a struct") };
        assert_eq!(members.len(), 2, "the second one in part");
    }

    #[test]
    fn bytes_that_are_missing_are_not_made_up() {
        assert_eq!(WORD.decode(&[1, 2]), Datum::Bytes(vec![1, 2]));
        let far = Layout::Struct { bytes: 4, members: vec![member("far", u32::MAX, 0, WORD)] };
        assert_eq!(far.decode(&[0; 4]).to_string(), "{far: }");
        let nothing = Layout::Struct { bytes: 0, members: vec![] };
        let endless = Layout::Array { element: Box::new(nothing), count: u32::MAX };
        assert_eq!(endless.decode(&[0; 4]), Datum::Bytes(vec![]));
        let wide = Layout::Integer { bytes: 16, is_signed: true };
        assert_eq!(wide.decode(&[0xff; 16]), Datum::Signed(-1));
        let field = member("field", 0, 200, wide);
        let field = Layout::Struct { bytes: 16, members: vec![field] };
        assert!(matches!(field.decode(&[0; 16]), Datum::Struct(_)));
    }
}
