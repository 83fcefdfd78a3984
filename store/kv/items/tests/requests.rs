// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random requests that are valid, on few keys, so that most of them find something.

use fastrand::Rng;

/// Flags of meta requests that always have the same reply in the same second.
const FLAGS: [&str; 25] = [
    "v", "v", "k", "q", "s", "f", "h", "u", "O1", "Oab", "I", "T0", "T-1", "T900", "N0", "N800",
    "R30", "R1000", "F5", "D2", "J5", "MA", "ME", "MR", "MD",
];

/// Makes requests. `cas` is the last CAS number that was given out.
pub struct Requests {
    pub rng: Rng,
    /// Leaves out what depends on a clock or on chance in the original: numbers above 2^63 are
    /// none there if there is a minus in the memory behind them, and after a space it may read a
    /// number there.
    pub is_for_original: bool,
}

impl Requests {
    /// Appends a request.
    pub fn push(&mut self, out: &mut Vec<u8>, last_cas: u64) {
        let (digits, shift, first) =
            if self.is_for_original { (9, 24, b'!') } else { (20, 0, b' ') };
        let rng = &mut self.rng;
        let number = rng.u32(0..24);
        let key = match number {
            0..16 => format!("key{number}"),
            16..20 => format!("a:longer:key:that:is:no:part:of:a:bucket:{number}"),
            _ => "k".repeat(number as usize * 10),
        };
        let cas = last_cas.saturating_sub(rng.u64(0..40));
        let noreply = if rng.u8(0..5) == 0 { " noreply" } else { "" };
        let expiry = ["0", "0", "0", "-1", "500", "2592001", "2592000"][rng.usize(0..7)];
        let length = [0, 1, 1, 2, 3, 20, 300, 3_000][rng.usize(0..8)];
        let value: String = match rng.u8(0..3) {
            0 => (0..length).map(|_| char::from(rng.u8(first..127))).collect(),
            _ => (0..length.min(digits)).map(|_| char::from(rng.u8(b'0'..=b'9'))).collect(),
        };
        let (length, client_flags) = (value.len(), [0, 0, 7, u32::MAX][rng.usize(0..4)]);
        let line = match rng.u8(0..24) {
            0..4 => format!("get {key}"),
            4 => format!("gets {key} key1  key2 {key}"),
            5 => format!("gat {expiry} {key} key3"),
            6..9 => format!("set {key} {client_flags} {expiry} {length}{noreply}\r\n{value}"),
            9 => format!("add {key} 1 {expiry} {length}{noreply}\r\n{value}"),
            10 => format!("replace {key} 0 {expiry} {length}{noreply}\r\n{value}"),
            11 | 12 => {
                let name = ["append", "prepend"][rng.usize(0..2)];
                // Digits in front of digits may make a number above 2^63.
                let value = if self.is_for_original { value.replace(is_digit, "x") } else { value };
                format!("{name} {key} 0 0 {length}{noreply}\r\n{value}")
            }
            13 => format!("cas {key} 3 {expiry} {length} {cas}{noreply}\r\n{value}"),
            14 => format!("incr {key} {}{noreply}", rng.u64(..) >> rng.u32(shift..64)),
            15 => format!("decr {key} {}{noreply}", rng.u64(..) >> rng.u32(shift..64)),
            16 => format!("delete {key}{noreply}"),
            17 => format!("touch {key} {expiry}{noreply}"),
            18..20 => format!("mg {key}{}", self.flags(cas)),
            20 => {
                let flags = self.flags(cas);
                let is_added = flags.contains(" MA");
                let value = match self.is_for_original && is_added {
                    true => value.replace(is_digit, "x"),
                    false => value,
                };
                format!("ms {key} {length}{flags}\r\n{value}")
            }
            21 => format!("md {key}{}", self.flags(cas)),
            22 => {
                let mut flags = self.flags(cas);
                // The original forgets the new expiry of a number that becomes longer.
                if self.is_for_original {
                    flags = flags.replace(" T", " L");
                }
                format!("ma {key}{flags}")
            }
            _ if rng.u16(0..500) == 0 => "flush_all".to_owned(),
            _ => "mn".to_owned(),
        };
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    fn flags(&mut self, cas: u64) -> String {
        let rng = &mut self.rng;
        let mut flags: Vec<String> = vec![];
        let choices = (0..rng.usize(0..6)).map(|_| FLAGS[rng.usize(0..FLAGS.len())]);
        for flag in choices.collect::<Vec<_>>() {
            if flags.iter().all(|other| other[..1] != flag[..1]) {
                flags.push(flag.to_owned());
            }
        }
        if rng.u8(0..4) == 0 {
            flags.push(format!("C{cas}"));
        }
        if rng.bool() {
            flags.push("c".to_owned());
        }
        if !self.is_for_original && rng.bool() {
            flags.push("t".to_owned());
            flags.push("l".to_owned());
        }
        flags.iter().map(|flag| format!(" {flag}")).collect()
    }
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}
