// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the command: one binary, since each would link all libraries of the command.
//! `accelerated` is another one, whose tests run its own binary as the programs that they connect.

mod applications;
mod bench_kv;
mod bench_sockets;
mod catalogue;
mod commands;
mod completions;
mod doctor;
mod fmt;
mod gateways;
mod help;
mod hosts;
mod kv_bench;
mod kv_clients;
mod kv_cluster;
mod kv_functions;
mod kv_inspect;
mod kv_nodes;
mod kv_serve;
mod kv_server;
mod kv_tls;
mod monitor;
mod monitor_log;
mod monitor_names;
mod monitor_rights;
mod output;
mod plan;
mod readme;
mod rests;
mod run;
mod running;
mod service;
mod sockets;
mod sockets_top;
mod steered;
mod steering;
mod tutorial;
mod warnings;
mod xdp;
mod xdp_compile;
mod xdp_element;
mod xdp_estimate;
mod xdp_load;
mod xdp_run;
mod xdp_steps;
