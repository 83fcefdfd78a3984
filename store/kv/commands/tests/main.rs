// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of commands, most of them beside an installed redis-server 7.0.

mod geo;
mod geo_redis;
mod harness;
mod sorted_sets;
mod sorted_sets_redis;
mod specs_of_family;
mod strings;
