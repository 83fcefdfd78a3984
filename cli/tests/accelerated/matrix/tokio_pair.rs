// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server and a client with tokio, which uses edge-triggered epoll and wakes its threads by its
//! own descriptors: one thread and several, TCP and Unix sockets.

use super::{MODES, are_accelerated};
use crate::harness::{Mode, Node, content, free_port, is_long, wait_until};
use crate::roles;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, tcp, unix};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// Number of concurrent connections.
const CONNECTIONS: usize = 48;
/// Limit against hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// Action of a server on received bytes; the first byte of a client selects it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Echoes at once.
    Copies,
    /// Echoes in many buffers of one call.
    Pieces,
    /// Echoes after the end of file.
    Behind,
    /// Closes early; so does the client.
    Leaves,
}

impl Way {
    const ALL: [(Self, u8); 4] =
        [(Self::Copies, b'c'), (Self::Pieces, b'p'), (Self::Behind, b'b'), (Self::Leaves, b'l')];

    fn of(byte: u8) -> Self {
        Self::ALL.iter().find(|(_, own)| *own == byte).expect("it is told").0
    }
}

/// A stream of either family.
trait Stream: AsRawFd + Send + 'static {
    type Reader: AsyncRead + Unpin + Send;
    type Writer: AsyncWrite + Unpin + Send;
    fn halves(self) -> (Self::Reader, Self::Writer);
}

impl Stream for TcpStream {
    type Reader = tcp::OwnedReadHalf;
    type Writer = tcp::OwnedWriteHalf;
    fn halves(self) -> (Self::Reader, Self::Writer) {
        self.into_split()
    }
}

impl Stream for UnixStream {
    type Reader = unix::OwnedReadHalf;
    type Writer = unix::OwnedWriteHalf;
    fn halves(self) -> (Self::Reader, Self::Writer) {
        self.into_split()
    }
}

