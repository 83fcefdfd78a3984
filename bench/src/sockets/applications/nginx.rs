// SPDX-License-Identifier: Apache-2.0 OR MIT
//! nginx, with wrk as the client of a file over kept connections.

use super::{Cell, Figures, Measuring, Service, Site};
use anyhow::{Context, Result, ensure};
use std::process::Command;

pub const PROGRAMS: [&str; 2] = ["nginx", "wrk"];

/// Name of the file.
const PATH: &str = "value";

/// Returns the command of a server of one file, as an ordinary process.
pub fn server(new: impl Fn(&str) -> Command, site: &Site<'_>, cell: &Cell) -> Result<Command> {
    let command = configured(new, site, cell, "", "")?;
    std::fs::write(site.folder.join("site").join(PATH), vec![b'v'; cell.value_bytes])?;
    Ok(command)
}

/// Returns the command of a server with additional lines of configuration, outside and inside its
/// `server` block.
pub fn configured(
    new: impl Fn(&str) -> Command,
    site: &Site<'_>,
    cell: &Cell,
    outside: &str,
    inside: &str,
) -> Result<Command> {
    let folder = site.folder.display();
    // SAFETY: the call returns a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    // Other users cannot access the bench's folder.
    let user = if is_root { "user root;\n" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {folder}/{name};\n"))
        .concat();
    let configuration = format!(
        "daemon off;\n{user}worker_processes {workers};\npid {folder}/nginx.pid;\n\
         error_log stderr crit;\nevents {{ worker_connections 512; }}\n\
         http {{\n{temporary}{outside}\
         \x20   access_log off;\n    sendfile on;\n    keepalive_requests 1000000000;\n\
         \x20   server {{ listen 127.0.0.1:{port}; root {folder}/site; {inside} }}\n}}\n",
        workers = cell.workers,
        port = site.port,
    );
    let file = site.folder.join("nginx.conf");
    std::fs::write(&file, configuration).context("nginx's configuration")?;
    std::fs::create_dir_all(site.folder.join("site"))?;
    let mut command = new(PROGRAMS[0]);
    command.args(["-e", "stderr", "-p"]).arg(site.folder).arg("-c").arg(file);
    Ok(command)
}

/// Requests the file for the length of a round.
pub fn ask(service: &Service, cell: &Cell, with: &Measuring<'_>) -> Result<Figures> {
    ask_for(PATH, service, cell, with)
}

/// Requests another path.
pub fn ask_for(
    path: &str,
    service: &Service,
    cell: &Cell,
    with: &Measuring<'_>,
) -> Result<Figures> {
    let arguments = [
        "-t1".to_owned(),
        format!("-c{}", cell.connections),
        format!("-d{}s", with.seconds),
        "--latency".into(),
        // On a slow machine an answer may take longer than the default timeout of wrk.
        "--timeout=30s".into(),
        format!("http://127.0.0.1:{}/{path}", service.port),
    ];
    let (said, processor_time) = service.client(cell, with, PROGRAMS[1], &arguments)?;
    let [amount, seconds, p50_us, p99_us] = read(&said).with_context(|| format!("wrk: {said}"))?;
    Ok(Figures { amount, seconds, p50_us, p99_us, processor_time })
}

/// Parses the requests, seconds, and the median and 99th percentile of latencies in microseconds.
fn read(said: &str) -> Result<[f64; 4]> {
    let errors = said.lines().find(|line| {
        let line = line.trim_start();
        line.starts_with("Socket errors") || line.starts_with("Non-2xx")
    });
    ensure!(errors.is_none(), "requests failed: {}", errors.unwrap_or_default().trim());
    let done = said.lines().find_map(|line| line.trim_start().split_once(" requests in "));
    let (requests, rest) = done.context("wrk reports no number of requests")?;
    let micros = |part: &str| {
        let time = said.lines().find_map(|line| line.trim_start().strip_prefix(part));
        seconds(time.with_context(|| format!("no {part}"))?.trim()).map(|time| time * 1e6)
    };
    let time = seconds(rest.split(',').next().unwrap_or_default())?;
    Ok([requests.parse()?, time, micros("50%")?, micros("99%")?])
}

/// Parses a time with its unit.
fn seconds(text: &str) -> Result<f64> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let times = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        unit => anyhow::bail!("{unit:?} is not a unit of time"),
    };
    Ok(digits.parse::<f64>().with_context(|| format!("{text:?} is not a time"))? * times)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Running 1s test @ http://127.0.0.1:1/x\n  Latency Distribution\n     \
                        50%   63.00us\n     75%  100.00us\n     90%    1.00ms\n     99%    \
                        2.50ms\n  15000 requests in 1.10s, 4.33MB read\nRequests/sec:  13636.36\n";

    #[test]
    fn its_figures_are_read_with_their_units() {
        let figures = read(SAID).expect("as the tool says it").map(|it| (it * 10.0).round());
        assert_eq!(figures, [150_000.0, 11.0, 630.0, 25_000.0]);
    }

    #[test]
    fn requests_that_fail_are_an_error() {
        let failed = SAID.to_owned() + "  Socket errors: connect 0, read 3, write 0, timeout 0\n";
        assert!(read(&failed).is_err_and(|error| error.to_string().contains("read 3")));
        let wrong = SAID.to_owned() + "  Non-2xx or 3xx responses: 15000\n";
        assert!(read(&wrong).is_err());
        assert!(read("unable to connect").is_err());
    }
}
