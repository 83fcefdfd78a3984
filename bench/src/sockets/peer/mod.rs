// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench peer`: the programs that `freeport bench sockets` measures, where those of
//! others do not do. They know nothing of Freeport: ordinary sockets, and the bench decides by how
//! it starts them whether they are accelerated. Who holds many connections only asks the library,
//! if there is one, how many of them it has accelerated.

mod connecting;
mod crowd;
mod death;
mod echo;
mod epoll;
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

/// Plays a part in a measurement of sockets: for `freeport bench sockets` only
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    #[arg(value_enum)]
    role: Role,
    /// The descriptor of the memory where all meet
    #[arg(long)]
    desk: RawFd,
    /// Which pair it belongs to
    #[arg(long, default_value_t = 0)]
    pair: usize,
    /// How many meet
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
    /// How long connections stay open after that
    #[arg(long, default_value_t = 0)]
    silence_ms: u64,
    #[arg(long, value_enum, default_value = "recv")]
    scene: Scene,
    #[arg(long, default_value = "")]
    request: String,
    #[arg(long, default_value = "")]
    answer: String,
}

/// What it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Role {
    /// Connects, sends messages and waits for each to come back
    Ask,
    /// Listens, and sends back what comes
    Answer,
    /// Connects, and sends messages
    Send,
    /// Listens, and takes messages
    Receive,
    /// Connects, to another listener every few times
    Connect,
    /// Accepts and closes, and listens elsewhere every few times
    Accept,
    /// Connects to the same listener, after it has done that for a while
    Reconnect,
    /// Accepts and closes again and again
    Reaccept,
    /// Listens, and sends back what comes over any connection
    Echo,
    /// Connects, and sends a request over each connection when the last is answered
    Load,
    /// Holds many connections, and sends a message over each in turn
    Crowd,
    /// Connects, and notices that the other one is killed
    Survive,
    /// Listens, and is killed
    Die,
}

impl Role {
    /// What the command line calls it.
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

/// For how long messages go to and fro before anything counts.
const WARM_UP: Duration = Duration::from_millis(30);
/// Bytes of the first in a message of the warm-up.
const GO_ON: u8 = 1;
const LAST: u8 = 0;

/// Plays the part; why it failed is left on the desk.
///
/// # Errors
/// There is no desk, or the part cannot be played.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.desk > 2, "the desk is not a standard stream");
    // SAFETY: given to this program, and nobody else in it uses it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(arguments.desk) };
    let desk = Shared::<Desk>::of(&descriptor).context("no desk")?;
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
                // The bench ends it: nobody shall be busy closing while others are measured.
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

    /// Where the others of the pair find this.
    fn listen(&self, desk: &Desk) -> Result<TcpListener> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no TCP on 127.0.0.1")?;
        let port = desk.ports.get(self.pair).context("there are not as many pairs")?;
        port.store(listener.local_addr()?.port().into(), Ordering::Release);
        Ok(listener)
    }

    /// Waits until the other of the pair listens.
    fn port(&self, desk: &Desk) -> Result<u16> {
        let port = desk.ports.get(self.pair).context("there are not as many pairs")?;
        let deadline = Instant::now() + LONGEST;
        loop {
            match port.load(Ordering::Acquire) {
                0 => std::thread::sleep(Duration::from_micros(200)),
                port => return u16::try_from(port).context("no port"),
            }
            ensure!(Instant::now() < deadline, "nobody listens");
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
