// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench peer`: programs that `freeport bench sockets` measures where well-known programs
//! are not suitable. They use ordinary sockets and know nothing of Freeport; the bench accelerates
//! them or not by how it starts them. Only the client with many connections asks the library, if it
//! is loaded, how many of them are accelerated.

mod connecting;
mod crowd;
mod death;
mod echo;
pub(crate) mod epoll;
mod load;

use crate::between::channel::{Blocking, Channel, tcp_end};
use crate::between::desk::Desk;
use crate::between::measure::{LONGEST, Plan, answer, ask, receive, send};
use crate::between::shared::Shared;
use anyhow::{Context, Result, ensure};
pub use crowd::MESSAGE_BYTES;
pub use death::Scene;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Plays a role in a measurement of sockets: for `freeport bench sockets` only
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    #[arg(value_enum)]
    role: Role,
    /// Descriptor of the memory in which all processes meet
    #[arg(long)]
    desk: RawFd,
    /// Index of the pair that this process belongs to
    #[arg(long, default_value_t = 0)]
    pair: usize,
    /// Number of processes that meet
    #[arg(long, default_value_t = 2)]
    parties: u64,
    #[arg(long, default_value_t = 8)]
    size: usize,
    #[arg(long, default_value_t = 0)]
    messages: u64,
    #[arg(long)]
    full_check: bool,
    #[arg(long, default_value_t = 1 << 18)]
    buffer_bytes: i32,
    #[arg(long, default_value_t = 1)]
    connections: usize,
    #[arg(long, default_value_t = 0)]
    time_ms: u64,
    /// Time for which connections stay open afterwards
    #[arg(long, default_value_t = 0)]
    silence_ms: u64,
    #[arg(long, value_enum, default_value = "recv")]
    scene: Scene,
    #[arg(long, default_value = "")]
    request: String,
    #[arg(long, default_value = "")]
    answer: String,
}

/// The role of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Role {
    /// Connect, send messages and wait for each to be echoed
    Ask,
    /// Listen, and echo messages
    Answer,
    /// Connect, and send messages
    Send,
    /// Listen, and receive messages
    Receive,
    /// Connect, to another listener every few times
    Connect,
    /// Accept and close, and listen elsewhere every few times
    Accept,
    /// Connect to the same listener, after some connections that are not counted
    Reconnect,
    /// Accept and close again and again
    Reaccept,
    /// Listen, and echo over any connection
    Echo,
    /// Connect, and send a request over each connection when the previous one is answered
    Load,
    /// Hold many connections, and send a message over each in turn
    Crowd,
    /// Connect, and notice that the peer is killed
    Survive,
    /// Listen, and be killed
    Die,
}

impl Role {
    /// Returns its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Answer => "answer",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Connect => "connect",
            Self::Accept => "accept",
            Self::Reconnect => "reconnect",
            Self::Reaccept => "reaccept",
            Self::Echo => "echo",
            Self::Load => "load",
            Self::Crowd => "crowd",
            Self::Survive => "survive",
            Self::Die => "die",
        }
    }
}

/// Time for which messages are exchanged before the measurement.
const WARM_UP: Duration = Duration::from_millis(30);
/// First byte of a message that continues the warm-up.
const GO_ON: u8 = 1;
const LAST: u8 = 0;

/// Plays the role; its error is left on the desk.
///
/// # Errors
/// There is no desk, or the role fails.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.desk > 2, "--desk must not be a standard stream");
    // SAFETY: the descriptor was passed to this program and has no other owner.
    let descriptor = unsafe { OwnedFd::from_raw_fd(arguments.desk) };
    let desk = Shared::<Desk>::of(&descriptor)
        .context("the shared memory of the measurement is missing")?;
    arguments.play(&desk).inspect_err(|error| desk.reason.say(&format!("{error:#}")))
}

