// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that several commands parse: `PATH=VALUE`, `INSTANCE:WORD,WORD`, and the address of a
//! server.

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
}
