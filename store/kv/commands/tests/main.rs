// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of commands, most of them beside an installed redis-server 7.0.

mod batch;
mod bits;
mod collections;
mod eviction;
mod full;
mod generic;
mod generic_beside_redis;
mod generic_effects;
mod geo;
mod geo_redis;
mod harness;
mod hashes;
mod hit_ratio;
mod hyperloglog;
mod lists;
mod random_commands;
mod reload;
mod replay;
mod sets;
mod sort;
mod sort_beside_redis;
mod sorted_sets;
mod sorted_sets_redis;
mod specs;
mod streams;
mod streams_events;
mod streams_random;
mod streams_table;
mod strings;
mod strings_lines;
mod strings_random;
mod vectors;
