// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that several commands parse: `PATH=VALUE`, `INSTANCE:WORD,WORD`, the address of a server,
//! and numbers of bytes.

use anyhow::Context;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// `PATH=VALUE`
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Path of a variable or of a part of it.
    pub path: String,
    /// The value as text.
    pub value: String,
}

/// `INSTANCE:WORD,WORD`
#[derive(Clone, Debug)]
pub struct SignalSpec {
    /// The instance.
    pub instance: String,
    /// Words of the message (`LParam`).
    pub words: Vec<u64>,
}

impl FromStr for Assignment {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (path, value) = text
            .split_once('=')
            .context("expected INSTANCE.VARIABLE=VALUE, such as cnt.count=5")?;
        Ok(Self { path: path.into(), value: value.into() })
    }
}

impl FromStr for SignalSpec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (instance, words) =
            text.split_once(':').context("expected INSTANCE:WORD,WORD, such as cnt:0,7")?;
        let words = words.split(',').filter(|word| !word.is_empty()).map(|word| {
            let value = match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => word.parse(),
            };
            value.with_context(|| format!("`{word}` is not a 64-bit number"))
        });
        Ok(Self { instance: instance.into(), words: words.collect::<Result<_, _>>()? })
    }
}

/// Parses the address of a server: `PORT` or `ADDRESS:PORT`; without an address, the loopback.
///
/// # Errors
/// Any other text.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    match (port, text.parse()) {
        (Ok(port), _) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        (_, Ok(address)) => Ok(address),
        _ => Err("expected a port, or an address with one, such as 127.0.0.1:9100".into()),
    }
}

/// Parses a number of bytes with an optional unit.
///
/// # Errors
/// Any other text.
pub fn bytes(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

    let (digits, shift) = UNITS
        .into_iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))
        .unwrap_or((text, 0));
    let number = digits.trim_end().parse::<usize>().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected bytes, or a number with KiB, MiB, GiB or TiB, such as 4GiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_an_instance_and_words() {
        let words = |text: &str| text.parse::<SignalSpec>().map(|spec| spec.words);
        assert_eq!(words("group.cnt:7,0x10").unwrap(), [7, 16]);
        assert!(words("cnt:").unwrap().is_empty());
        for text in ["cnt", "cnt:x", "cnt:-1", "cnt:99999999999999999999"] {
            assert!(words(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("1000"), Ok(1000));
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("4 GiB"), Ok(4 << 30));
        for text in ["", "GiB", "4GB", "-1", "99999999999TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
