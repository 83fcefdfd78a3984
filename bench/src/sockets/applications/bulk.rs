// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bulk transfer by iperf3.

use super::{Cell, Figures, Measuring, Service, Site};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

pub const PROGRAMS: [&str; 1] = ["iperf3"];

/// Returns the command of the receiver.
pub fn server(new: impl Fn(&str) -> Command, site: &Site<'_>) -> Command {
    let mut command = new(PROGRAMS[0]);
    command.args(["-s", "-B", "127.0.0.1", "-p", &site.port.to_string()]);
    command
}

/// Sends blocks of the cell's size for the length of a round.
pub fn send(service: &Service, cell: &Cell, with: &Measuring<'_>) -> Result<Figures> {
    let options = [
        ("-c", "127.0.0.1".to_owned()),
        ("-p", service.port.to_string()),
        ("-P", cell.connections.to_string()),
        ("-t", with.seconds.to_string()),
        ("-l", cell.value_bytes.to_string()),
    ];
    let mut arguments = vec!["-J".to_owned()];
    for (option, value) in options {
        arguments.extend([option.to_owned(), value]);
    }
    let (said, processor_time) = service.client(cell, with, PROGRAMS[0], &arguments)?;
    let [amount, seconds] = read(&said).context("iperf3")?;
    let (p50_us, p99_us) = (f64::NAN, f64::NAN);
    Ok(Figures { amount, seconds, p50_us, p99_us, processor_time })
}

/// Parses the received bytes and seconds.
fn read(said: &str) -> Result<[f64; 2]> {
    let reported: Value = serde_json::from_str(said).context("iperf3 printed no JSON")?;
    let received = &reported["end"]["sum_received"];
    let number = |name: &str| received[name].as_f64();
    let error = || format!("nothing arrived: {}", reported["error"]);
    Ok([number("bytes").with_context(error)?, number("seconds").with_context(error)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_counts() {
        let said = r#"{"end": {"sum_sent": {"bytes": 9, "seconds": 1.0},
                       "sum_received": {"bytes": 8, "seconds": 2.0}}}"#;
        assert_eq!(read(said).expect("as the tool says it"), [8.0, 2.0]);
        let failed = read(r#"{"end": {}, "error": "no luck"}"#).expect_err("nothing arrived");
        assert!(failed.to_string().contains("no luck"), "{failed}");
    }
}
