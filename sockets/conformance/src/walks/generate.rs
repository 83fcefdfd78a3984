// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which walks there are: all orders of a few steps, and random ones of many.

use super::walk::Walk;
use fastrand::Rng;

/// The steps of all orders: what ends a direction or a connection, and bytes on their way.
const ENDS: [&str; 6] = ["rd", "wr", "both", "close", "send=5", "recv=100"];
/// Steps that random walks take, besides those with an amount.
const OTHERS: [&str; 18] = [
    "rd", "wr", "wr", "both", "close", "dup", "error", "error", "peer", "linger=1", "linger=0",
    "cork=1", "cork=0", "nodelay=0", "nodelay=1", "nonblock=1", "watch=0", "unspec",
];
/// Amounts where something changes: headers, joined parts, the first areas of a ring.
const AMOUNTS: [u32; 12] = [0, 1, 2, 7, 64, 65, 900, 1000, 4096, 4097, 12_000, 20_000];

/// All orders of so many of the steps that end connections. Walks that are mirror images of others,
/// and steps of an end that is closed, are left out.
pub fn all_orders(kind: &'static str, depth: usize) -> Vec<Walk> {
    let mut walks = vec![Walk { kind, steps: vec![] }];
    for _ in 0..depth {
        walks = walks.iter().flat_map(longer).collect();
    }
    walks
}

/// The walk with each step that may follow.
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

/// The walk of a seed.
pub fn random_walk(seed: u64) -> Walk {
    let mut rng = Rng::with_seed(seed);
    let kind = if rng.u32(..3) == 0 { "unix" } else { "tcp" };
    let count = rng.usize(4..16);
    let steps = (0..count).map(|_| {
        let side = if rng.bool() { "A" } else { "B" };
        format!("{side}.{}", random_step(&mut rng))
    });
    Walk { kind, steps: steps.collect() }
}

fn random_step(rng: &mut Rng) -> String {
    let amount = AMOUNTS[rng.usize(..AMOUNTS.len())];
    match rng.u32(..20) {
        0..=4 => format!("send={amount}"),
        5 => format!("write={amount}"),
        6 => format!("parts={}", amount.min(1000)),
        7..=11 => format!("recv={amount}"),
        12 => format!("peek={amount}"),
        13 => format!("all={amount}"),
        14 => format!("drop={amount}"),
        _ => OTHERS[rng.usize(..OTHERS.len())].to_owned(),
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
