// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A service on a TCP port: a thread that accepts, and one for each connection.

use super::Host;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A running service. When it is dropped, it ends with all its connections.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    listener: TcpListener,
    is_stopping: AtomicBool,
    /// Open connections by number.
    connections: Mutex<BTreeMap<u64, TcpStream>>,
}

impl Service {
    /// Listens on all addresses of a host, and runs `work` on each connection.
    ///
    /// # Errors
    /// The port is in use.
    pub fn start(
        host: &Host,
        port: u16,
        work: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = host.within(|| {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port));
            listener.with_context(|| format!("port {port} of TCP cannot be listened on"))
        })?;
        let (is_stopping, connections) = Default::default();
        let shared = Arc::new(Shared { listener, is_stopping, connections });
        let accepting = std::thread::spawn({
            let (shared, work) = (Arc::clone(&shared), Arc::new(work));
            move || accept_all(&shared, &work)
        });
        Ok(Self { shared, accepting: Some(accepting) })
    }
}

fn accept_all<W: Fn(TcpStream) + Send + Sync + 'static>(shared: &Arc<Shared>, work: &Arc<W>) {
    for number in 0.. {
        let Ok((stream, _)) = shared.listener.accept() else { break };
        let Ok(copy) = stream.try_clone() else { continue };
        // Small answers should not wait for more data.
        drop(stream.set_nodelay(true));
        shared.connections().insert(number, copy);
        if shared.is_stopping.load(Ordering::SeqCst) {
            break;
        }
        let (shared, work) = (Arc::clone(shared), Arc::clone(work));
        std::thread::spawn(move || {
            work(stream);
            shared.connections().remove(&number);
        });
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        // SAFETY: the descriptor is open as long as the listener exists. The call wakes the thread
        // in `accept`.
        unsafe { libc::shutdown(self.shared.listener.as_raw_fd(), libc::SHUT_RD) };
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
        for stream in self.shared.connections().values() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}
