// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands of several clients, while replicas come, go and are started again.

use super::{Node, catch_up, follow};
use crate::persistence::random::{keep_keys, run};

#[test]
fn random_commands_are_replicated() {
    let first = freeport_testbed::seed();
    for seed in first..first + 4 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let primary = Node::start(1 + seed as usize % 2);
        let mut replica = Node::of(&primary, 2 - seed as usize % 2);
        let other = Node::start(3);
        for turn in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    let (mut random, mut client) = (random.fork(), primary.client());
                    scope.spawn(move || run(&mut client, &mut random, 200));
                }
                match turn {
                    0 => follow(&other, &primary),
                    1 => assert_eq!(primary.client().call("SAVE"), "OK"),
                    _ => assert_eq!(replica.client().call("SAVE"), "OK"),
                }
            });
            keep_keys(&mut primary.client());
            for node in [&replica, &other] {
                catch_up(node, &primary);
                assert_eq!(node.digest(), primary.digest());
            }
            replica = replica.restart(1 + random.usize(..3));
            assert_eq!(replica.digest(), primary.digest());
            follow(&replica, &primary);
        }
        catch_up(&replica, &primary);
        assert_eq!((replica.full_syncs(), other.full_syncs()), ("0".into(), "1".into()));
    }
}
