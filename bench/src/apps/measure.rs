// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One round of traffic through a network.

use super::site::{BULK, HTTP, Site};
use crate::harness::metrics::{Metric, Round, cost, rate};
use crate::network::bulk::{self, Direction};
use crate::network::http::{Connections, Load};
use crate::network::{Host, PATIENCE, echo};
use anyhow::{Context, Result, ensure};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Number of concurrent clients.
const CLIENTS: usize = 4;
const PINGS: u16 = 200;
/// Path of an answer of 1,000 bytes.
const PATH: &str = "/bytes/1000";

/// Metrics, in the order of a round's values.
pub const METRICS: [Metric; 12] = [
    rate("http_fresh", "requests/s", "HTTP, a connection each"),
    cost("http_fresh_p50", "us", "  median latency"),
    cost("http_fresh_p99", "us", "  99th percentile"),
    rate("http_kept", "requests/s", "HTTP, kept connections"),
    cost("http_kept_p50", "us", "  median latency"),
    cost("http_kept_p99", "us", "  99th percentile"),
    rate("tcp_up", "MB/s", "TCP to the server"),
    rate("tcp_down", "MB/s", "TCP to the client"),
    cost("ping_p50", "us", "ping, median"),
    cost("ping_p99", "us", "ping, 99th percentile"),
    cost("retransmitted", "segments", "TCP segments sent again"),
    cost("lost", "frames", "frames lost by Freeport"),
];

/// Measures each kind of traffic in turn, for this time.
pub fn round(site: &Site, time: Duration) -> Result<Round> {
    let before = (retransmitted(site)?, lost(site)?);
    let pings = echo::ping(&site.client, site.service, PINGS, 56, PATIENCE)?.round_trips;
    ensure!(pings.len() == u64::from(PINGS), "only {} of {PINGS} pings were answered", pings.len());
    let [fresh, kept] = [Connections::Fresh, Connections::Kept].map(|connections| {
        let load = Load {
            host: &site.client,
            server: site.at(HTTP),
            path: PATH,
            connections,
            clients: CLIENTS,
            requests: u64::MAX,
            limit: time,
        };
        let outcome = load.run(&AtomicBool::new(false))?;
        ensure!(outcome.failed() == 0, "requests fail: {:?}", outcome.failures);
        Ok(outcome)
    });
    let [up, down] = [Direction::Up, Direction::Down].map(|way| transfer(site, way, time));
    let after = (retransmitted(site)?, lost(site)?);
    let (fresh, kept) = (fresh?, kept?);
    let micro = |nanoseconds: f64| nanoseconds / 1e3;
    Ok(vec![
        fresh.per_second(),
        micro(fresh.latencies.quantile(0.5)),
        micro(fresh.latencies.quantile(0.99)),
        kept.per_second(),
        micro(kept.latencies.quantile(0.5)),
        micro(kept.latencies.quantile(0.99)),
        up?,
        down?,
        micro(pings.quantile(0.5)),
        micro(pings.quantile(0.99)),
        (after.0 - before.0) as f64,
        (after.1 - before.1) as f64,
    ])
}

/// Returns the rate of a transfer in millions of bytes per second.
fn transfer(site: &Site, direction: Direction, time: Duration) -> Result<f64> {
    let transfer = bulk::start(&site.client, site.at(BULK), direction, u64::MAX)?;
    std::thread::sleep(time);
    Ok(transfer.stop()?.megabytes_per_second())
}

/// Returns the number of segments retransmitted by the hosts, from their kernels' counters.
fn retransmitted(site: &Site) -> Result<u64> {
    let hosts = site.servers.iter().map(|server| &server.host).chain([&site.client]);
    hosts.map(|host| host.within(|| counter(host, "Tcp:", "RetransSegs"))).sum()
}

/// Returns a counter of `/proc/net/snmp`, of the host that the thread is on.
fn counter(host: &Host, group: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut rows = text.lines().filter(|line| line.starts_with(group));
    let (names, values) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let value = pairs.find(|(it, _)| *it == name).and_then(|(_, value)| value.parse().ok());
    value.with_context(|| format!("{} counts no {name}", host.name()))
}

/// Returns the number of frames lost by the programs, or by the interfaces in front of them.
fn lost(site: &Site) -> Result<u64> {
    let mut lost = 0;
    for program in &site.programs {
        let statistics = program.statistics()?;
        for row in statistics["endpoints"].as_array().into_iter().flatten() {
            for counter in ["dropped", "lost"] {
                lost += row[counter].as_u64().unwrap_or_default();
            }
        }
    }
    Ok(lost)
}
