// SPDX-License-Identifier: Apache-2.0 OR MIT
//! redis, with its own benchmark as the client.

use super::{Application, Cell, FIRST_RATE, Figures, Measuring, Service, Site};
use anyhow::{Context, Result, ensure};
use std::process::Command;

pub const PROGRAMS: [&str; 2] = ["redis-server", "redis-benchmark"];

/// Lengths of the trial rounds in seconds, which determine how many requests a round takes.
const TRIALS: [f64; 2] = [0.1, 0.2];

/// Returns the command of a server without persistence.
pub fn server(new: impl Fn(&str) -> Command, site: &Site<'_>) -> Command {
    let mut command = new(PROGRAMS[0]);
    command.args(["--bind", "127.0.0.1", "--port", &site.port.to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.arg("--dir").arg(site.folder);
    command
}

/// Returns the requests per second of short trials, which also store the value that will be
/// requested.
pub fn first_rate(service: &Service, cell: &Cell, with: &Measuring<'_>) -> Result<f64> {
    ask(service, &Cell { application: Application::RedisSet, ..*cell }, with, 1)?;
    let mut rate = FIRST_RATE;
    for part in TRIALS {
        let figures = ask(service, cell, with, (rate * part) as u64)?;
        rate = figures.amount / figures.seconds.max(1e-3);
    }
    Ok(rate)
}

/// Sends this many requests.
pub fn ask(service: &Service, cell: &Cell, with: &Measuring<'_>, requests: u64) -> Result<Figures> {
    let test = if cell.application == Application::RedisSet { "set" } else { "get" };
    let options = [
        ("-p", service.port.to_string()),
        ("-c", cell.connections.to_string()),
        ("-n", requests.max(1).to_string()),
        ("-d", cell.value_bytes.to_string()),
        ("-P", cell.pipeline.to_string()),
        ("-t", test.into()),
    ];
    let mut arguments = vec!["--csv".to_owned()];
    for (option, value) in options {
        arguments.extend([option.to_owned(), value]);
    }
    let (said, processor_time) = service.client(cell, with, PROGRAMS[1], &arguments)?;
    let [rate, p50_us, p99_us] = read(&said).with_context(|| format!("redis-benchmark: {said}"))?;
    let amount = requests.max(1) as f64;
    ensure!(rate > 0.0, "redis-benchmark: {said}");
    Ok(Figures { amount, seconds: amount / rate, p50_us, p99_us, processor_time })
}

/// Parses the requests per second, and the median and 99th percentile of latencies in microseconds.
fn read(said: &str) -> Result<[f64; 3]> {
    let rows = said.lines().filter(|line| line.starts_with('"'));
    let mut rows = rows.map(|row| row.split(',').map(|field| field.trim_matches('"')));
    let names = rows.next().context("redis-benchmark printed no column names")?;
    let values: Vec<(&str, &str)> =
        names.zip(rows.next().context("redis-benchmark printed no values")?).collect();
    let value = |name: &str| -> Result<f64> {
        let value = values.iter().find(|(it, _)| *it == name).map(|(_, value)| *value);
        let value = value.with_context(|| format!("no column {name}"))?;
        value.parse().with_context(|| format!("{value:?} is not a valid {name}"))
    };
    Ok([value("rps")?, value("p50_latency_ms")? * 1e3, value("p99_latency_ms")? * 1e3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_figures_are_read_by_their_names() {
        let said = "WARNING: whatever\n\"test\",\"rps\",\"avg_latency_ms\",\"p50_latency_ms\",\
                    \"p99_latency_ms\"\n\"GET\",\"12500.50\",\"0.07\",\"0.055\",\"0.119\"\n";
        let [rate, p50, p99] = read(said).expect("as the tool says it");
        assert_eq!((rate, p50.round(), p99.round()), (12_500.5, 55.0, 119.0));
        assert!(read("\"test\",\"rps\"\n\"GET\",\"1\"\n").is_err());
        assert!(read("Could not connect to Redis\n").is_err());
    }
}
