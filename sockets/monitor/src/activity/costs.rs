// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An estimate of what accelerated connections would have cost in the kernel.
//!
//! Work that did not happen cannot be measured. The estimate therefore multiplies each count by the
//! cost of one: for the kernel as measured on this machine, for shared memory by constants.
//!
//! ```text
//! kernel = sends * send + sent bytes * byte + receives * receive + received bytes * byte
//! ring   = the same with the costs of the ring
//!          + own doorbells * send of the kernel + the peer's doorbells * receive of the kernel
//! saved  = kernel - ring        gain = kernel / ring
//! ```
//!
//! All costs are processor time. The cost of sleeping and waking is left out on both sides, since
//! both pay it; so a program with request-response traffic gains more than the estimate says.

use super::{Counts, Family};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

/// Bytes of a short message.
const SHORT: usize = 64;
const LONG: usize = 32 << 10;
/// Number of messages sent before they are received.
const BATCH: usize = 32;
const ROUNDS: usize = 9;

/// Costs of one path of messages, in nanoseconds of processor time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Cost of an operation that sends.
    pub send: f64,
    /// Cost of an operation that receives.
    pub receive: f64,
    /// Additional cost of each byte sent.
    pub sent_byte: f64,
    /// Additional cost of each byte received.
    pub received_byte: f64,
}

/// Costs in shared memory. 8 bytes take 30 to 115 ns for both sides together, and 64 KiB at most
/// 0.05 ns per byte and side: docs/results/sockets.md, one pair on two cores.
const RING: Path = Path { send: 60.0, receive: 60.0, sent_byte: 0.05, received_byte: 0.05 };
/// Costs of the kernel where they cannot be measured: less than on the machines of
/// docs/results/sockets.md.
const TCP: Path = Path { send: 2500.0, receive: 700.0, sent_byte: 0.1, received_byte: 0.1 };
const UNIX: Path = Path { send: 800.0, receive: 500.0, sent_byte: 0.1, received_byte: 0.1 };

/// Costs of all paths that bytes can take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// Through the kernel, with TCP on one machine.
    pub tcp: Path,
    /// Through the kernel, with Unix sockets.
    pub unix: Path,
    /// Through shared memory.
    pub ring: Path,
    /// Whether the kernel's costs were measured on this machine.
    pub is_measured: bool,
}

/// Processor time: an estimate for the kernel, and one for shared memory.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Estimate {
    kernel_nanoseconds: f64,
    ring_nanoseconds: f64,
}

impl Costs {
    /// Returns the costs assumed where nothing was measured.
    pub const fn assumed() -> Self {
        Self { tcp: TCP, unix: UNIX, ring: RING, is_measured: false }
    }

    /// Measures the kernel's costs by messages within this thread; takes some milliseconds. Only
    /// the thread's own processor time counts, so load on the machine hardly changes the result.
    pub fn measured() -> Self {
        let tcp = tcp_pair().and_then(|(one, other)| measure(one, other));
        let unix = UnixStream::pair().and_then(|(one, other)| measure(one, other));
        match (tcp, unix) {
            (Ok(tcp), Ok(unix)) => Self { tcp, unix, ring: RING, is_measured: true },
            _ => Self::assumed(),
        }
    }

    /// Estimates the cost of these counts in shared memory and in the kernel, for connections of a
    /// family.
    pub fn estimate(&self, counts: &Counts, family: Family) -> Estimate {
        let kernel = match family {
            Family::Tcp => &self.tcp,
            Family::Unix => &self.unix,
        };
        let bells =
            counts.doorbells as f64 * kernel.send + counts.peer_doorbells as f64 * kernel.receive;
        Estimate {
            kernel_nanoseconds: kernel.of(counts),
            ring_nanoseconds: self.ring.of(counts) + bells,
        }
    }

    /// Returns the costs in nanoseconds as a JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "is_measured": self.is_measured,
            "kernel_tcp": self.tcp.to_json(),
            "kernel_unix": self.unix.to_json(),
            "ring": self.ring.to_json(),
        })
    }
}

impl Path {
    fn of(&self, counts: &Counts) -> f64 {
        counts.sends as f64 * self.send
            + counts.receives as f64 * self.receive
            + counts.sent_bytes as f64 * self.sent_byte
            + counts.received_bytes as f64 * self.received_byte
    }

    fn to_json(self) -> Value {
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        json!({
            "send_nanoseconds": rounded(self.send),
            "receive_nanoseconds": rounded(self.receive),
            "sent_byte_nanoseconds": rounded(self.sent_byte),
            "received_byte_nanoseconds": rounded(self.received_byte),
        })
    }
}

