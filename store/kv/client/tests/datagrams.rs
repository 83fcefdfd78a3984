// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches to the server itself, as datagrams.

use freeport_kv_client::{Address, Batch, Client, Options};
use freeport_kv_server::{Options as ServerOptions, Server};

/// A batch is many datagrams, of which a few are under way; the keys are of all workers. Reads that
/// are lost are repeated.
#[test]
fn batches_are_stored_and_read() {
    for workers in [1, 3] {
        let any = "127.0.0.1:0".parse().expect("it is an address");
        let options = ServerOptions { workers, batch_udp: vec![any], ..ServerOptions::default() };
        let server = Server::start(options).expect("a free port is bound");
        let address = Address::Udp(server.udp_addresses()[0].to_string());
        let options = Options { window: 4, ..Options::default() };
        let mut client = Client::connect_to(address, options).expect("the server answers");
        let pairs: Vec<_> = (0..2_000_u32)
            .map(|number| (format!("key:{number}").into_bytes(), vec![7; number as usize % 500]))
            .collect();
        let (mut puts, mut gets) = (Batch::new(), Batch::new());
        for (key, value) in &pairs {
            puts.put(key, value);
            gets.get(key);
        }
        client.run(&puts).expect("nothing is lost");
        let replies = client.run(&gets).expect("the server answers");
        for (number, (_, value)) in pairs.iter().enumerate() {
            assert_eq!(replies.get(number), Ok(Some(&value[..])), "get {number}");
        }
    }
}
