// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The batched protocol of a cluster's nodes.

use freeport_kv_protocol::batch::{Operation, Status};

use super::nodes::Nodes;
use crate::batched::client::{BatchClient, Stream};

#[test]
fn operations_on_keys_of_others_are_answered_by_their_place() {
    for workers in [1, 3] {
        let mut nodes = Nodes::start(2, workers);
        nodes.set(&[("0-8191", &[0]), ("8192-16000", &[1])]);
        let mut client = BatchClient::over(Stream::tcp(nodes.all[0].batch_address()));
        // Slots: a 15495, b 3300, c 7365, f 3168, and x 16287.
        let replies = client.run(&[
            Operation::put(b"b", b"1"),
            Operation::put(b"a", b"2"),
            Operation::get(b"b"),
            Operation::get(b"x"),
            Operation::put(b"c", b"3"),
            Operation::get(b"c"),
        ]);
        let place = format!("15495 127.0.0.1:{}", nodes.all[1].batch_address().port());
        let done = |value: Option<&[u8]>| (Status::Done, value.map(<[u8]>::to_vec));
        let down = b"CLUSTERDOWN Hash slot not served".to_vec();
        assert_eq!(
            replies,
            [
                done(None),
                (Status::Moved, Some(place.into_bytes())),
                done(Some(b"1")),
                (Status::Unavailable, Some(down)),
                done(None),
                done(Some(b"3")),
            ]
        );
    }
}
