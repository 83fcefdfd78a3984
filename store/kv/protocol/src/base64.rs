// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Base64 (RFC 4648, section 4), as the keys of memcached and the JSON of etcd have it. Decoding is
//! strict: groups of four digits, padding only at the end, and no bits set in it. So each string of
//! bytes has one spelling.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// A byte that is no digit.
const NONE: u8 = 0xff;
const VALUES: [u8; 256] = {
    let (mut values, mut at) = ([NONE; 256], 0);
    while at < 64 {
        values[DIGITS[at] as usize] = at as u8;
        at += 1;
    }
    values
};

/// Returns the number of bytes that a text stands for, if it is valid and not empty.
pub fn decoded_bytes(text: &[u8]) -> Option<usize> {
    let padding = padding(text);
    let digits = &text[..text.len() - padding];
    let is_valid = digits.iter().all(|digit| VALUES[usize::from(*digit)] != NONE);
    // Bits of the last digit that belong to no byte.
    let unused = VALUES[usize::from(*digits.last()?)] & ((1 << (2 * padding)) - 1);
    let is_valid = is_valid && text.len().is_multiple_of(4) && unused == 0;
    is_valid.then(|| text.len() / 4 * 3 - padding)
}

/// Decodes a valid text into `target`, and returns the decoded part of it.
///
/// # Panics
/// If `target` is shorter than [`decoded_bytes`].
pub fn decode<'b>(text: &[u8], target: &'b mut [u8]) -> &'b [u8] {
    let target = &mut target[..text.len() / 4 * 3 - padding(text)];
    for (group, place) in text.chunks_exact(4).zip(target.chunks_mut(3)) {
        // Bits of padding are cut off below.
        let value = |digit: u8| u32::from(VALUES[usize::from(digit)] & 63);
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | value(*digit));
        place.copy_from_slice(&bits.to_be_bytes()[1..=place.len()]);
    }
    target
}

fn padding(text: &[u8]) -> usize {
    text.iter().rev().take(2).take_while(|byte| **byte == b'=').count()
}

/// Appends the text of some bytes.
pub fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        let mut digits = [18, 12, 6, 0].map(|shift| DIGITS[(bits >> shift & 63) as usize]);
        digits[group.len() + 1..].fill(b'=');
        out.extend_from_slice(&digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_standard_are_written_and_read() {
        // RFC 4648, section 10.
        for (bytes, text) in [
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = vec![];
            push(&mut out, bytes.as_bytes());
            assert_eq!(out, text.as_bytes());
            assert_eq!(decoded_bytes(text.as_bytes()), Some(bytes.len()));
            assert_eq!(decode(text.as_bytes(), &mut [0; 6]), bytes.as_bytes());
        }
    }

    #[test]
    fn each_string_of_bytes_has_one_text() {
        for seed in 0..2_000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let bytes: Vec<u8> = (0..rng.usize(1..20)).map(|_| rng.u8(..)).collect();
            let mut text = vec![];
            push(&mut text, &bytes);
            assert_eq!(decode(&text, &mut [0; 20]), bytes, "seed {seed}");
            // A changed text is refused, or stands for other bytes.
            let place = rng.usize(..text.len());
            text[place] ^= 1 << rng.u8(..8);
            if let Some(length) = decoded_bytes(&text) {
                assert_ne!(decode(&text, &mut [0; 20]), bytes, "seed {seed}");
                assert!(length <= text.len() / 4 * 3);
            }
        }
    }

    #[test]
    fn texts_with_liberties_are_refused() {
        for text in [
            "", "Z", "Zg", "Zg=", "Zg===", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm 9v", "_-==",
            "Zm9v\r",
        ] {
            assert_eq!(decoded_bytes(text.as_bytes()), None, "{text:?}");
        }
    }
}
