// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of `FUNCTION DUMP`: for each library a code and its text, then the version of the
//! format, and a checksum of all. Texts are written as they are, and may be compressed when read.

/// Code of a library.
const LIBRARY: u8 = 245;
/// Version of the format that is written. Newer ones are not read.
const WRITTEN_VERSION: u16 = 10;
const READ_VERSION: u16 = 11;
/// Bytes of the version and the checksum.
const FOOTER_BYTES: usize = 10;
/// Maximum bytes of a text.
const TEXT_BYTES: usize = 64 << 20;

const WRONG_FOOTER: &str = "ERR DUMP payload version or checksum are wrong";
const WRONG_CODE: &str = "ERR given type is not a function";
const WRONG_TEXT: &str = "ERR failed loading functions";

/// The bytes of libraries with the given texts.
pub(crate) fn write<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut output = vec![];
    for text in texts {
        output.push(LIBRARY);
        write_length(&mut output, text.len());
        output.extend_from_slice(text);
    }
    output.extend_from_slice(&WRITTEN_VERSION.to_le_bytes());
    let sum = checksum(&output);
    output.extend_from_slice(&sum.to_le_bytes());
    output
}

/// Texts of the libraries.
///
/// # Errors
/// The error reply.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let end = bytes.len().checked_sub(FOOTER_BYTES).ok_or(WRONG_FOOTER)?;
    let (mut rest, footer) = bytes.split_at(end);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let sum = checksum(&bytes[..end + 2]).to_le_bytes();
    if version > READ_VERSION || footer[2..] != sum {
        return Err(WRONG_FOOTER.into());
    }
    let mut texts = vec![];
    while let Some((&code, after)) = rest.split_first() {
        if code != LIBRARY {
            return Err(WRONG_CODE.into());
        }
        rest = after;
        texts.push(read_text(&mut rest).ok_or(WRONG_TEXT)?);
    }
    Ok(texts)
}

/// Lengths of 6, 14, 32 and 64 bits, by the first two bits of the first byte, or all of it.
fn write_length(output: &mut Vec<u8>, length: usize) {
    match length {
        0..=0x3f => output.push(length as u8),
        0x40..=0x3fff => output.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            output.push(0x80);
            output.extend_from_slice(&(length as u32).to_be_bytes());
        }
        _ => {
            output.push(0x81);
            output.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

fn read_text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    const COMPRESSED: u8 = 0xc3;
    if rest.first() == Some(&COMPRESSED) {
        rest.split_off_first();
        let (packed, length) = (read_length(rest)?, read_length(rest)?);
        return decompress(rest.split_off(..packed)?, length);
    }
    let length = read_length(rest)?;
    rest.split_off(..length).map(<[u8]>::to_vec)
}

fn read_length(rest: &mut &[u8]) -> Option<usize> {
    let first = *rest.split_off_first()?;
    match first {
        0x00..=0x3f => Some(usize::from(first)),
        0x40..=0x7f => Some(usize::from(first & 0x3f) << 8 | usize::from(*rest.split_off_first()?)),
        0x80 => {
            let bytes = rest.split_off(..4)?.try_into().expect("the range has four bytes");
            Some(u32::from_be_bytes(bytes) as usize)
        }
        0x81 => {
            let bytes = rest.split_off(..8)?.try_into().expect("the range has eight bytes");
            usize::try_from(u64::from_be_bytes(bytes)).ok()
        }
        _ => None,
    }
}

/// Expands the LZF format: runs of bytes, and copies of bytes before.
fn decompress(mut packed: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > TEXT_BYTES {
        return None;
    }
    let mut text = Vec::new();
    while let Some(&control) = packed.split_off_first() {
        let control = usize::from(control);
        if control < 32 {
            text.extend_from_slice(packed.split_off(..control + 1)?);
        } else {
            let mut count = control >> 5;
            if count == 7 {
                count += usize::from(*packed.split_off_first()?);
            }
            let distance = (control & 31) << 8 | usize::from(*packed.split_off_first()?);
            let start = text.len().checked_sub(distance + 1)?;
            // The copy may overlap what it makes.
            (start..start + count + 2).for_each(|place| text.push(text[place]));
        }
        if text.len() > length {
            return None;
        }
    }
    (text.len() == length).then_some(text)
}

/// CRC-64 of Jones, as Redis has it.
fn checksum(bytes: &[u8]) -> u64 {
    const REFLECTED_POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    bytes.iter().fold(0, |sum, &byte| {
        (0..8).fold(sum ^ u64::from(byte), |sum, _| {
            let is_odd = sum & 1 == 1;
            (sum >> 1) ^ if is_odd { REFLECTED_POLYNOMIAL } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_publication() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn texts_of_all_lengths_are_read_as_written() {
        let texts: Vec<Vec<u8>> = [0, 63, 64, 16_383, 16_384, 70_000]
            .map(|length| (0..length).map(|place| place as u8).collect())
            .into();
        let written = write(texts.iter().map(|text| &text[..]));
        assert_eq!(read(&written), Ok(texts));
        for place in 0..written.len().min(200) {
            let mut changed = written.clone();
            changed[place] ^= 0x40;
            assert!(read(&changed).is_err());
            assert!(read(&written[..place]).is_err());
        }
    }

    #[test]
    fn compressed_texts_are_expanded() {
        assert_eq!(decompress(b"\x00a\xe0\x00\x00", 10), Some(b"aaaaaaaaaa".to_vec()));
        assert_eq!(decompress(b"\x02abc\x20\x02", 6), Some(b"abcabc".to_vec()));
        for (packed, length) in [
            (&b"\x20\x02"[..], 3),
            (b"\x05ab", 6),
            (b"\x00a", 2),
            (b"\x00a", usize::MAX),
            (b"\xe0", 9),
        ] {
            assert_eq!(decompress(packed, length), None);
        }
    }
}
