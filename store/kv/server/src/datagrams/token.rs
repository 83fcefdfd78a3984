// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tokens, which prove that a client receives what the server sends to its address.
//!
//! A token is the keyed hash (HMAC-SHA-256, 64 bits of it) of what a hello has asked for and of the
//! address that it came from, as cookies of TCP's SYN are (RFC 4987, 3.6). So a repeated hello gets
//! the same token, nothing has to be kept for it to be recognised, and nobody finds one by trying:
//! 2^64 datagrams are too many. A token of an earlier run of the server has another key.
//!
//! It is no protection against somebody who can read the traffic, and can repeat what is in it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::SystemRandom;

/// Time after which the same hello gets another token, so that the next owner of an address does
/// not have the token of the one before for long.
const PERIOD_MS: u64 = 3_600_000;

/// The key of a server's tokens.
#[derive(Debug)]
pub struct Secret(Key);

/// A hello, for which a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Address of the client.
    pub address: SocketAddr,
    /// The database that it has selected.
    pub database: u16,
    /// Identity of its user.
    pub user: u64,
}

impl Secret {
    /// A new key.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new() -> io::Result<Self> {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        key.map(Self).map_err(|_| io::Error::other("the system gives no random bytes"))
    }

    /// The token of a hello that comes now, in milliseconds since 1970.
    pub fn token(&self, claim: &Claim, now_ms: u64) -> u64 {
        let ip = match claim.address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&ip.octets());
        context.update(&claim.address.port().to_le_bytes());
        context.update(&claim.database.to_le_bytes());
        context.update(&claim.user.to_le_bytes());
        context.update(&(now_ms / PERIOD_MS).to_le_bytes());
        let tag = context.sign();
        let first = tag.as_ref().first_chunk().expect("a tag has 32 bytes");
        u64::from_le_bytes(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_depends_on_all_that_it_stands_for() {
        let secret = Secret::new().expect("there are random bytes");
        let address = |text: &str| text.parse().expect("an address");
        let claim = Claim { address: address("127.0.0.1:1"), database: 0, user: 0 };
        let token = secret.token(&claim, 0);
        assert_eq!(secret.token(&claim, PERIOD_MS - 1), token, "a repeated hello");
        assert_ne!(secret.token(&claim, PERIOD_MS), token);
        for other in [
            Claim { address: address("127.0.0.1:2"), ..claim },
            Claim { address: address("127.0.0.2:1"), ..claim },
            Claim { address: address("[::1]:1"), ..claim },
            Claim { database: 1, ..claim },
            Claim { user: 1, ..claim },
        ] {
            assert_ne!(secret.token(&other, 0), token, "{other:?}");
        }
        let later = Secret::new().expect("there are random bytes");
        assert_ne!(later.token(&claim, 0), token, "of another run");
    }
}
