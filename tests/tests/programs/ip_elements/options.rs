// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IPv4 header options in the answer of an echo, by RFC 791 and RFC 1122.

use super::frames::word;
use fastrand::Rng;

/// Options of the answer, and its destination if that is not the sender.
pub struct Echoed {
    pub options: Vec<u8>,
    pub target: Option<Vec<u8>>,
    /// Whether a time stamp is to be added: its value is unknown.
    pub is_timed: bool,
}

/// Returns the options of the answer by `own` to `source`; `None` if a host has to decide.
pub fn echoed(before: &[u8], own: &[u8], source: &[u8]) -> Option<Echoed> {
    let mut found = Echoed { options: before.to_vec(), target: None, is_timed: false };
    let mut kinds = vec![];
    let mut at = 0;
    while at < before.len() {
        let kind = match before[at] {
            0 => break,
            1 => {
                at += 1;
                continue;
            }
            137 => 131,
            kind => kind,
        };
        let length = usize::from(*before.get(at + 1)?);
        let option = before.get(at..at + length).filter(|it| it.len() >= 2)?;
        if [7, 68, 131].contains(&kind) {
            if kinds.contains(&kind) {
                return None;
            }
            kinds.push(kind);
            let pointer = usize::from(*option.get(2)?);
            let place = &mut found.options[at..at + length];
            match kind {
                7 => record_route(place, pointer, own)?,
                131 => found.target = turn(place, pointer, source)?,
                _ => found.is_timed = overflow(place, pointer, own)?,
            }
        }
        at += length;
    }
    Some(found)
}

/// Whether a list of addresses has a valid pointer.
fn is_list(option: &[u8], pointer: usize) -> bool {
    option.len() % 4 == 3 && pointer >= 4 && pointer.is_multiple_of(4)
}

fn record_route(option: &mut [u8], pointer: usize, own: &[u8]) -> Option<()> {
    if !is_list(option, pointer) {
        return None;
    }
    if pointer <= option.len() {
        option[pointer - 1..pointer + 3].copy_from_slice(own);
        option[2] += 4;
    }
    Some(())
}

/// Returns the first hop of the way back, if there are hops.
fn turn(option: &mut [u8], pointer: usize, source: &[u8]) -> Option<Option<Vec<u8>>> {
    if !is_list(option, pointer) || pointer <= option.len() {
        return None;
    }
    let mut hops: Vec<Vec<u8>> = option[3..].chunks(4).map(<[u8]>::to_vec).collect();
    option[2] = 4;
    let Some(last) = hops.pop() else { return Some(None) };
    if [0, 127].contains(&last[0]) || last[0] >= 224 {
        return None;
    }
    hops.reverse();
    hops.push(source.to_vec());
    option[3..].copy_from_slice(&hops.concat());
    Some(Some(last))
}

/// Returns whether a time stamp is to be added; counts an overflow if there is no room.
fn overflow(option: &mut [u8], pointer: usize, own: &[u8]) -> Option<bool> {
    let flags = *option.get(3)?;
    let bytes = match flags & 15 {
        0 => 4,
        1 | 3 => 8,
        _ => return None,
    };
    let is_whole = (option.len() - 4).is_multiple_of(bytes);
    if !is_whole || pointer < 5 || !(pointer - 5).is_multiple_of(bytes) {
        return None;
    }
    if pointer <= option.len() {
        return Some(flags & 15 != 3 || option[pointer - 1..pointer + 3] == *own);
    }
    if flags & 15 != 3 {
        option[3] = flags.checked_add(16)?;
    }
    Some(false)
}

/// Fills `place` with mostly valid options.
pub fn fill(random: &mut Rng, place: &mut [u8]) {
    let mut bytes = vec![];
    while bytes.len() < place.len() {
        let left = place.len() - bytes.len();
        let count = random.usize(0..4);
        let (kind, length) = match random.u8(..8) {
            0 | 1 => (7, 3 + 4 * count),
            2 | 3 => ([131, 137][random.usize(..2)], 3 + 4 * count),
            4 => (68, 4 + 8 * count),
            5 => (random.u8(140..), 2 + count),
            6 => (0, 1),
            _ => (1, 1),
        };
        if length > left {
            bytes.resize(place.len(), random.u8(..2));
            break;
        }
        let start = bytes.len();
        bytes.push(kind);
        if length == 1 {
            continue;
        }
        bytes.push(length as u8);
        bytes.extend((2..length).map(|_| word(random) as u8));
        let option = &mut bytes[start..];
        let whole = 4 * random.usize(1..=count + 1);
        match kind {
            7 => option[2] = whole as u8,
            131 | 137 => option[2] = if random.u8(..4) == 0 { whole } else { length + 1 } as u8,
            68 => {
                option[3] = random.u8(..) & 0xf0 | [0, 1, 3, 2][random.usize(..4)];
                option[2] = if option[3] & 15 == 3 { 5 } else { length as u8 + 1 };
            }
            _ => {}
        }
        if random.u8(..16) == 0 {
            option[1] = random.u8(..);
        }
    }
    place.copy_from_slice(&bytes);
}
