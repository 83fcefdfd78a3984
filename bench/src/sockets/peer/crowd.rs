// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that holds many connections to one server and sends a request over each in turn. Every
//! byte of every answer is compared.

use crate::between::desk::{Desk, now};
use anyhow::{Context, Result, ensure};
use std::io::{Error, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a message: the number of the connection, and what distinguishes it from the previous
/// one.
pub const MESSAGE_BYTES: usize = 64;
/// Minimum number of uses of each connection before the measurement.
const WARM_UPS: u64 = 16;
/// Time limit for the connections to leave the kernel.
const LEAVING: Duration = Duration::from_secs(120);
/// Interval between two polls of whether the bench has measured memory.
const LOOKING: Duration = Duration::from_millis(1);
/// The bench and this process.
const PARTIES: u64 = 2;

/// Type of the library's function that reports whether a connection is accelerated.
type IsAccelerated = unsafe extern "C" fn(libc::c_int) -> libc::c_int;

/// Connections to one server.
pub struct Crowd {
    connections: Vec<TcpStream>,
    /// Number of round trips so far.
    sent: u64,
}

impl Crowd {
    /// Opens this many connections.
    ///
    /// # Errors
    /// A connection cannot be opened.
    pub fn new(port: u16, connections: usize) -> Result<Self> {
        let connect = |number| {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
            let stream = stream.with_context(|| format!("connection {number}"))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let connections = (0..connections).map(connect).collect::<Result<_>>()?;
        Ok(Self { connections, sent: 0 })
    }

    /// Uses all connections until they are accelerated, waits until the bench has measured memory,
    /// and then sends requests in turn for `time`.
    ///
    /// # Errors
    /// No answer, or an unexpected one.
    pub fn run(&mut self, desk: &Desk, time: Duration) -> Result<()> {
        self.warm_up(desk)?;
        desk.arrive();
        while desk.arrived() < PARTIES {
            thread::sleep(LOOKING);
        }
        desk.begin();
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            for number in 0..self.connections.len() {
                let asked = now();
                self.ask(number)?;
                desk.count(now() - asked);
                if Instant::now() >= deadline {
                    break;
                }
            }
        }
        desk.end();
        Ok(())
    }

    /// Stores the number of accelerated connections on the desk.
    fn warm_up(&mut self, desk: &Desk) -> Result<()> {
        let library = library();
        let deadline = Instant::now() + LEAVING;
        for pass in 1.. {
            (0..self.connections.len()).try_for_each(|number| self.ask(number))?;
            let accelerated = library.map_or(0, |is_accelerated| self.accelerated(is_accelerated));
            desk.accelerated.store(accelerated as u64, Ordering::Release);
            let is_done = library.is_none() || accelerated == self.connections.len();
            if pass >= WARM_UPS && (is_done || Instant::now() >= deadline) {
                break;
            }
        }
        Ok(())
    }

    fn accelerated(&self, is_accelerated: IsAccelerated) -> usize {
        // SAFETY: the function takes any number.
        let is_so = |stream: &&TcpStream| unsafe { is_accelerated(stream.as_raw_fd()) } != 0;
        self.connections.iter().filter(is_so).count()
    }

    fn ask(&mut self, number: usize) -> Result<()> {
        self.sent += 1;
        let stream = self.connections.get_mut(number).context("no such connection")?;
        let (mut message, mut answer) = ([number as u8; MESSAGE_BYTES], [0; MESSAGE_BYTES]);
        message[..8].copy_from_slice(&(number as u64).to_ne_bytes());
        message[8..16].copy_from_slice(&self.sent.to_ne_bytes());
        stream.write_all(&message).context("a request cannot be sent")?;
        stream.read_exact(&mut answer).context("no answer")?;
        ensure!(answer == message, "an unexpected answer on connection {number}");
        Ok(())
    }
}

fn library() -> Option<IsAccelerated> {
    // SAFETY: the name is terminated by zero.
    let found =
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"freeport_is_accelerated".as_ptr().cast()) };
    // SAFETY: the library's function has this type.
    (!found.is_null()).then(|| unsafe { std::mem::transmute(found) })
}

/// Raises this process's limit of descriptors to the maximum.
///
/// # Errors
/// The system refuses.
pub fn raise_limit() -> Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to the given place.
    let is_read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the call reads the limits.
    let is_set = is_read && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0;
    ensure!(is_set, "the limit of descriptors cannot be raised: {}", Error::last_os_error());
    Ok(())
}