impl Arguments {
    fn play(&self, desk: &Desk) -> Result<()> {
        let (size, messages) = (self.size, self.messages);
        let plan = Plan { size, messages, is_full_check: self.full_check, cores: vec![] };
        match self.role {
            Role::Ask => ask(self.connected(desk)?, &plan, desk),
            Role::Answer => answer(self.accepted(desk)?, &plan, desk),
            Role::Send => send(self.connected(desk)?, &plan, desk, self.parties),
            Role::Receive => receive(self.accepted(desk)?, &plan, desk, self.parties),
            Role::Connect => connecting::connect(self.port(desk)?, self.messages, desk),
            Role::Accept => connecting::accept(self.listen(desk)?, self.messages, desk),
            Role::Reconnect => connecting::reconnect(self.port(desk)?, self.messages, desk),
            Role::Reaccept => connecting::reaccept(&self.listen(desk)?, self.messages, desk),
            Role::Echo => {
                crowd::raise_limit()?;
                echo::serve(&self.listen(desk)?)
            }
            Role::Crowd => {
                crowd::raise_limit()?;
                let mut crowd = crowd::Crowd::new(self.port(desk)?, self.connections)?;
                crowd.run(desk, Duration::from_millis(self.time_ms))?;
                // The bench kills it: closing its connections would disturb other measurements.
                loop {
                    std::thread::park();
                }
            }
            Role::Survive if self.scene == Scene::Halfway => {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port(desk)?))?;
                death::survive(stream, self.scene, desk)
            }
            Role::Die if self.scene == Scene::Halfway => {
                death::die(self.listen(desk)?.accept()?.0, self.scene, desk)
            }
            Role::Survive => death::survive(self.connected(desk)?.into_inner(), self.scene, desk),
            Role::Die => death::die(self.accepted(desk)?.into_inner(), self.scene, desk),
            Role::Load => {
                let load = load::Load {
                    port: self.port(desk)?,
                    connections: self.connections,
                    request: self.request.as_bytes(),
                    answer: self.answer.as_bytes(),
                    time: Duration::from_millis(self.time_ms),
                };
                let connections = load.run(desk)?;
                std::thread::sleep(Duration::from_millis(self.silence_ms));
                drop(connections);
                Ok(())
            }
        }
    }

    /// Listens, and announces the port to the pair.
    fn listen(&self, desk: &Desk) -> Result<TcpListener> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no TCP on 127.0.0.1")?;
        let port = desk.ports.get(self.pair).context("the number of the pair is too high")?;
        port.store(listener.local_addr()?.port().into(), Ordering::Release);
        Ok(listener)
    }

    /// Waits until the other process of the pair listens; returns its port.
    fn port(&self, desk: &Desk) -> Result<u16> {
        let port = desk.ports.get(self.pair).context("the number of the pair is too high")?;
        let deadline = Instant::now() + LONGEST;
        loop {
            match port.load(Ordering::Acquire) {
                0 => std::thread::sleep(Duration::from_micros(200)),
                port => return u16::try_from(port).context("the port is out of range"),
            }
            ensure!(Instant::now() < deadline, "the other process of the pair does not listen");
        }
    }

    fn connected(&self, desk: &Desk) -> Result<Blocking<TcpStream>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port(desk)?))?;
        let mut channel = tcp_end(stream, self.buffer_bytes)?;
        let mut message = vec![GO_ON; self.size];
        let deadline = Instant::now() + WARM_UP;
        while message.first() == Some(&GO_ON) {
            if Instant::now() >= deadline {
                message.fill(LAST);
            }
            channel.send(&message)?;
            channel.receive_all(&mut message)?;
        }
        Ok(channel)
    }

    fn accepted(&self, desk: &Desk) -> Result<Blocking<TcpStream>> {
        let (stream, _) = self.listen(desk)?.accept()?;
        let mut channel = tcp_end(stream, self.buffer_bytes)?;
        let mut message = vec![GO_ON; self.size];
        while message.first() == Some(&GO_ON) {
            channel.receive_all(&mut message)?;
            channel.send(&message)?;
        }
        Ok(channel)
    }
}
