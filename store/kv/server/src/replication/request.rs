// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command by which a server asks another for its log:
//! `KV.FOLLOW version node port history position [SLOTS set]`.

use freeport_kv_cluster::{NodeId, SlotSet};
use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::is;
use freeport_kv_journal::Position;
use freeport_kv_protocol::replication::VERSION;

/// A request for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The node that asks, in a cluster; otherwise the run of the server that asks.
    pub node: Option<NodeId>,
    /// Port where it accepts clients of Redis; 0: nowhere.
    pub port: u16,
    /// The history that its log ends in; 0: it has none that counts.
    pub history: u64,
    /// End of its log.
    pub position: Position,
    /// Only changes of keys in these slots are wanted, which are moved there.
    pub slots: Option<SlotSet>,
}

impl Request {
    /// Reads the arguments of the command behind its name.
    ///
    /// # Errors
    /// One is wrong, or the version is not known here.
    pub fn parse(arguments: &[&[u8]]) -> Result<Self, Error> {
        const VERSIONS: Error = Error::fixed(
            "ERR the servers speak different versions of the replication protocol; upgrade the \
             older one",
        );
        let ([version, node, port, history, position], rest) =
            arguments.split_first_chunk().ok_or(Error::SYNTAX)?;
        if text(version)?.parse() != Ok(VERSION) {
            return Err(VERSIONS);
        }
        let slots = match rest {
            [] => None,
            [word, slots] if is(word, "slots") => Some(parsed(slots)?),
            _ => return Err(Error::SYNTAX),
        };
        Ok(Self {
            node: if *node == b"-" { None } else { Some(parsed(node)?) },
            port: parsed(port)?,
            history: u64::from_str_radix(text(history)?, 16).map_err(|_| Error::SYNTAX)?,
            position: Position(parsed(position)?),
            slots,
        })
    }

    /// The command with its arguments.
    pub fn words(&self) -> Vec<String> {
        let node = self.node.map_or("-".into(), |node| node.to_string());
        let mut words = vec![
            "KV.FOLLOW".into(),
            VERSION.to_string(),
            node,
            self.port.to_string(),
            format!("{:016x}", self.history),
            self.position.0.to_string(),
        ];
        if let Some(slots) = &self.slots {
            words.extend(["SLOTS".into(), slots.to_string()]);
        }
        words
    }
}

fn text(argument: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(argument).map_err(|_| Error::SYNTAX)
}

fn parsed<T: std::str::FromStr>(argument: &[u8]) -> Result<T, Error> {
    text(argument)?.parse().map_err(|_| Error::SYNTAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        let plain = Request {
            node: None,
            port: 6379,
            history: 0xAB,
            position: Position(1 << 40),
            slots: None,
        };
        let slots = "0-5,7".parse().expect("a set of slots");
        let moved = Request { node: Some(NodeId::random()), slots: Some(slots), ..plain.clone() };
        for request in [plain, moved] {
            let words = request.words();
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(Request::parse(&words[1..]), Ok(request));
        }
    }

    #[test]
    fn wrong_requests_are_refused() {
        for line in ["", "1 - 1 0", "1 x 1 0 0", "1 - 65536 0 0", "1 - 1 g 0", "1 - 1 0 0 SLOTS"] {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert_eq!(Request::parse(&words), Err(Error::SYNTAX), "{line}");
        }
        let error = Request::parse(&[b"9", b"-", b"1", b"0", b"0"]).expect_err("it is unknown");
        assert!(error.text().contains("versions"), "{error:?}");
    }
}
