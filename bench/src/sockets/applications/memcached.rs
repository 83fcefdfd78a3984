// SPDX-License-Identifier: Apache-2.0 OR MIT
//! memcached, with a client of the bench that requests one value and compares every byte.

use super::super::carriers::argue;
use super::super::peer::Role;
use super::{Cell, Figures, Measuring, Service, Site};
use crate::between::desk::Desk;
use crate::between::shared::Shared;
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub const PROGRAMS: [&str; 1] = ["memcached"];

const STORED: &[u8] = b"STORED\r\n";
/// Time limit for storing a value.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the command of a server with this number of threads and memory, on TCP only.
pub fn server(
    new: impl Fn(&str) -> Command,
    site: &Site<'_>,
    threads: usize,
    memory_mib: usize,
) -> Command {
    let mut command = new(PROGRAMS[0]);
    command.args(["-l", "127.0.0.1", "-U", "0", "-m", &memory_mib.to_string()]);
    command.args(["-p", &site.port.to_string(), "-t", &threads.to_string()]);
    // SAFETY: the call returns a number.
    if unsafe { libc::geteuid() } == 0 {
        command.args(["-u", "root"]);
    }
    command
}

fn value(cell: &Cell) -> String {
    ('a'..='z').cycle().take(cell.value_bytes).collect()
}

/// Stores the value that will be requested.
pub fn fill(port: u16, cell: &Cell) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "set key 0 0 {}\r\n{}\r\n", cell.value_bytes, value(cell))?;
    let mut answer = vec![0; STORED.len()];
    stream.read_exact(&mut answer).context("memcached does not answer")?;
    ensure!(answer == STORED, "memcached does not store the value");
    Ok(())
}

/// Requests the value for the length of a round.
pub fn ask(service: &Service, cell: &Cell, with: &Measuring<'_>) -> Result<Figures> {
    let (desk, descriptor) = Shared::<Desk>::inherited()?;
    desk.ports[0].store(service.port.into(), Ordering::Release);
    let mut command = with.launcher.peer(service.mode);
    command.arg(Role::Load.word());
    argue(&mut command, "desk", descriptor.as_raw_fd());
    argue(&mut command, "connections", cell.connections);
    argue(&mut command, "time-ms", u64::from(with.seconds) * 1_000);
    argue(&mut command, "request", "get key\r\n");
    let answer = format!("VALUE key 0 {}\r\n{}\r\nEND\r\n", cell.value_bytes, value(cell));
    argue(&mut command, "answer", answer);
    let (_, processor_time) = service.run(cell, with, "the client of memcached", command)?;
    let trips = desk.trips();
    Ok(Figures {
        amount: trips.len() as f64,
        seconds: desk.elapsed().as_secs_f64(),
        p50_us: trips.quantile(0.5) / 1e3,
        p99_us: trips.quantile(0.99) / 1e3,
        processor_time,
    })
}
