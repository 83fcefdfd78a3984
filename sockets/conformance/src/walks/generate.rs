// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generates walks: all orders of a few steps, and random walks of many.

use super::walk::Walk;
use fastrand::Rng;

/// Steps of all orders: those that end a direction or a connection, and transfers.
const ENDS: [&str; 6] = ["rd", "wr", "both", "close", "send=5", "recv=100"];
/// Steps of random walks, besides those with an amount. `TCP_CORK` and Nagle's algorithm only delay
/// what the kernel sends; rings never delay, so they are not among them.
const OTHERS: [&str; 17] = [
    "rd",
    "wr",
    "wr",
    "both",
    "close",
    "dup",
    "error",
    "error",
    "peer",
    "linger=1",
    "linger=0",
    "cork=0",
    "nodelay=1",
    "nonblock=1",
    "watch=0",
    "keepalive=1",
    "info",
];
/// Steps of walks that end by disconnecting (`connect` with `AF_UNSPEC`).
const BEFORE_APART: [&str; 6] = ["wr", "dup", "error", "peer", "nonblock=1", "watch=0"];
/// Limit for `sendfile`, which reports an exited peer between its pieces.
const FILE_MAX: u32 = 12_000;
/// Amounts at boundaries: headers, joined parts, the first areas of a ring.
const AMOUNTS: [u32; 12] = [0, 1, 2, 7, 64, 65, 900, 1000, 4096, 4097, 12_000, 20_000];
/// Limit over Unix sockets, where the kernel soon reports a lack of room.
const UNIX_MAX: u32 = 900;

/// Returns all orders of `depth` of the steps that end connections, without mirror images and
/// without steps of a closed end.
pub fn all_orders(kind: &'static str, depth: usize) -> Vec<Walk> {
    let mut walks = vec![Walk { kind, steps: vec![] }];
    for _ in 0..depth {
        walks = walks.iter().flat_map(longer).collect();
    }
    walks
}

/// Returns the walk extended by each possible step.
fn longer(walk: &Walk) -> Vec<Walk> {
    let sides: &[&str] = if walk.steps.is_empty() { &["A"] } else { &["A", "B"] };
    let mut walks = vec![];
    for side in sides.iter().filter(|side| !walk.steps.contains(&format!("{side}.close"))) {
        for step in ENDS {
            let mut next = walk.clone();
            next.steps.push(format!("{side}.{step}"));
            walks.push(next);
        }
    }
    walks
}

/// Returns the walk of a seed.
pub fn random_walk(seed: u64) -> Walk {
    let mut rng = Rng::with_seed(seed);
    let kind = if rng.u32(..3) == 0 { "unix" } else { "tcp" };
    let is_taken_apart = kind == "tcp" && rng.u32(..8) == 0;
    let others = if is_taken_apart { &BEFORE_APART[..] } else { &OTHERS };
    let most = if kind == "unix" { UNIX_MAX } else { u32::MAX };
    let mut steps = vec![];
    for _ in 0..rng.usize(4..16) {
        steps.push(format!("{}.{}", random_side(&mut rng), random_step(&mut rng, others, most)));
    }
    if kind == "tcp" && !is_taken_apart && rng.u32(..4) == 0 {
        // Over Unix sockets, the kernel reports room whenever the peer reads.
        let at = rng.usize(..steps.len());
        steps.insert(at, format!("{}.watch=1", random_side(&mut rng)));
    }
    if is_taken_apart {
        steps.push(format!("{}.unspec", random_side(&mut rng)));
    }
    Walk { kind, steps }
}

fn random_side(rng: &mut Rng) -> char {
    if rng.bool() { 'A' } else { 'B' }
}

fn random_step(rng: &mut Rng, others: &[&str], most: u32) -> String {
    let amount = AMOUNTS[rng.usize(..AMOUNTS.len())].min(most);
    match rng.u32(..20) {
        0..=4 => format!("send={amount}"),
        5 => format!("write={amount}"),
        6 => format!("parts={}", amount.min(1000)),
        7..=11 => format!("recv={amount}"),
        12 => format!("peek={amount}"),
        13 => format!("all={amount}"),
        14 => format!("drop={amount}"),
        15 if rng.bool() => format!("recvmsg={amount}"),
        15 => format!("sendfile={}", amount.min(FILE_MAX)),
        _ => others[rng.usize(..others.len())].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_different_and_none_goes_on_after_its_end() {
        let walks = all_orders("tcp", 2);
        assert_eq!(walks.len(), 6 + 5 * 12 - 6 + 6);
        assert!(walks.iter().all(|walk| walk.to_string() != "tcp A.close A.wr"));
    }

    #[test]
    fn a_seed_gives_the_same_walk() {
        assert_eq!(random_walk(7), random_walk(7));
        assert_ne!(random_walk(7), random_walk(8));
    }
}