/// A runtime with several threads or one.
fn runtime(threads: &str) -> Runtime {
    let mut builder = match threads {
        "several" => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    builder.worker_threads(4).enable_all().build().expect("there are threads")
}

/// Role: a server; arguments: number of threads, port or path.
pub fn server(argument: &str) {
    let (threads, place) = argument.split_once(' ').expect("two words");
    runtime(threads).block_on(async {
        if place.starts_with('/') {
            let listener = UnixListener::bind(place).expect("there is a folder");
            loop {
                tokio::spawn(serve(listener.accept().await.expect("somebody comes").0));
            }
        }
        let port: u16 = place.parse().expect("a port");
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
        loop {
            tokio::spawn(serve(listener.accept().await.expect("somebody comes").0));
        }
    });
}

async fn serve(stream: impl Stream) {
    let (mut reader, mut writer) = stream.halves();
    // A client that only checks whether the server listens sends nothing.
    let Ok(way) = reader.read_u8().await else { return };
    match Way::of(way) {
        Way::Copies => _ = tokio::io::copy(&mut reader, &mut writer).await.expect("it is echoed"),
        Way::Pieces => in_pieces(&mut reader, &mut writer).await.expect("it is echoed"),
        Way::Behind => {
            let mut all = vec![];
            reader.read_to_end(&mut all).await.expect("it comes");
            writer.write_all(&all).await.expect("it is echoed");
        }
        Way::Leaves => {
            let mut some = [0; 5000];
            reader.read_exact(&mut some).await.expect("it comes");
            writer.write_all(&some).await.expect("it is echoed");
            return;
        }
    }
    writer.shutdown().await.expect("it can be ended");
}

async fn in_pieces(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut buffer = vec![0; 50_000];
    loop {
        let came = reader.read(&mut buffer).await?;
        if came == 0 {
            return Ok(());
        }
        let mut sent = 0;
        while sent < came {
            let pieces: Vec<_> = buffer[sent..came].chunks(777).map(IoSlice::new).collect();
            sent += writer.write_vectored(&pieces).await?;
        }
    }
}

/// Role: a client; arguments: number of threads, port or path, and whether its connections must be
/// accelerated.
pub fn client(argument: &str, must_leave: bool) {
    let (threads, place) = argument.split_once(' ').expect("two words");
    let place = place.to_owned();
    runtime(threads).block_on(async move {
        let tasks = (0..CONNECTIONS).map(|number| {
            let place = place.clone();
            let task = async move {
                if place.starts_with('/') {
                    let stream = UnixStream::connect(place).await.expect("it can be connected");
                    talk(stream, number, must_leave).await;
                } else {
                    let port: u16 = place.parse().expect("a port");
                    let stream = TcpStream::connect(("127.0.0.1", port)).await;
                    talk(stream.expect("it can be connected"), number, must_leave).await;
                }
            };
            tokio::spawn(timeout(PATIENCE, task))
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("nothing is wrong").expect("it comes to an end");
        }
    });
}

async fn talk(stream: impl Stream, number: usize, must_leave: bool) {
    let descriptor = must_leave.then(|| stream.as_raw_fd());
    let (mut reader, mut writer) = stream.halves();
    let (way, byte) = Way::ALL[number % Way::ALL.len()];
    writer.write_u8(byte).await.expect("it can be sent");
    match way {
        Way::Copies | Way::Pieces => settle(descriptor, &mut reader, &mut writer).await,
        Way::Behind => {}
        Way::Leaves => return leave(reader, writer).await,
    }
    let megabytes = if is_long() { 30 } else { 1 };
    let sent = content(number as u64, (megabytes << 20) + number * 1000);
    let expected = sent.clone();
    let sends = tokio::spawn(async move {
        send(&mut writer, &sent, number).await.expect("it can be sent");
        writer.shutdown().await.expect("it can be ended");
        writer
    });
    let got = receive(&mut reader).await.expect("it comes back");
    assert!(got == expected, "connection {number}: it has changed");
    sends.await.expect("all was sent");
}

/// Exchanges small messages until the connection with this descriptor is accelerated.
async fn settle(
    descriptor: Option<RawFd>,
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) {
    let is_settled = || descriptor.is_none_or(|it| roles::is_accelerated(&it));
    let mut rounds = 0;
    while rounds < 50 || !is_settled() {
        rounds += 1;
        let said = content(rounds, 1 + rounds as usize % 3000);
        writer.write_all(&said).await.expect("it can be sent");
        let mut heard = vec![0; said.len()];
        reader.read_exact(&mut heard).await.expect("it comes back");
        assert!(heard == said, "round {rounds}: it has changed");
        if rounds > 50 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Sends in calls of all sizes, with pauses, in one piece or in many.
async fn send(writer: &mut (impl AsyncWrite + Unpin), all: &[u8], number: usize) -> io::Result<()> {
    let mut rest = all;
    let mut at = number;
    while !rest.is_empty() {
        at += 1;
        let length = rest.len().min([1, 100, 4096, 70_000, 300_000][at % 5]);
        let sent = if at.is_multiple_of(2) {
            let pieces: Vec<_> = rest[..length].chunks(1 + length / 9).map(IoSlice::new).collect();
            writer.write_vectored(&pieces).await?
        } else {
            writer.write(&rest[..length]).await?
        };
        rest = &rest[sent..];
        if at % 17 == number % 17 {
            sleep(Duration::from_millis(10)).await;
        }
    }
    writer.flush().await
}

/// Receives all bytes; waits are cancelled sometimes, and repeated.
async fn receive(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut all = vec![];
    let mut buffer = vec![0; 100_000];
    loop {
        let waits = timeout(Duration::from_millis(3), reader.read(&mut buffer));
        match waits.await {
            Err(_) => {}
            Ok(came) => match came? {
                0 => return Ok(all),
                came => all.extend_from_slice(&buffer[..came]),
            },
        }
    }
}

/// Sends more than the peer reads, and closes; so does the peer.
async fn leave(mut reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) {
    let sent = content(1, 200_000);
    // The connection may be refused once the server has closed.
    let sends = writer.write_all(&sent).await;
    let mut got = vec![];
    let ends = reader.read_to_end(&mut got).await;
    assert!(sent.starts_with(&got), "something else came");
    if sends.is_ok() && ends.is_ok() {
        assert_eq!(got.len(), 5000);
    }
}

#[test]
fn one_thread_and_several_echo_what_the_other_says() {
    let rounds = [("several", "several"), ("one", "several"), ("several", "one")];
    for modes in MODES {
        for (number, (serves, asks)) in rounds.into_iter().enumerate() {
            for is_unix in [false, true] {
                if !are_accelerated(modes) && number > 0 {
                    continue;
                }
                pair(modes, serves, asks, is_unix);
            }
        }
    }
}

fn pair(modes: [Mode; 2], serves: &str, asks: &str, is_unix: bool) {
    let (node, _monitor) = Node::new();
    let path = node.path().join("socket");
    let port = free_port();
    let place = if is_unix { path.display().to_string() } else { port.to_string() };
    let argument = format!("{serves} {place}");
    let mut server = node.role(modes[0], "tokio server", &argument);
    server.wait_until("it answers", || {
        if is_unix {
            StdUnixStream::connect(&path).is_ok()
        } else {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        }
    });
    let role = if are_accelerated(modes) { "tokio client" } else { "tokio plain client" };
    node.role(modes[1], role, &format!("{asks} {place}")).finish();
    assert_eq!(server.ended(), None);
    let printed = server.printed();
    assert!(!printed.contains("panicked"), "{printed}");
    if are_accelerated(modes) {
        let settled = CONNECTIONS as u64 / 2;
        wait_until("they have ended", || node.connections().is_empty());
        node.assert_moved(settled, settled << 21);
    } else {
        assert_eq!(node.moved().bytes, 0, "{modes:?}");
    }
}
