// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies by which a node of a cluster sends a client to another node.

use anyhow::bail;
use std::time::Duration;

/// Most redirections of one command. More of them mean that nodes disagree.
const REDIRECTIONS: u32 = 24;
/// Redirections without a pause. In more of them, nodes name each other, since not all have
/// followed a change yet.
const QUICK: u32 = 2;
/// Time before each of the others.
const PAUSE: Duration = Duration::from_millis(100);

/// Times before each of the redirections of one command.
pub fn pauses() -> impl Iterator<Item = Duration> {
    (0..REDIRECTIONS).map(|number| if number < QUICK { Duration::ZERO } else { PAUSE })
}

/// The client should send its command to another node.
#[derive(Debug, PartialEq, Eq)]
pub struct Redirection {
    /// The slot of the command's keys.
    pub slot: u16,
    /// Host and port of the other node.
    pub server: String,
    /// Only this command, after `ASKING`.
    pub is_asking: bool,
}

/// Reads the error of a reply; `server` sent it. `None` means that it is another error.
///
/// # Errors
/// The redirection leads nowhere.
pub fn redirection(error: &[u8], server: &str) -> anyhow::Result<Option<Redirection>> {
    let text = String::from_utf8_lossy(error);
    let mut words = text.split(' ');
    let is_asking = match words.next() {
        Some("MOVED") => false,
        Some("ASK") => true,
        _ => return Ok(None),
    };
    let slot = words.next().and_then(|slot| slot.parse().ok());
    let place = words.next().and_then(|address| address.rsplit_once(':'));
    let (Some(slot), Some((host, port))) = (slot, place) else {
        bail!("{server} redirects to no address: {text}");
    };
    // Without a host, it is that of the node which has replied.
    let host = match host {
        "" => server.rsplit_once(':').map_or(server, |(host, _)| host),
        host => host,
    };
    let is_bare = host.contains(':') && !host.starts_with('[');
    let host = if is_bare { format!("[{host}]") } else { host.to_owned() };
    Ok(Some(Redirection { slot, server: format!("{host}:{port}"), is_asking }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_name_slot_and_server() {
        let read = |text: &str| redirection(text.as_bytes(), "10.0.0.1:7000").expect(text);
        let expected = |server: &str, is_asking| {
            Some(Redirection { slot: 866, server: server.to_owned(), is_asking })
        };
        assert_eq!(read("MOVED 866 10.0.0.2:7001"), expected("10.0.0.2:7001", false));
        assert_eq!(read("ASK 866 kv-2.example:7001"), expected("kv-2.example:7001", true));
        assert_eq!(read("MOVED 866 ::1:7001"), expected("[::1]:7001", false));
        assert_eq!(read("MOVED 866 [::1]:7001"), expected("[::1]:7001", false));
        assert_eq!(read("MOVED 866 :7001"), expected("10.0.0.1:7001", false));
        assert_eq!(read("ERR unknown command"), None);
        for wrong in ["MOVED", "MOVED 866", "ASK x 10.0.0.1:1", "MOVED 866 host"] {
            assert!(redirection(wrong.as_bytes(), "10.0.0.1:7000").is_err(), "{wrong}");
        }
    }
}
