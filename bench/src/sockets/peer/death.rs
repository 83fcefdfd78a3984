// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two programs of which one is killed: what both do at that time, and when the other notices.

use crate::between::desk::Desk;
use anyhow::{Context, Result, bail, ensure};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Activity of both programs when one of them is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Scene {
    /// The survivor waits in `recv`, and no data is sent
    Recv,
    /// The survivor waits in `poll`
    Poll,
    /// The survivor waits in `select`
    Select,
    /// The survivor waits in `epoll_wait`
    Epoll,
    /// The survivor calls `recv` repeatedly, without blocking
    Spin,
    /// The survivor receives as fast as the peer can send
    Bulk,
    /// The survivor has sent data that the peer has not read, and waits in `recv`
    Unread,
    /// The survivor waits in `send`, since the peer does not read
    FullSend,
    /// The survivor calls `send` repeatedly, without blocking, since the peer does not read
    FullSpin,
    /// The survivor sends a little every millisecond, and never receives
    OneWay,
    /// The connection is new, and may be about to leave the kernel
    Halfway,
    /// The killed process is a child that serves what its parent has accepted
    Worker,
    /// The survivor waits in `recv`, and the monitor was killed before
    NoMonitor,
}

impl Scene {
    /// Returns its title in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Recv => "in recv",
            Self::Poll => "in poll",
            Self::Select => "in select",
            Self::Epoll => "in epoll_wait",
            Self::Spin => "asking without blocking",
            Self::Bulk => "receiving much",
            Self::Unread => "something not read",
            Self::FullSend => "in send, without room",
            Self::FullSpin => "sending without room",
            Self::OneWay => "sending one way",
            Self::Halfway => "a new connection",
            Self::Worker => "served by a child",
            Self::NoMonitor => "without a monitor",
        }
    }
}

/// Bytes per call in bulk transfers.
const MUCH: usize = 64 << 10;
/// Bytes per message otherwise.
const LITTLE: usize = 64;
/// Interval between messages that go one way.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits for the end of a connection as the scene says, and records when it was noticed.
///
/// # Errors
/// The connection ends in another way.
pub fn survive(mut stream: TcpStream, scene: Scene, desk: &Desk) -> Result<()> {
    if scene != Scene::Unread {
        desk.arrive();
    }
    match scene {
        Scene::Recv | Scene::Worker | Scene::NoMonitor => to_end(&mut stream)?,
        Scene::Poll | Scene::Select | Scene::Epoll => {
            wait(&stream, scene)?;
            to_end(&mut stream)?;
        }
        Scene::Spin => {
            stream.set_nonblocking(true)?;
            to_end(&mut stream)?;
        }
        Scene::Bulk => to_end(&mut stream)?,
        Scene::Unread => {
            stream.write_all(&[1; LITTLE])?;
            desk.arrive();
            to_end(&mut stream)?;
        }
        Scene::FullSend => while stream.write(&[1; MUCH]).is_ok() {},
        Scene::FullSpin => {
            stream.set_nonblocking(true)?;
            until_error(|| stream.write(&[1; MUCH]));
        }
        Scene::OneWay => {
            while stream.write(&[1; LITTLE]).is_ok() {
                thread::sleep(PAUSE);
            }
        }
        Scene::Halfway => {
            let mut message = [1; LITTLE];
            while stream.write_all(&message).is_ok() && stream.read_exact(&mut message).is_ok() {}
        }
    }
    desk.end();
    Ok(())
}

/// Plays the process that is killed.
///
/// # Errors
/// It was not killed.
pub fn die(mut stream: TcpStream, scene: Scene, desk: &Desk) -> Result<()> {
    if scene == Scene::Worker {
        // SAFETY: this process has one thread.
        let child = unsafe { libc::fork() };
        ensure!(child >= 0, "no child can be forked");
        if child > 0 {
            drop(stream);
            desk.process.store(child as u64, Ordering::Release);
            // SAFETY: the process is its own child.
            unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
            return Ok(());
        }
    } else {
        desk.process.store(std::process::id().into(), Ordering::Release);
    }
    if scene == Scene::Worker || scene == Scene::Halfway {
        // The connection from its parent leaves the kernel with messages.
        desk.arrive();
        let mut message = [1; LITTLE];
        while stream.read_exact(&mut message).is_ok() && stream.write_all(&message).is_ok() {}
        bail!("the survivor exited first");
    }
    desk.arrive();
    match scene {
        Scene::Bulk => while stream.write(&[1; MUCH]).is_ok() {},
        Scene::OneWay => while stream.read(&mut [0; MUCH]).is_ok_and(|count| count > 0) {},
        Scene::Unread | Scene::FullSend | Scene::FullSpin => loop {
            thread::sleep(Duration::from_secs(60));
        },
        _ => {
            let _ = stream.read(&mut [0]);
        }
    }
    bail!("the survivor exited first");
}

/// Receives until the end of the connection.
fn to_end(stream: &mut TcpStream) -> Result<()> {
    let mut bytes = vec![0; MUCH];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => {
                return Err(error).context("another error than the end of the connection");
            }
        }
    }
}

fn until_error(mut act: impl FnMut() -> io::Result<usize>) {
    let continues = |result: io::Result<usize>| match result {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    };
    while continues(act()) {}
}

/// Waits until there is something to read.
fn wait(stream: &TcpStream, scene: Scene) -> Result<()> {
    let number = stream.as_raw_fd();
    let found = match scene {
        Scene::Poll => {
            let mut polled = libc::pollfd { fd: number, events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor, whose structure lives as long as the call.
            unsafe { libc::poll(&mut polled, 1, -1) }
        }
        Scene::Select => {
            // SAFETY: a set is plain memory, for which all zeros is the empty set.
            let mut set: libc::fd_set = unsafe { std::mem::zeroed() };
            // SAFETY: the set is initialised; numbers beyond its end panic.
            unsafe { libc::FD_SET(number, &mut set) };
            let none = ptr::null_mut();
            // SAFETY: the set lives as long as the call, and holds numbers up to this one.
            unsafe { libc::select(number + 1, &mut set, none, none, ptr::null_mut()) }
        }
        _ => {
            // SAFETY: no memory is passed.
            let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            // SAFETY: the event lives as long as the call, which reads it.
            unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, number, &mut event) };
            // SAFETY: there is room for one event.
            unsafe { libc::epoll_wait(epoll, &mut event, 1, -1) }
        }
    };
    ensure!(found == 1, "nothing arrived: {}", io::Error::last_os_error());
    Ok(())
}
