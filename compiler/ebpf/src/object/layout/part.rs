// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of values: members and elements, found by name and set from text.

use super::{Layout, Member};

/// A part of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part<'l> {
    /// Layout of the part.
    pub layout: &'l Layout,
    /// Offset in bits from the start of the value.
    bit: u64,
    /// Number of bits of a bit field, else 0.
    field_bits: u32,
}

impl Layout {
    /// Returns the part that `path` names, such as `.rules[2].limit`; the whole value if it is
    /// empty.
    ///
    /// # Errors
    /// There is no such member or element; the error lists those that exist.
    pub fn part(&self, path: &str) -> Result<Part<'_>, String> {
        let mut part = Part { layout: self, bit: 0, field_bits: 0 };
        let mut left = path;
        while !left.is_empty() {
            let (step, rest) = step(left)
                .ok_or_else(|| format!("`{left}` is neither a .member nor an [index]"))?;
            part = match step {
                Step::Member(name) => part.member(name)?,
                Step::Index(index) => part.element(index)?,
            };
            left = rest;
        }
        Ok(part)
    }

    fn member(&self, name: &str) -> Option<(u64, &Member)> {
        let Self::Struct { members, .. } = self else { return None };
        members.iter().find_map(|member| {
            let bit = u64::from(member.bit_offset);
            match member.name.as_str() {
                found if found == name => Some((bit, member)),
                "" => member.layout.member(name).map(|(inner, member)| (bit + inner, member)),
                _ => None,
            }
        })
    }

    /// Returns the names of members, including those of anonymous members.
    pub(super) fn members(&self) -> Vec<&str> {
        let Self::Struct { members, .. } = self else { return vec![] };
        let names = members.iter().flat_map(|member| match member.name.as_str() {
            "" => member.layout.members(),
            name => vec![name],
        });
        names.collect()
    }
}

/// A step on the path to a part.
enum Step<'t> {
    Member(&'t str),
    Index(u64),
}

/// Returns the first step of a path, and the rest.
fn step(path: &str) -> Option<(Step<'_>, &str)> {
    if let Some(index) = path.strip_prefix('[') {
        let (index, left) = index.split_once(']')?;
        return Some((Step::Index(index.trim().parse().ok()?), left));
    }
    let path = path.strip_prefix('.')?;
    let (name, left) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    (!name.is_empty()).then_some((Step::Member(name), left))
}

impl<'l> Part<'l> {
    fn member(self, name: &str) -> Result<Self, String> {
        let Some((bit, member)) = self.layout.member(name) else {
            return Err(match self.layout {
                Layout::Struct { .. } => {
                    let known = self.layout.members().join(", ");
                    format!("there is no member `{name}`; there are: {known}")
                }
                _ => format!("there is no member `{name}`: it is {}", self.layout.kind()),
            });
        };
        let bit = self.bit.saturating_add(bit);
        Ok(Self { layout: &member.layout, bit, field_bits: member.field_bits })
    }

    fn element(self, index: u64) -> Result<Self, String> {
        let Layout::Array { element, count } = self.layout else {
            return Err(format!("there is no element {index}: it is {}", self.layout.kind()));
        };
        if index >= u64::from(*count) {
            let last = i64::from(*count) - 1;
            return Err(format!("there is no element {index}: they are 0 to {last}"));
        }
        let before = index.saturating_mul(u64::from(element.bytes())).saturating_mul(8);
        let bit = self.bit.saturating_add(before);
        Ok(Self { layout: element, bit, field_bits: 0 })
    }

    /// Encodes a text as [`Layout::encode`] does, and stores it in the bytes of the value.
    ///
    /// # Errors
    /// The text does not fit the type, or the bytes are too short.
    pub fn write(self, bytes: &mut [u8], text: &str) -> Result<(), String> {
        let outside = || "it is outside its section".to_owned();
        let start = usize::try_from(self.bit / 8).map_err(|_| outside())?;
        if self.field_bits == 0 {
            let encoded = self.layout.encode(text)?;
            let place = bytes.get_mut(start..).and_then(|it| it.get_mut(..encoded.len()));
            place.ok_or_else(outside)?.copy_from_slice(&encoded);
            return Ok(());
        }
        let encoded = self.layout.encode_bits(text, self.field_bits)?;
        let first = (self.bit % 8) as usize;
        for at in 0..self.field_bits as usize {
            let place =
                bytes.get_mut(start.saturating_add((first + at) / 8)).ok_or_else(outside)?;
            let (mask, is_set) = (1 << ((first + at) % 8), encoded[at / 8] >> (at % 8) & 1 == 1);
            if is_set { *place |= mask } else { *place &= !mask }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let integer = |bytes, is_signed| Layout::Integer { bytes, is_signed };
        let member = |name: &str, bit_offset, field_bits, layout| Member {
            name: name.into(),
            bit_offset,
            field_bits,
            layout,
        };
        let array = |element, count| Layout::Array { element: Box::new(element), count };
        let pair = Layout::Struct {
            bytes: 4,
            members: vec![
                member("low", 0, 0, integer(2, false)),
                member("high", 16, 0, integer(2, true)),
            ],
        };
        let inner = Layout::Struct {
            bytes: 4,
            members: vec![
                member("few", 0, 3, integer(4, false)),
                member("more", 3, 13, integer(4, true)),
            ],
        };
        Layout::Struct {
            bytes: 24,
            members: vec![
                member("pairs", 0, 0, array(pair, 3)),
                member("", 96, 0, inner),
                member("name", 128, 0, array(integer(1, true), 8)),
            ],
        }
    }

    #[test]
    fn parts_are_written_where_they_lie() {
        let layout = layout();
        let mut bytes = [0xff; 24];
        for (path, text) in [
            (".pairs[2].high", "-2"),
            (".pairs[ 0 ].low", "0x102"),
            (".few", "2"),
            (".more", "-4096"),
            (".name", "\"eth0\""),
            (".name[5]", "7"),
        ] {
            layout.part(path).and_then(|part| part.write(&mut bytes, text)).expect(path);
        }
        let mut expected = [0xff; 24];
        expected[..2].copy_from_slice(&[2, 1]);
        expected[10..12].copy_from_slice(&[0xfe, 0xff]);
        expected[12..14].copy_from_slice(&[2, 0x80]);
        expected[16..].copy_from_slice(b"eth0\0\x07\0\0");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let layout = layout();
        for (path, text, reason) in [
            (".pair", "1", "there is no member `pair`; there are: pairs, few, more, name"),
            (".pairs[3].low", "1", "there is no element 3: they are 0 to 2"),
            (".few.low", "1", "there is no member `low`: it is an unsigned number of 32 bits"),
            (".few[1]", "1", "there is no element 1: it is an unsigned number of 32 bits"),
            (".pairs[x]", "1", "`[x]` is neither a .member nor an [index]"),
            (".pairs[1", "1", "`[1` is neither a .member nor an [index]"),
            (".", "1", "`.` is neither a .member nor an [index]"),
            (".few", "8", "8 does not fit in an unsigned number of 3 bits, 0 to 7"),
            (".more", "-4097", "-4097 does not fit in a signed number of 13 bits, -4096 to 4095"),
            (".name", "\"12345678\"", "a text of 8 bytes and its final 0 do not fit in 8 bytes"),
        ] {
            let written = layout.part(path).and_then(|part| part.write(&mut [0; 24], text));
            assert_eq!(written, Err(reason.to_owned()), "{path}");
        }
        let late = layout.part(".name").and_then(|part| part.write(&mut [0; 20], "\"a\""));
        assert_eq!(late, Err("it is outside its section".into()));
    }
}
