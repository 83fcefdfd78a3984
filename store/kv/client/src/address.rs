// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a server is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Address of a server's listener for the batched protocol.
///
/// ```
/// use freeport_kv_client::Address;
///
/// let address: Address = "fabric:/run/freeport.sock".parse()?;
/// assert_eq!(address, Address::Fabric("/run/freeport.sock".into()));
/// assert!("localhost:7000".parse::<Address>().is_err());
/// # Ok::<(), freeport_kv_client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host and port of a listener of TCP.
    Tcp(String),
    /// Path of a socket through which a server of the same machine shares memory.
    Fabric(PathBuf),
    /// Host and port of a socket of UDP.
    Udp(String),
}

/// A text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no address of a server: write tcp://HOST:PORT, udp://HOST:PORT, or fabric:PATH \
     with the path of its socket"
)]
pub struct InvalidAddress {
    /// The text.
    pub text: String,
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let host = |host: &str| host.contains(':').then(|| host.to_owned());
        let parsed = if let Some(rest) = text.strip_prefix("tcp://") {
            host(rest).map(Self::Tcp)
        } else if let Some(rest) = text.strip_prefix("udp://") {
            host(rest).map(Self::Udp)
        } else {
            let path = text.strip_prefix("fabric:").filter(|path| !path.is_empty());
            path.map(|path| Self::Fabric(path.into()))
        };
        parsed.ok_or_else(|| InvalidAddress { text: text.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host) => write!(f, "tcp://{host}"),
            Self::Udp(host) => write!(f, "udp://{host}"),
            Self::Fabric(path) => write!(f, "fabric:{}", path.display()),
        }
    }
}
