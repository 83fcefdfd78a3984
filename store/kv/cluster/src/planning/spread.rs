// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes divided into shards, so that the loss of a host does as little harm as possible.
//!
//! Nodes are dealt to the shards in turn, host by host. So no two nodes of a host are in one shard,
//! unless the host has more nodes than there are shards. Then primaries are chosen so that no host
//! has more of them than it must: an optimal semi-matching of shards with hosts (Harvey, Ladner,
//! Lovász, Tamir: Semi-matchings for bipartite graphs and load balancing, 2006).

use std::collections::{BTreeMap, VecDeque};

use crate::planning::PlanError;
use crate::topology::Member;

/// Divides nodes into shards, each with a number of replicas or one more. The first of each shard
/// is the primary.
///
/// # Errors
/// [`PlanError::TooFewNodes`].
pub fn spread(nodes: &[Member], replicas: usize) -> Result<Vec<Vec<Member>>, PlanError> {
    let too_few = PlanError::TooFewNodes { nodes: nodes.len(), replicas };
    let count = replicas.checked_add(1).map_or(0, |size| nodes.len() / size);
    if count == 0 {
        return Err(too_few);
    }
    let mut hosts: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
    for node in nodes {
        hosts.entry(&node.address.host).or_default().push(node);
    }
    let mut shards = vec![vec![]; count];
    for (turn, node) in hosts.into_values().flatten().enumerate() {
        shards[turn % count].push(node.clone());
    }
    balance_primaries(&mut shards);
    Ok(shards)
}

/// Puts another node first, where that takes a primary from a host to one that has at least two
/// fewer, be it by a chain of such changes.
fn balance_primaries(shards: &mut [Vec<Member>]) {
    while let Some(chain) = improvement(shards) {
        for (shard, node) in chain {
            shards[shard].swap(0, node);
        }
    }
}

/// The changes of primaries, each by the numbers of a shard and of its new primary, that take one
/// from a host to another with at least two fewer.
fn improvement(shards: &[Vec<Member>]) -> Option<Vec<(usize, usize)>> {
    let mut primaries: BTreeMap<&str, usize> = BTreeMap::new();
    for host in shards.iter().flatten().map(|node| &*node.address.host) {
        primaries.entry(host).or_default();
    }
    for shard in shards {
        *primaries.entry(&shard[0].address.host).or_default() += 1;
    }
    primaries.iter().find_map(|(host, count)| chain_from(shards, &primaries, host, *count))
}

/// Searches breadth-first from a host that has a number of primaries.
fn chain_from<'a>(
    shards: &'a [Vec<Member>],
    primaries: &BTreeMap<&str, usize>,
    start: &'a str,
    count: usize,
) -> Option<Vec<(usize, usize)>> {
    // By which change a host was reached, and from which host.
    let mut reached: BTreeMap<&str, Option<(usize, usize, &str)>> = BTreeMap::new();
    reached.insert(start, None);
    let mut queue = VecDeque::from([start]);
    while let Some(host) = queue.pop_front() {
        if primaries[host] + 2 <= count {
            let mut chain = vec![];
            let mut at = host;
            while let Some((shard, node, before)) = reached[at] {
                chain.push((shard, node));
                at = before;
            }
            return Some(chain);
        }
        for (number, shard) in shards.iter().enumerate() {
            if shard[0].address.host != host {
                continue;
            }
            for (node, member) in shard.iter().enumerate().skip(1) {
                let next = member.address.host.as_str();
                reached.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    Some((number, node, host))
                });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, NodeId};

    fn node(host: usize) -> Member {
        let address = Address { host: format!("host{host}"), port: 6379, ..Address::default() };
        Member { id: NodeId::random(), address }
    }

    fn count_by_host<'a>(nodes: impl Iterator<Item = &'a Member>) -> BTreeMap<&'a str, usize> {
        nodes.fold(BTreeMap::new(), |mut counts, node| {
            *counts.entry(node.address.host.as_str()).or_default() += 1;
            counts
        })
    }

    /// The smallest maximum of primaries on a host, by trying all choices.
    fn best_maximum(shards: &[Vec<Member>]) -> usize {
        let choices: usize = shards.iter().map(Vec::len).product();
        let maximum = |mut choice: usize| {
            let primaries = shards.iter().map(|shard| {
                let node = &shard[choice % shard.len()];
                choice /= shard.len();
                node
            });
            count_by_host(primaries).into_values().max().unwrap_or(0)
        };
        (0..choices).map(maximum).min().unwrap_or(0)
    }

    #[test]
    fn three_hosts_share_primaries_and_replicas() {
        let nodes: Vec<Member> = [0, 0, 1, 1, 2, 2].map(node).to_vec();
        let shards = spread(&nodes, 1).expect("there are enough");
        assert_eq!(shards.len(), 3);
        assert_eq!(count_by_host(shards.iter().map(|shard| &shard[0])).len(), 3);
        assert!(shards.iter().all(|shard| count_by_host(shard.iter()).len() == 2));
    }

    #[test]
    fn too_few_nodes_are_refused() {
        for (nodes, replicas) in [(0, 0), (1, 1), (2, 2), (3, usize::MAX)] {
            let all: Vec<Member> = (0..nodes).map(node).collect();
            assert_eq!(spread(&all, replicas), Err(PlanError::TooFewNodes { nodes, replicas }));
        }
    }

    #[test]
    fn random_nodes_are_spread_as_well_as_possible() {
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (hosts, replicas) = (rng.usize(1..6), rng.usize(0..3));
            let nodes: Vec<Member> =
                (0..rng.usize(replicas + 1..11)).map(|_| node(rng.usize(..hosts))).collect();
            let shards = spread(&nodes, replicas).expect("there are enough");
            assert_eq!(shards.len(), nodes.len() / (replicas + 1), "seed {seed}");

            let mut dealt: Vec<NodeId> = shards.iter().flatten().map(|node| node.id).collect();
            let mut given: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
            dealt.sort_unstable();
            given.sort_unstable();
            assert_eq!(dealt, given, "seed {seed}: each node is in one shard");

            let of_hosts = count_by_host(nodes.iter());
            for shard in &shards {
                assert!(shard.len() > replicas, "seed {seed}");
                for (host, here) in count_by_host(shard.iter()) {
                    let must = of_hosts[host].div_ceil(shards.len());
                    assert!(here <= must, "seed {seed}: {here} nodes of {host} in one shard");
                }
            }
            let primaries = count_by_host(shards.iter().map(|shard| &shard[0]));
            let most = primaries.into_values().max().unwrap_or(0);
            assert_eq!(most, best_maximum(&shards), "seed {seed}");
        }
    }
}
