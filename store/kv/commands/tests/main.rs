// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of commands, most of them beside an installed redis-server 7.0.

mod harness;
mod streams;
mod streams_table;
mod strings;
