// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server with a thread for each connection. It writes the replies of a packet before it reads
//! the next one, so it stops reading while its client does not take replies.

use super::model::Model;
use freeport_fabric::shm;
use freeport_kv_client::{Address, Client, Options};
use freeport_kv_protocol::batch::Header;
use freeport_testbed::wait::PATIENCE;
use std::io::{self, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

/// How a connection answers. Its calls are in the order of the packets; `None` closes the
/// connection.
pub type Answer = Arc<dyn Fn(&Header, &[u8], &mut u16) -> Option<Vec<u8>> + Send + Sync>;

/// A server, which lives as long as the test's process; its folder, as long as this.
pub struct Server {
    pub address: Address,
    _folder: Option<TempDir>,
}

/// Options for a machine that is busy with something else.
pub fn patient() -> Options {
    Options { timeout: PATIENCE, ..Options::default() }
}

/// As the model says.
pub fn truthful(model: &Model) -> Answer {
    let model = model.clone();
    Arc::new(move |header, payload, worker| Some(model.execute(header, payload, worker)))
}

pub fn tcp(answer: Answer) -> Server {
    tcp_for(answer, usize::MAX)
}

/// Closes each connection after a number of replies.
pub fn tcp_for(answer: Answer, replies: usize) -> Server {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the system chooses a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer) = (stream.expect("a client connects"), answer.clone());
            thread::spawn(move || serve(stream, &answer, replies));
        }
    });
    Server { address: Address::Tcp(address), _folder: None }
}

pub fn fabric(answer: Answer) -> Server {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("the path is free");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer) = (stream.expect("a client connects"), answer.clone());
            thread::spawn(move || {
                let options = shm::Options::default();
                if let Ok(connection) = shm::Connection::accept(stream, &options) {
                    serve(connection, &answer, usize::MAX);
                }
            });
        }
    });
    Server { address: Address::Fabric(path), _folder: Some(folder) }
}

/// `answer` returns the datagrams that are sent for one that came. Each client has a worker of its
/// own.
pub fn udp(
    mut answer: impl FnMut(&Header, &[u8], &mut u16) -> Vec<Vec<u8>> + Send + 'static,
) -> Server {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("the system chooses a port");
    let address = socket.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let mut workers = std::collections::HashMap::new();
        let mut buffer = vec![0; 65_536];
        while let Ok((bytes, peer)) = socket.recv_from(&mut buffer) {
            let header = Header::parse_request(&buffer[..bytes], u32::MAX);
            let header = header.expect("it is a request").expect("it is whole");
            let worker = workers.entry(peer).or_insert(0);
            for datagram in answer(&header, &buffer[header.bytes()..bytes], worker) {
                // A client that has ended refuses it.
                _ = socket.send_to(&datagram, peer);
            }
        }
    });
    Server { address: Address::Udp(address), _folder: None }
}

/// A client with a short time-out, which the replies to some of its hellos may exceed.
pub fn connect_at_last(server: &Server, options: &Options) -> Client {
    loop {
        if let Ok(client) = Client::connect_to(server.address.clone(), options.clone()) {
            return client;
        }
    }
}

fn serve(mut stream: impl Read + Write, answer: &Answer, replies: usize) {
    let mut worker = 0;
    for _ in 0..replies {
        let Ok((header, payload)) = read(&mut stream) else { return };
        match answer(&header, &payload, &mut worker) {
            Some(reply) if stream.write_all(&reply).is_ok() => {}
            _ => return,
        }
    }
}

fn read(stream: &mut impl Read) -> io::Result<(Header, Vec<u8>)> {
    let mut bytes = [0; 16];
    stream.read_exact(&mut bytes)?;
    let header = Header::parse_request(&bytes, u32::MAX).expect("it is a request");
    let header = header.expect("over streams there is no token");
    let mut payload = vec![0; header.payload_bytes as usize];
    stream.read_exact(&mut payload)?;
    Ok((header, payload))
}
