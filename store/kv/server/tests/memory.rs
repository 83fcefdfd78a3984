// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `maxmemory` below the memory that the server was given.

use std::io::Write;

use super::client::{Client, server};

const REFUSED: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

#[test]
fn commands_that_add_something_are_refused_while_memory_is_short() {
    let server = server(1);
    let [mut operator, mut client, mut other] =
        std::array::from_fn(|_| Client::connect(server.addresses()[0]));
    client.check("SET key 1", "+OK\r\n");
    client.check("MULTI", "+OK\r\n");
    client.check("SET key 2", "+QUEUED\r\n");
    other.check("MULTI", "+OK\r\n");
    other.check("GET key", "+QUEUED\r\n");
    operator.check("CONFIG SET maxmemory 1", "+OK\r\n");
    client.check(
        "EXEC",
        "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > \
         'maxmemory'.\r\n",
    );
    other.check("EXEC", "*1\r\n$1\r\n1\r\n");
    client.check("SET key 2", REFUSED);
    client.check("MULTI", "+OK\r\n");
    client.check("GET key", REFUSED);
    client.check("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n");
    client.check("GET key", "$1\r\n1\r\n");
    client.check("DEL key", ":1\r\n");
    operator.check("CONFIG SET maxmemory 0", "+OK\r\n");
    client.check("SET key 2", "+OK\r\n");
    let refusal = operator.ask("CONFIG SET maxmemory 1024gb");
    assert!(refusal.contains("memory is given when the server starts, so at most"), "{refusal}");
}

#[test]
fn messages_about_channels_come_without_replies() {
    let server = server(1);
    let mut client = Client::connect(server.addresses()[0]);
    client.stream.write_all(b"CLIENT REPLY SKIP\r\n").expect("the server reads");
    client.check("SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
}
