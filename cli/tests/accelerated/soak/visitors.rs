// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of real servers: each checks every answer.

use crate::harness::content;
use crate::http::Connection;
use crate::resp::{Answer, Client};
use crate::roles;
use crate::soak::board::{Board, Word, now_ms, state};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Sizes of values.
const SIZES: [usize; 6] = [1, 60, 3000, 20_000, 100_000, 400_000];
/// Files of nginx.
const FILES: [usize; 6] = [1, 64, 4096, 65_536, 100_000, 1 << 20];

/// A client with its desk.
struct Visitor {
    board: Board,
    desk: usize,
    server: usize,
    random: fastrand::Rng,
    /// Start of the connection.
    since: u64,
}

/// Result of a connection.
enum Visit {
    /// It ended normally, or was never opened.
    Done,
    /// The server has ended it.
    Cut,
}

/// Role: connects to a server repeatedly. Arguments: desk, seed, and number, kind and address of
/// the server.
pub fn visit(argument: &str) {
    let words: Vec<&str> = argument.split(' ').collect();
    let [desk, seed, server, kind, place] = words[..] else { panic!("{argument}") };
    let number = |word: &str| word.parse::<usize>().expect("a number");
    let random = fastrand::Rng::with_seed(seed.parse().expect("a number"));
    let board = Board::open(Path::new("."));
    let (desk, server, since) = (number(desk), number(server), now_ms());
    let mut visitor = Visitor { board, desk, server, random, since };
    visitor.board.set(desk, Word::Pid, std::process::id().into());
    visitor.board.set(desk, Word::Server, server as u64 + 1);
    visitor.says(state::BEGINS);
    for _ in 0..visitor.random.usize(20..200) {
        visitor.says(state::CONNECTS);
        visitor.since = now_ms();
        let visit = match kind {
            "redis" => visitor.redis(place.parse().expect("a port")),
            "nginx" => visitor.nginx(place.parse().expect("a port")),
            "memcached" => visitor.memcached(place),
            other => panic!("no such server: {other}"),
        };
        match visit {
            Visit::Done => visitor.board.add(desk, Word::Talks, 1),
            Visit::Cut => visitor.is_cut(),
        }
        if visitor.board.has_to_rest() {
            visitor.says(state::RESTS);
            while visitor.board.has_to_rest() {
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Visitor {
    fn says(&self, state: u64) {
        self.board.set(self.desk, Word::State, state);
        self.board.set(self.desk, Word::Since, now_ms());
        self.step();
    }

    fn step(&self) {
        self.board.add(self.desk, Word::Steps, 1);
    }

    fn is_cut(&self) {
        let (server, since, now) = (self.server, self.since, now_ms());
        self.board.tell(&format!("cut: {server} 0 {since} {now} {} 0 0", std::process::id()));
        self.board.add(self.desk, Word::Cuts, 1);
    }

    fn is_wrong(&self, what: &str) -> ! {
        self.board.tell(&format!("wrong: visitor {}: {what}", std::process::id()));
        panic!("{what}");
    }

    /// Connects; the server may be absent for a moment.
    fn is_not_there(&mut self) -> Visit {
        thread::sleep(Duration::from_millis(self.random.u64(1..30)));
        Visit::Done
    }

    /// Repeats an action for a while, or until the server has closed the connection.
    fn rounds(
        &mut self,
        mut round: impl FnMut(&mut Self, usize) -> io::Result<()>,
        is_past: impl FnOnce() -> bool,
    ) -> Visit {
        self.says(state::TALKS);
        // Few connections are long.
        let most = self.random.usize(1..10);
        for number in 0..self.random.usize(1..1 << most) {
            if self.board.has_to_rest() {
                break;
            }
            if round(self, number).is_err() {
                return Visit::Cut;
            }
            self.step();
        }
        self.board.add(self.desk, Word::Past, u64::from(is_past()));
        Visit::Done
    }

    fn redis(&mut self, port: u16) -> Visit {
        let Ok(client) = Client::connect(port) else { return self.is_not_there() };
        let client = std::cell::RefCell::new(client);
        let key = format!("{}-{}", std::process::id(), now_ms());
        self.rounds(
            |visitor, number| {
                let mut client = client.borrow_mut();
                let size = visitor.random.usize(..SIZES.len());
                let value = content(number as u64, SIZES[size]);
                client.send(&[b"SET", key.as_bytes(), &value, b"EX", b"20"])?;
                let answer = client.answer()?;
                if answer != Answer::ok() {
                    visitor.is_wrong(&format!("SET is answered by {answer:?}"));
                }
                client.send(&["GET", &key])?;
                if client.answer()? != Answer::of(&value) {
                    visitor.is_wrong("GET gives something else");
                }
                visitor.board.add(visitor.desk, Word::Bytes, 2 * value.len() as u64);
                Ok(())
            },
            || roles::is_accelerated(client.borrow().stream()),
        )
    }

    fn nginx(&mut self, port: u16) -> Visit {
        let Ok(connection) = Connection::open(port) else { return self.is_not_there() };
        let connection = std::cell::RefCell::new(connection);
        self.rounds(
            |visitor, _| {
                let size = FILES[visitor.random.usize(..FILES.len())];
                let answer = connection.borrow_mut().get(&format!("/{size}"), true)?;
                if answer.status != 200 || answer.body != content(1, size) {
                    visitor.is_wrong(&format!("{size} is another file: {}", answer.status));
                }
                visitor.board.add(visitor.desk, Word::Bytes, size as u64);
                if answer.continues { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            },
            || connection.borrow().is_accelerated(),
        )
    }

    fn memcached(&mut self, path: &str) -> Visit {
        let Ok(stream) = UnixStream::connect(path) else { return self.is_not_there() };
        let descriptor = stream.try_clone().expect("it can be had twice");
        let mut reader = BufReader::new(stream);
        let key = format!("{}-{}", std::process::id(), now_ms());
        self.rounds(
            |visitor, number| {
                let size = visitor.random.usize(..SIZES.len());
                let value = content(number as u64, SIZES[size]);
                let head = format!("set {key} 0 20 {}\r\n", value.len());
                reader.get_mut().write_all(&[head.as_bytes(), &value, b"\r\n"].concat())?;
                let mut line = String::new();
                reader.read_line(&mut line)?;
                if line.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if line != "STORED\r\n" {
                    visitor.is_wrong(&format!("set is answered by {line:?}"));
                }
                reader.get_mut().write_all(format!("get {key}\r\n").as_bytes())?;
                line.clear();
                reader.read_line(&mut line)?;
                if line.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if !line.starts_with("VALUE") {
                    visitor.is_wrong(&format!("get is answered by {line:?}"));
                }
                let mut found = vec![0; value.len() + "\r\nEND\r\n".len()];
                reader.read_exact(&mut found)?;
                if found != [&value, &b"\r\nEND\r\n"[..]].concat() {
                    visitor.is_wrong("get gives something else");
                }
                visitor.board.add(visitor.desk, Word::Bytes, 2 * value.len() as u64);
                Ok(())
            },
            || roles::is_accelerated(&descriptor),
        )
    }
}