impl Estimate {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            kernel_nanoseconds: self.kernel_nanoseconds + other.kernel_nanoseconds,
            ring_nanoseconds: self.ring_nanoseconds + other.ring_nanoseconds,
        }
    }

    /// Processor time saved, in seconds; negative if doorbells cost more than the kernel would
    /// have.
    pub fn saved_seconds(self) -> f64 {
        (self.kernel_nanoseconds - self.ring_nanoseconds) / 1e9
    }

    /// Ratio of the kernel's cost to the ring's; `None` if nothing was transferred.
    pub fn gain(self) -> Option<f64> {
        (self.ring_nanoseconds > 0.0).then(|| self.kernel_nanoseconds / self.ring_nanoseconds)
    }
}

fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let one = TcpStream::connect(address)?;
    loop {
        let (other, from) = listener.accept()?;
        // Another process may have connected to the port first.
        if from == one.local_addr()? {
            one.set_nodelay(true)?;
            return Ok((one, other));
        }
    }
}

/// Measures a path whose two ends are in this thread.
fn measure(mut one: impl Write, mut other: impl Read) -> io::Result<Path> {
    let (mut short, mut long) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        short.push(round(&mut one, &mut other, SHORT, BATCH)?);
        long.push(round(&mut one, &mut other, LONG, 1)?);
    }
    let ([send, receive], [long_send, long_receive]) = (least(&short), least(&long));
    let byte = |long: f64, short: f64| ((long - short) / (LONG - SHORT) as f64).max(0.0);
    let (sent_byte, received_byte) = (byte(long_send, send), byte(long_receive, receive));
    Ok(Path { send, receive, sent_byte, received_byte })
}

/// Returns the nanoseconds to send a message, and to receive it.
fn round(
    one: &mut impl Write,
    other: &mut impl Read,
    bytes: usize,
    n: usize,
) -> io::Result<[f64; 2]> {
    let mut content = vec![0; bytes];
    let begun = thread_nanoseconds();
    for _ in 0..n {
        one.write_all(&content)?;
    }
    let sent = thread_nanoseconds();
    for _ in 0..n {
        other.read_exact(&mut content)?;
    }
    let received = thread_nanoseconds();
    Ok([sent - begun, received - sent].map(|time| time / n as f64))
}

/// Returns the minimum of each: other rounds take longer only because of load on the machine.
fn least(rounds: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|at| rounds.iter().map(|it| it[at]).fold(f64::INFINITY, f64::min))
}

/// Processor time of this thread in nanoseconds.
fn thread_nanoseconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` has room for the answer, and every thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        tcp: Path { send: 1000.0, receive: 500.0, sent_byte: 0.2, received_byte: 0.1 },
        unix: Path { send: 400.0, receive: 200.0, sent_byte: 0.2, received_byte: 0.1 },
        ring: Path { send: 50.0, receive: 50.0, sent_byte: 0.05, received_byte: 0.05 },
        is_measured: true,
    };

    #[test]
    fn the_estimate_is_what_the_formula_says() {
        let counts = Counts {
            sends: 100,
            receives: 10,
            sent_bytes: 10_000,
            received_bytes: 1000,
            doorbells: 2,
            peer_doorbells: 4,
            sleeps: 4,
        };
        // 100,000 + 5,000 + 2,000 + 100, beside 5,500 + 550 + 2,000 + 2,000.
        let tcp = COSTS.estimate(&counts, Family::Tcp);
        assert!((tcp.saved_seconds() - (107_100.0 - 10_050.0) / 1e9).abs() < 1e-12, "{tcp:?}");
        assert!((tcp.gain().unwrap() - 107_100.0 / 10_050.0).abs() < 1e-9, "{tcp:?}");
        let unix = COSTS.estimate(&counts, Family::Unix);
        assert!((unix.saved_seconds() - (44_100.0 - 7_650.0) / 1e9).abs() < 1e-12, "{unix:?}");
        let both = tcp.plus(unix).saved_seconds();
        assert!((both - tcp.saved_seconds() - unix.saved_seconds()).abs() < 1e-12);
        assert_eq!(COSTS.estimate(&Counts::default(), Family::Tcp).gain(), None);
    }

    #[test]
    fn doorbells_for_each_message_cost_more_than_the_kernel() {
        let counts = Counts {
            sends: 10,
            receives: 10,
            doorbells: 10,
            peer_doorbells: 10,
            ..Counts::default()
        };
        let estimate = COSTS.estimate(&counts, Family::Tcp);
        assert!(estimate.saved_seconds() < 0.0 && estimate.gain().unwrap() < 1.0, "{estimate:?}");
    }

    #[test]
    fn the_kernel_can_be_measured() {
        let costs = Costs::measured();
        assert!(costs.is_measured);
        for path in [costs.tcp, costs.unix] {
            assert!(path.send > 0.0 && path.receive > 0.0 && path.sent_byte >= 0.0, "{path:?}");
        }
    }
}
