// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where an etcd cluster is, and where in it a registry is.

use std::fmt;
use std::str::FromStr;

/// The port on which etcd listens for clients.
const DEFAULT_PORT: u16 = 2379;
const DEFAULT_PREFIX: &str = "freeport";

/// Where an etcd cluster is, and the part of its keys that a registry has. As text:
/// `[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/PREFIX]`, with `%40` and the like for `@`, `/`, `,`
/// and `:` in a password. [`fmt::Display`] and [`fmt::Debug`] leave the password out.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdOptions {
    /// Hosts and ports of members, which are tried in turn.
    pub endpoints: Vec<(String, u16)>,
    /// Begin of all keys, without slashes at its ends.
    pub prefix: String,
    /// User and password, if etcd wants them.
    pub user: Option<(String, String)>,
}

impl FromStr for EtcdOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (authority, prefix) = text.split_once('/').unwrap_or((text, ""));
        let (user, endpoints) = match authority.rsplit_once('@') {
            Some((user, endpoints)) => (Some(parse_user(user)?), endpoints),
            None => (None, authority),
        };
        let endpoints = endpoints.split(',').map(parse_endpoint).collect::<Result<_, _>>()?;
        let prefix = match prefix.trim_matches('/') {
            "" => DEFAULT_PREFIX,
            prefix => prefix,
        };
        if prefix.contains(|letter: char| letter.is_control() || letter == '?' || letter == '#') {
            return Err(format!("the prefix {prefix:?} has letters that none may have"));
        }
        Ok(Self { endpoints, prefix: prefix.to_owned(), user })
    }
}

fn parse_user(text: &str) -> Result<(String, String), String> {
    let (user, password) = text.split_once(':').ok_or("a user needs a password, USER:PASSWORD@")?;
    let decode = |part: &str| percent_decode(part).ok_or("a '%' lacks two hexadecimal digits");
    Ok((decode(user)?, decode(password)?))
}

fn parse_endpoint(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("'{text}' is no HOST:PORT");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?,
        None if port.is_empty() => DEFAULT_PORT,
        None => return Err(wrong()),
    };
    let is_host = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte));
    is_host.then(|| (host.to_owned(), port)).ok_or_else(wrong)
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = vec![];
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push(match byte {
            b'%' => (digit()? << 4 | digit()?) as u8,
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

/// An endpoint as a URL and an HTTP header have it.
pub(super) fn endpoint_text((host, port): &(String, u16)) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

impl fmt::Display for EtcdOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((user, _)) = &self.user {
            write!(formatter, "{user}@")?;
        }
        let endpoints: Vec<String> = self.endpoints.iter().map(endpoint_text).collect();
        write!(formatter, "{}/{}", endpoints.join(","), self.prefix)
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EtcdOptions({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        for (text, shown) in [
            ("a", "a:2379/freeport"),
            ("a:1/", "a:1/freeport"),
            ("a:1,b:2/x/y", "a:1,b:2/x/y"),
            ("[::1]:3,[fe80::1]/x/", "[::1]:3,[fe80::1]:2379/x"),
            ("me:p%40ss@a", "me@a:2379/freeport"),
        ] {
            let options: EtcdOptions = text.parse().expect(text);
            assert_eq!(options.to_string(), shown);
        }
        let options: EtcdOptions = "me:p%40%2f:@a".parse().expect("a password with a colon");
        assert_eq!(options.user, Some(("me".to_owned(), "p@/:".to_owned())));
    }

    #[test]
    fn wrong_options_are_refused() {
        for text in [
            "", "/x", "a:", "a:0", "a:65536", "a:1,", ",a", "[::1", "[::1]x", "::1", "a b", "me@a",
            "me:%4@a", "me:%ff@a", "a/x\ny", "a/x?y",
        ] {
            assert!(text.parse::<EtcdOptions>().is_err(), "{text:?}");
        }
    }
}
