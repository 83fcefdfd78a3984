// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of commands, most of them beside an installed redis-server 7.0.

mod harness;
mod sort;
mod sort_beside_redis;
mod streams;
mod streams_events;
mod streams_random;
mod streams_specs;
mod streams_table;
mod strings;
