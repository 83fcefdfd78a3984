// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of nodes and shards on the command line.

use anyhow::bail;
use freeport_kv_cluster::{Member, NodeId, Shard, State, Topology};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Fewest digits of an id that name it.
const DIGITS: usize = 4;

/// The first digits of an id, for tables.
pub fn short(id: impl Display) -> String {
    let mut text = id.to_string();
    text.truncate(8);
    text
}

/// A number of things: "1 slot", "2 slots".
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The node with this id, beginning of an id, or `HOST:PORT`.
///
/// # Errors
/// There is none, or there are several.
pub fn node(state: &State, text: &str) -> anyhow::Result<Member> {
    let mut nodes: BTreeMap<NodeId, Member> = BTreeMap::new();
    let shards = state.topology.iter().flat_map(|stored| &stored.topology.shards);
    nodes.extend(shards.flat_map(|shard| &shard.members).map(|node| (node.id, node.clone())));
    for (id, presence) in &state.nodes {
        nodes.insert(*id, Member { id: *id, address: presence.address.clone() });
    }
    let is_named = |node: &&Member| begins(node.id, text) || node.address.to_string() == text;
    let found: Vec<&Member> = nodes.values().filter(is_named).collect();
    match &found[..] {
        [node] => Ok((*node).clone()),
        [] => bail!(
            "no node is called `{text}`; `freeport kv cluster status` lists them, and a name is \
             HOST:PORT, or an id or its first digits, at least {DIGITS}"
        ),
        several => {
            let ids: Vec<String> = several.iter().map(|node| node.id.to_string()).collect();
            bail!("`{text}` names several nodes: {}", ids.join(", "))
        }
    }
}

/// The shard with this id, beginning of an id, or with the node of this name.
///
/// # Errors
/// There is none, or there are several.
pub fn shard<'a>(state: &State, topology: &'a Topology, text: &str) -> anyhow::Result<&'a Shard> {
    let found: Vec<&Shard> =
        topology.shards.iter().filter(|shard| begins(shard.id, text)).collect();
    match &found[..] {
        [shard] => Ok(shard),
        [] => match node(state, text).ok().and_then(|node| topology.shard_of(node.id)) {
            Some(shard) => Ok(shard),
            None => bail!(
                "no shard is called `{text}`; `freeport kv cluster status` lists them, and a name \
                 is an id or its first digits, at least {DIGITS}, or a node of the shard"
            ),
        },
        several => {
            let ids: Vec<String> = several.iter().map(|shard| shard.id.to_string()).collect();
            bail!("`{text}` names several shards: {}", ids.join(", "))
        }
    }
}

fn begins(id: impl Display, text: &str) -> bool {
    text.len() >= DIGITS && id.to_string().starts_with(&text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_kv_cluster::{Address, Revision, Versioned, planning};

    fn member(id: &str, port: u16) -> Member {
        let address = Address { host: "kv.example".to_owned(), port, ..Address::default() };
        Member { id: format!("{id}{}", "0".repeat(34)).parse().expect("an id"), address }
    }

    #[test]
    fn nodes_have_ids_and_addresses() {
        let members = [member("12345a", 1), member("12345b", 2), member("abcdef", 3)];
        let topology = planning::create(&members, 0).expect("there are enough");
        let versioned = Versioned { revision: Revision(1), topology };
        let state = State { topology: Some(versioned.clone()), ..State::default() };
        for (text, expected) in [("12345a", 0), ("ABCD", 2), ("kv.example:2", 1)] {
            assert_eq!(node(&state, text).expect(text), members[expected]);
            let shard = shard(&state, &versioned.topology, text).expect(text);
            assert_eq!(shard.primary, members[expected].id);
        }
        let error = node(&state, "12345").expect_err("two ids begin so").to_string();
        assert!(error.contains("several"), "{error}");
        for wrong in ["123", "", "99999", "kv.example:4", "kv.example"] {
            let error = node(&state, wrong).expect_err(wrong).to_string();
            assert!(error.contains("cluster status"), "{error}");
            assert!(shard(&state, &versioned.topology, wrong).is_err(), "{wrong}");
        }
    }
}
