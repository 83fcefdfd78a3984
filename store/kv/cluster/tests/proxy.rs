// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A proxy between a registry and etcd, which counts requests and can lose answers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A proxy on a free port of the loopback. Its threads end with their connections, and the one that
/// accepts them with the process.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    loses_answers: AtomicBool,
    requests: AtomicUsize,
}

impl Proxy {
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                serving.clone().join(client, server);
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on, connections are closed in place of each answer.
    pub fn lose_answers(&self, loses: bool) {
        self.shared.loses_answers.store(loses, Ordering::Relaxed);
    }

    /// Number of requests until now.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Copies both directions of a connection in two threads.
    fn join(self: Arc<Self>, client: TcpStream, server: TcpStream) {
        let answers = (server.try_clone().expect("a socket"), client.try_clone().expect("one"));
        let requests = self.clone();
        thread::spawn(move || {
            requests.copy(client, server, |shared, bytes| {
                let begins = bytes.windows(5).filter(|window| window == b"POST ").count();
                shared.requests.fetch_add(begins, Ordering::Relaxed);
                true
            });
        });
        thread::spawn(move || {
            let passes = |shared: &Self, _: &[u8]| !shared.loses_answers.load(Ordering::Relaxed);
            self.copy(answers.0, answers.1, passes);
        });
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, passes: impl Fn(&Self, &[u8]) -> bool) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if !passes(self, &bytes[..length]) || to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        // The other thread notices it.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
