// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A user: its passwords, as SHA-256, and its rights.

use sha2::{Digest as _, Sha256};

use super::catalog::{Catalog, Entry};
use super::selector::{Denial, Selector};

/// SHA-256 of a password.
pub type Digest = [u8; 32];

/// The user of clients that have not named another one.
pub const DEFAULT: &[u8] = b"default";

/// A user. It is never changed: a change makes a new value, with the same identity.
#[derive(Clone, Debug)]
pub struct User {
    /// A number that no other user had or has, also of the same name.
    pub identity: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// Clients may log in.
    pub is_on: bool,
    /// Every password is right.
    pub needs_no_password: bool,
    /// Payloads of `RESTORE` need no check. It has no effect: all are checked.
    pub skips_sanitizing: bool,
    /// Digests of its passwords.
    pub passwords: Vec<Digest>,
    /// Its rights, and in front of them those outside parentheses.
    pub selectors: Vec<Selector>,
    /// It may do everything, so that nothing has to be checked.
    pub is_unrestricted: bool,
}

impl User {
    /// A user that is off, without a password or rights.
    pub fn new(identity: u64, name: &[u8], root: Selector) -> Self {
        Self {
            identity,
            name: name.to_vec(),
            is_on: false,
            needs_no_password: false,
            skips_sanitizing: false,
            passwords: vec![],
            selectors: vec![root],
            is_unrestricted: false,
        }
    }

    /// The user of clients that name none: it may do everything without a password.
    pub fn default_user(identity: u64, catalog: &Catalog) -> Self {
        let mut root = Selector::new(catalog, true);
        root.set_all_keys(true);
        root.set_all_commands(true);
        let user = Self::new(identity, DEFAULT, root);
        Self { is_on: true, needs_no_password: true, is_unrestricted: true, ..user }
    }

    /// Its rights outside parentheses.
    pub fn root_mut(&mut self) -> &mut Selector {
        &mut self.selectors[0]
    }

    /// Clients need not log in as this user.
    pub fn is_open(&self) -> bool {
        self.is_on && self.needs_no_password
    }

    /// A client that gives the password may log in.
    pub fn accepts(&self, password: &[u8]) -> bool {
        if !self.is_on || self.needs_no_password {
            return self.is_on;
        }
        let given = digest(password);
        // Every digest is compared whole, so that the time is the same for all wrong passwords.
        self.passwords.iter().fold(false, |found, one| found | are_equal(one, &given))
    }

    /// Has the same rights, passwords and properties.
    pub fn equals(&self, other: &Self) -> bool {
        self.name == other.name
            && (self.is_on, self.needs_no_password, self.skips_sanitizing)
                == (other.is_on, other.needs_no_password, other.skips_sanitizing)
            && self.passwords == other.passwords
            && self.selectors == other.selectors
    }

    /// Checks a call.
    ///
    /// # Errors
    /// The most telling reason of all selectors: a channel before a key before the command, and the
    /// last argument.
    pub fn check(&self, entry: &Entry, arguments: &[&[u8]]) -> Result<(), (Denial, usize)> {
        let (mut keys, mut denied) = (None, (Denial::Command, 0));
        for selector in &self.selectors {
            match selector.check(entry, arguments, &mut keys) {
                Ok(()) => return Ok(()),
                Err(reason) => denied = denied.max(reason),
            }
        }
        Err(denied)
    }

    /// One selector allows a call, and may read all keys.
    pub fn reads_all_keys(&self, entry: &Entry, arguments: &[&[u8]]) -> bool {
        let mut keys = None;
        self.selectors
            .iter()
            .any(|one| one.reads_all_keys() && one.check(entry, arguments, &mut keys).is_ok())
    }

    /// It may listen to a channel, or to a pattern of channels.
    pub fn may_listen(&self, name: &[u8], is_pattern: bool) -> bool {
        self.selectors.iter().any(|one| one.has_channel(name, is_pattern))
    }

    /// Names of its properties.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if self.needs_no_password {
            flags.push("nopass");
        }
        flags.push(match self.skips_sanitizing {
            true => "skip-sanitize-payload",
            false => "sanitize-payload",
        });
        flags
    }

    /// The rules that make it, in their normal form.
    pub fn describe(&self) -> Vec<u8> {
        let mut words: Vec<Vec<u8>> =
            self.flags().into_iter().map(|flag| flag.as_bytes().to_vec()).collect();
        words.extend(self.passwords.iter().map(|one| format!("#{}", hex(one)).into_bytes()));
        let (root, others) = self.selectors.split_first().expect("there is one always");
        words.push(root.describe());
        words.extend(others.iter().map(|one| [b"(", &one.describe()[..], b")"].concat()));
        words.join(&b' ')
    }
}

/// SHA-256 of a password.
pub fn digest(password: &[u8]) -> Digest {
    Sha256::digest(password).into()
}

/// A digest as 64 hexadecimal digits.
pub fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of 64 hexadecimal digits in lower case.
pub fn parse_hex(text: &[u8]) -> Option<Digest> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut digest = Digest::default();
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(digest)
}

/// Compares without showing by its time where the digests differ.
fn are_equal(one: &Digest, other: &Digest) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_have_one_text() {
        let text = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        assert_eq!(hex(&digest(b"secret")), text);
        assert_eq!(parse_hex(text.as_bytes()), Some(digest(b"secret")));
        assert_eq!(parse_hex(text.to_ascii_uppercase().as_bytes()), None);
        assert_eq!(parse_hex(&text.as_bytes()[1..]), None);
    }

    #[test]
    fn digests_are_compared_whole() {
        let mut other = digest(b"secret");
        assert!(are_equal(&digest(b"secret"), &other));
        other[31] ^= 1;
        assert!(!are_equal(&digest(b"secret"), &other));
    }
}
