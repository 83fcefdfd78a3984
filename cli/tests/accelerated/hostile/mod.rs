// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers that write any values into the memory that they share with a real server: only their own
//! connections may fail.

mod attacker;
mod extremes;
mod floods;
mod holding;
pub mod reuse;
mod steps;

use crate::harness::{Mode, Node, PATIENCE, Program, find, free_port, is_long, wait_until};
use attacker::Attacker;
use fastrand::Rng;
use freeport_sockets_proto::slab::{again, flag, word};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Number of writes of a hostile peer into its slot.
const DEEDS: usize = 2000;

/// Address of a server.
enum Place {
    Port(u16),
    Path(PathBuf),
}

#[test]
fn what_peers_write_spoils_nothing_but_their_own_connections() {
    let mut server = Server::new();
    for place in server.places() {
        server.withstands(&place, |node| {
            (0..if is_long() { 2000 } else { 100 }).for_each(|seed| attack(node, &place, seed));
        });
    }
}

#[test]
fn who_is_gone_with_a_doorbell_that_was_not_counted_is_noticed() {
    // A process that is killed just after ringing leaves this state. A sleeper in `recv` peeks at
    // the doorbell, must not consume it, and has to see the end of file after it.
    is_noticed_by("answers pings", |_, attacker| {
        attacker.ring();
        assert_eq!(attacker.own(word::RANG).load(Ordering::SeqCst), 0);
    });
}

#[test]
fn who_is_gone_is_noticed_whatever_it_has_said() {
    let left = flag::LEAVES | flag::ENDED;
    let said = [flag::LEAVES, left, flag::STOPS | flag::DECLINED | flag::GONE];
    for said in said {
        is_noticed_by("answers pings", |_, attacker| {
            attacker.own(word::FLAGS).fetch_or(said, Ordering::SeqCst);
            attacker.ring();
        });
    }
    // It seems to be about to send its request, and never sends it.
    is_noticed_by("answers pings", |_, attacker| {
        attacker.other(word::AGAIN).store(again::PREPARED, Ordering::SeqCst);
        attacker.own(word::FLAGS).fetch_or(flag::STOPS, Ordering::SeqCst);
        attacker.ring();
        wait_until("it follows", || {
            attacker.other(word::FLAGS).load(Ordering::SeqCst) & flag::LEAVES != 0
        });
        attacker.own(word::FLAGS).fetch_and(!flag::STOPS, Ordering::SeqCst);
    });
}

#[test]
fn connections_that_have_to_be_broken_off_end_as_by_a_reset() {
    // It requests more bytes again than were sent, and continues or has reset the connection.
    for rings in [true, false] {
        is_noticed_by("answers pings", |_, attacker| {
            attacker.wants_again(&[0; 5], u64::MAX);
            if rings {
                attacker.ring();
                attacker.read_to_end();
            } else {
                attacker.resets_at_close();
            }
        });
    }
}

#[test]
fn who_is_killed_while_it_writes_is_not_waited_for() {
    for said in [0, flag::DECLINED | flag::GONE] {
        is_noticed_by("brings back", |node, attacker| {
            attacker.own(word::WRITING).store(1, Ordering::SeqCst);
            node.write("go", "");
            wait_until("it stops", || {
                attacker.other(word::FLAGS).load(Ordering::SeqCst) & flag::STOPS != 0
            });
            attacker.own(word::FLAGS).fetch_or(said, Ordering::SeqCst);
        });
    }
}

#[test]
fn a_doorbell_that_was_not_counted_takes_no_time_out_away() {
    // The server receives with a timeout, and checks for the file between two calls.
    is_noticed_by("brings back", |node, attacker| {
        attacker.ring();
        let sleeps = || attacker.other(word::SLEEPS).load(Ordering::SeqCst);
        let before = sleeps();
        wait_until("it has seen the doorbell", || sleeps() > before + 3);
        node.write("go", "");
        wait_until("it stops", || {
            attacker.other(word::FLAGS).load(Ordering::SeqCst) & flag::STOPS != 0
        });
    });
}

/// The only client of a server acts and exits: the server notices that and exits too.
fn is_noticed_by(role: &str, deed: impl FnOnce(&Node, &mut Attacker)) {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let server = node.role(Mode::Accelerated, role, &port.to_string());
    let mut stream = None;
    wait_until("it listens", || {
        stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        stream.is_some()
    });
    let stream = UnixStream::from(OwnedFd::from(stream.expect("it is connected")));
    let mut attacker = Attacker::new(&node, stream);
    attacker.leave_kernel();
    deed(&node, &mut attacker);
    drop(attacker);
    server.finish();
}

