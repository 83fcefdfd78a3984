// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies leave when the log has what they report.

use std::path::Path;

use freeport_kv_protocol::batch::Operation;
use freeport_kv_server::{Options, PersistenceOptions, Policy, Server};

use super::peer::{DONE, Peer, value};
use crate::client::server_with;

fn start(folder: &Path, policy: Policy) -> Server {
    let persistence = PersistenceOptions { policy, ..PersistenceOptions::new(folder.into()) };
    server_with(Options { persistence: Some(persistence), ..super::options(1) })
}

#[test]
fn acknowledged_changes_are_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (round, policy) in
        [Policy::Always, Policy::EverySecond, Policy::Never].into_iter().enumerate()
    {
        let server = start(folder.path(), policy);
        let mut peers: Vec<_> =
            (0..4).map(|_| Peer::connected(server.udp_addresses()[0], 0)).collect();
        for number in 0..20_usize {
            let key = [round as u8, number as u8];
            let peer = &mut peers[number % 4];
            let replies = peer.run(&[Operation::put(&key, &key), Operation::get(&key)]).replies();
            assert_eq!(replies, [DONE, value(key)]);
            assert_eq!(peer.run(&[Operation::get(&key)]).replies(), [value(key)], "only a read");
        }
        server.stopper().stop();
        server.join().expect("no worker fails");
    }
    let server = start(folder.path(), Policy::Never);
    let mut peer = Peer::connected(server.udp_addresses()[0], 0);
    for (round, number) in (0..3).flat_map(|round| (0..20).map(move |number| (round, number))) {
        let key = [round, number];
        assert_eq!(peer.run(&[Operation::get(&key)]).replies(), [value(key)]);
    }
}
