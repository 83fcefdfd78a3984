// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings beside redis-server.

use freeport_kv_protocol::resp::Version;

use crate::harness::{Compared, Local};

#[test]
fn a_string_is_stored_and_read() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("SET key value"), b"+OK\r\n");
    assert_eq!(local.line("get key"), b"$5\r\nvalue\r\n");
    assert_eq!(local.line("GET"), b"-ERR wrong number of arguments for 'get' command\r\n");
    assert_eq!(local.effects.events[0].name, "set");
}

#[test]
#[ignore = "long: needs redis-server"]
fn replies_are_those_of_redis() {
    Compared::once(|compared| {
        for version in [Version::Two, Version::Three] {
            compared.use_version(version);
            compared.same("SET key value");
            compared.same_in_any_order("GET key");
            compared.same("GET none");
        }
    });
}