/// Role: answers one client until it receives the command to make the connection a standard stream,
/// for which the connection returns to the kernel.
pub fn bring_back(port: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().expect("a port")));
    let (mut stream, _) = listener.expect("the port is free").accept().expect("somebody comes");
    stream.set_read_timeout(Some(Duration::from_millis(10))).expect("it can be set");
    while !Path::new("go").exists() {
        if stream.read_exact(&mut [0; 6]).is_ok() {
            stream.write_all(b"+PONG\r\n").expect("it can be sent");
        }
    }
    // SAFETY: both are descriptors of this process.
    assert_eq!(unsafe { libc::dup2(stream.as_raw_fd(), 0) }, 0);
}

/// Role: answers one client with blocking calls, until the end of file.
pub fn answer_pings(port: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().expect("a port")));
    let (mut stream, _) = listener.expect("the port is free").accept().expect("somebody comes");
    let mut ping = [0; 6];
    loop {
        match stream.read_exact(&mut ping) {
            Ok(()) => stream.write_all(b"+PONG\r\n").expect("it can be sent"),
            Err(error) => {
                let ends = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
                assert!(ends.contains(&error.kind()), "{error:?}");
                // After an end of either kind, no bytes follow.
                assert_eq!(stream.read(&mut ping).expect("the end"), 0);
                return;
            }
        }
    }
}

/// The attacked server.
struct Server {
    node: Node,
    program: Program,
    port: u16,
    // It ends after the server.
    _monitor: Program,
}

impl Server {
    fn new() -> Self {
        Self::begin(|command| command)
    }

    /// Starts it with additional environment variables.
    fn begin(environment: impl Fn(Command) -> Command) -> Self {
        let (node, monitor) = Node::new();
        let port = free_port();
        let redis = find("redis-server").expect("redis-server is installed: scripts/install.sh");
        let mut command = environment(node.command(Mode::Accelerated, &redis));
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--unixsocket", "redis.sock", "--dir"]).arg(node.path());
        let program = node.serve("redis-server", command, port);
        Self { node, program, port, _monitor: monitor }
    }

    /// Its addresses: a TCP port and the path of a Unix socket.
    fn places(&self) -> [Place; 2] {
        [Place::Port(self.port), Place::Path(self.node.path().join("redis.sock"))]
    }

    /// Runs an action on the server, while another client sends requests and is answered.
    fn withstands(&mut self, place: &Place, deeds: impl FnOnce(&Node)) {
        let is_over = AtomicBool::new(false);
        let answers = thread::scope(|scope| {
            let honest = scope.spawn(|| ask_until(place, &is_over));
            let over = Over(&is_over);
            deeds(&self.node);
            drop(over);
            honest.join().unwrap()
        });
        assert!(answers > 0);
        let printed = self.program.printed();
        assert!(self.program.ended().is_none(), "the server is gone: {printed}");
        // It serves later clients.
        let mut last = connect(place);
        assert!((0..100).all(|_| ping(&mut last)));
    }
}

/// Ends the concurrent client, even if the action panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends requests until told to stop; returns the number of answers.
fn ask_until(place: &Place, is_over: &AtomicBool) -> u64 {
    let (mut stream, mut answers) = (connect(place), 0);
    loop {
        assert!(ping(&mut stream), "not answered, after {answers}");
        answers += 1;
        if is_over.load(Ordering::Relaxed) {
            return answers;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A connection to a server, of either family.
fn connect(place: &Place) -> UnixStream {
    let stream = match place {
        Place::Port(port) => {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).unwrap();
            UnixStream::from(OwnedFd::from(stream))
        }
        Place::Path(path) => UnixStream::connect(path).unwrap(),
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Waits until a server has processed everything that it was sent before, over any connection: it
/// serves all of them in turn, so earlier data is processed before the second answer.
fn await_turn(honest: &mut UnixStream) {
    assert!((0..2).all(|_| ping(honest)), "nobody is served");
}

fn ping(stream: &mut UnixStream) -> bool {
    let mut answer = [0; 7];
    stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && &answer == b"+PONG\r\n"
}

/// Obtains a slot by the protocol, and then runs an action on it.
fn attack(node: &Node, place: &Place, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut attacker = Attacker::new(node, connect(place));
    attacker.leave_kernel();
    for _ in 0..DEEDS {
        let slot = &attacker.slot;
        match rng.u32(..100) {
            0 => _ = attacker.own(word::FLAGS).fetch_or(1 << rng.u32(..10), Ordering::SeqCst),
            1 => _ = attacker.stream.write(b"PING\r\n"),
            2 => _ = attacker.stream.write(&[0; 3]),
            3 => _ = attacker.stream.read(&mut [0; 4096]),
            4 => thread::sleep(Duration::from_micros(rng.u64(..300))),
            _ => {
                let (place, value) = (slot.somewhere(&mut rng), slot.value(&mut rng));
                place.store(value, Ordering::SeqCst);
            }
        }
    }
    if rng.bool() {
        // It stays silent for a while.
        thread::sleep(Duration::from_millis(rng.u64(..20)));
    }
}
