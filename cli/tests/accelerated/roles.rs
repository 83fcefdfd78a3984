// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients and servers in this test binary: it is started again, by `freeport exec` or not, in the
//! role that an environment variable names.

use crate::matrix::{redis_mixed, tokio_pair};
use crate::{
    death, hostile, kv, limits, memcached, nginx, recall, redis, reuse, scale, soak, starved,
};
use std::env;
use std::ffi::c_int;
use std::os::fd::AsRawFd;

/// Variable with the role.
pub const ROLE_VARIABLE: &str = "FREEPORT_TEST_ROLE";
/// Variable with its arguments.
pub const ARGUMENT_VARIABLE: &str = "FREEPORT_TEST_ARGUMENT";

/// Runs a role, if one is set; otherwise this is not a test.
#[test]
fn play() {
    let Ok(role) = env::var(ROLE_VARIABLE) else { return };
    let argument = env::var(ARGUMENT_VARIABLE).unwrap_or_default();
    match role.as_str() {
        "redis client" => redis::client(&argument),
        "redis plain client" => redis::plain_client(&argument),
        "redis crowd" => redis::crowd(&argument),
        "redis until shutdown" => redis::until_shutdown(&argument),
        "kv client" => kv::client(&argument),
        "http client" => nginx::client(&argument),
        "http load" => nginx::load(&argument),
        "http echo" => nginx::echo(&argument),
        "memcached client" => memcached::client(&argument),
        "memcached unix client" => memcached::unix_client(&argument),
        "recalled clients" => recall::clients(&argument),
        "redis survivor" => death::survivor(&argument),
        "talk" => death::talk(&argument),
        "listen" => death::listen(&argument),
        "brings back" => hostile::bring_back(&argument),
        "answers pings" => hostile::answer_pings(&argument),
        "visitor" => limits::visit(&argument),
        "crowd server" => scale::serve(&argument),
        "crowd client" => scale::visit(&argument),
        "reuse server" => reuse::serve(&argument),
        "reuse client" => reuse::ask_for_ever(&argument),
        "reuse vandal" => hostile::reuse::vandal(&argument),
        "reuse vandal server" => hostile::reuse::vandal_server(&argument),
        "reuse wary client" => hostile::reuse::wary_client(&argument),
        "reuse visitor" => reuse::visit(&argument),
        "soak visitor" => soak::visitors::visit(&argument),
        "starved set" => starved::set(&argument),
        "redis mixed" => redis_mixed::clients(&argument),
        "tokio server" => tokio_pair::server(&argument),
        "tokio client" => tokio_pair::client(&argument, true),
        "tokio plain client" => tokio_pair::client(&argument, false),
        other => panic!("no such role: {other}"),
    }
}

/// Whether the library is loaded in this process.
pub fn is_preloaded() -> bool {
    symbol().is_some()
}

/// Whether a connection is accelerated.
pub fn is_accelerated(stream: &impl AsRawFd) -> bool {
    symbol().is_some_and(|function| function(stream.as_raw_fd()) != 0)
}

fn symbol() -> Option<extern "C" fn(c_int) -> c_int> {
    // SAFETY: the name ends with a zero byte.
    let found =
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"freeport_is_accelerated".as_ptr().cast()) };
    // SAFETY: the function of the library has this type.
    (!found.is_null()).then(|| unsafe { std::mem::transmute(found) })
}
