// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The examples of the protocol have the replies of the original.

use super::client::Client;
use super::protocol::examples::{Example, examples};

#[test]
fn every_example_has_the_replies_of_the_original() {
    for Example { requests, replies, is_closed } in examples() {
        let shown = String::from_utf8_lossy(&requests).into_owned();
        // This server has no logs to watch.
        let expected = String::from_utf8_lossy(&replies).replace(
            "ERROR cannot pipeline other commands before watch",
            "CLIENT_ERROR watch commands not allowed",
        );
        for piece in [requests.len().max(1), 1, 7] {
            let mut client = Client::default();
            let got: Vec<u8> =
                requests.chunks(piece).flat_map(|piece| client.receive(piece)).collect();
            assert_eq!(String::from_utf8_lossy(&got), expected, "to {shown:?}");
            assert_eq!(client.is_closed, is_closed, "{shown:?}");
        }
    }
}
