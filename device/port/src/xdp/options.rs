// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of a port, and the mode in which it was opened.

use crate::bpf::AttachMode;
use std::fmt;
use std::str::FromStr;

/// Default number of entries of the receive ring and of the transmit ring of a queue.
pub const DEFAULT_RING_FRAMES: u32 = 4_096;
/// Maximum number of entries.
pub const MOST_RING_FRAMES: u32 = 1 << 16;

/// A port on an interface, written as `eth0`, `eth0/2`, `eth0@blue` or `eth0/2@blue`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpOptions {
    /// Name of the interface.
    pub interface: String,
    /// The one queue whose frames the port gets; all queues of the interface if none is named.
    pub queue: Option<u32>,
    /// Network namespace of the interface, by its name for `ip netns` or by a path; that of the
    /// thread that opens the port if none is named.
    pub namespace: Option<String>,
    /// Number of frames per queue that can wait to be received, and to be sent: rounded up to a
    /// power of two, 65,536 at most.
    pub ring_frames: u32,
}

impl XdpOptions {
    /// Selects all queues of an interface of the thread's namespace.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            queue: None,
            namespace: None,
            ring_frames: DEFAULT_RING_FRAMES,
        }
    }
}

/// Error for a text that does not name a port.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` names no interface: expected IFACE, IFACE/QUEUE or either followed by @NETNS")]
pub struct XdpOptionsError {
    /// The text.
    pub text: String,
}

impl FromStr for XdpOptions {
    type Err = XdpOptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || XdpOptionsError { text: text.into() };
        let (place, namespace) = match text.split_once('@') {
            Some((place, namespace)) => (place, Some(namespace)),
            None => (text, None),
        };
        let (interface, queue) = match place.split_once('/') {
            Some((interface, queue)) => (interface, Some(queue.parse().map_err(|_| error())?)),
            None => (place, None),
        };
        let is_odd = |letter: char| letter.is_whitespace() || "/:%".contains(letter);
        let is_interface =
            (1..libc::IFNAMSIZ).contains(&interface.len()) && !interface.contains(is_odd);
        let is_namespace =
            |name: &str| !name.is_empty() && (name.starts_with('/') || !name.contains('/'));
        if !is_interface || !namespace.is_none_or(is_namespace) {
            return Err(error());
        }
        let namespace = namespace.map(String::from);
        Ok(Self { queue, namespace, ..Self::new(interface) })
    }
}

impl fmt::Display for XdpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.interface)?;
        if let Some(queue) = self.queue {
            write!(f, "/{queue}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, "@{namespace}"),
            None => Ok(()),
        }
    }
}

/// How a port works, which depends on the driver and the kernel. Displayed as one line for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpMode {
    /// The port, as it was requested.
    pub port: String,
    /// Place where the program runs that takes frames off the interface.
    pub place: AttachMode,
    /// Whether the driver reads and writes the port's memory itself; if not, the kernel copies each
    /// frame once on receipt and once on transmission.
    pub is_zero_copy: bool,
    /// Queues whose frames the port gets; it sends by the first.
    pub queues: Vec<u32>,
    /// Whether frames larger than a chunk can be received and sent, in several chunks.
    pub has_fragments: bool,
    /// Bytes of a chunk; the first 256 of them are head room.
    pub chunk_bytes: usize,
    /// Number of ports that share the memory: Freeport does not copy frames from one to another of
    /// them.
    pub sharing_ports: usize,
}

impl XdpMode {
    /// Describes the mode in a few words, without the name of the port.
    pub fn manner(&self) -> String {
        let place = match self.place {
            AttachMode::Native => "native",
            AttachMode::Generic => "generic",
        };
        let copy = if self.is_zero_copy { "zero-copy" } else { "copied by the kernel" };
        let size = if self.has_fragments { "jumbo frames" } else { "no jumbo frames" };
        let queues = match self.queues.len() {
            1 => "1 queue".into(),
            queues => format!("{queues} queues"),
        };
        let sharing = match self.sharing_ports {
            0 | 1 => String::new(),
            ports => format!(", memory shared by {ports} ports"),
        };
        format!("{place}, {copy}, {queues}, {size}{sharing}")
    }
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xdp:{}: {}", self.port, self.manner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_spelled_as_they_are_read() {
        for text in ["eth0", "eth0/3", "eth0@blue", "eth0/3@blue", "br-1.5", "eth0@/proc/1/ns/net"]
        {
            let options: XdpOptions = text.parse().expect("a port");
            assert_eq!(options.to_string(), text);
        }
        let options: XdpOptions = "eth0/3@blue".parse().expect("a port");
        let parts = (options.interface.as_str(), options.queue, options.namespace.as_deref());
        assert_eq!(parts, ("eth0", Some(3), Some("blue")));
    }

    #[test]
    fn nonsense_is_refused() {
        let bad = ["", "/0", "eth0/", "eth0/x", "eth0/-1", "eth0@", "@b", "eth0/1/2", "a@../x"];
        for text in bad.into_iter().chain(["a b", "tap%d", "sixteen-letters-"]) {
            let error = text.parse::<XdpOptions>().expect_err(text);
            assert!(error.to_string().contains("IFACE/QUEUE"), "{error}");
        }
    }
}
