// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unmodified programs of the distribution under `freeport exec`: they work as without it, and
//! their connections are accelerated.

mod clusters;
mod death;
mod forks;
mod handing;
mod handing_death;
mod harness;
mod hostile;
mod http;
mod kv;
mod languages;
mod limits;
mod matrix;
mod memcached;
mod nginx;
mod nginx_upgrade;
mod operating;
mod others;
mod pings;
mod prefork;
mod recall;
mod redis;
mod resp;
mod reuse;
mod reuse_programs;
mod roles;
mod scale;
mod shells;
mod soak;
mod starved;
mod stuck;
mod unix;
mod watching;
mod why;
