// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members of etcd clusters beside the code under test.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::port::free_port;

/// A member of an etcd cluster, on free ports of the loopback. It ends with this value.
#[derive(Debug)]
pub struct EtcdServer {
    command: Command,
    process: Child,
    address: SocketAddr,
}

impl EtcdServer {
    /// Starts a cluster of one member with its data in a folder. `None` if etcd is not installed.
    /// It takes a moment until calls succeed.
    pub fn start(folder: &Path) -> Option<Self> {
        Self::start_cluster(folder, 1)?.pop()
    }

    /// Starts a cluster of several members with their data in a folder. `None` if etcd is not
    /// installed.
    pub fn start_cluster(folder: &Path, members: usize) -> Option<Vec<Self>> {
        let peers: Vec<String> =
            (0..members).map(|_| format!("http://127.0.0.1:{}", free_port())).collect();
        let named = peers.iter().enumerate().map(|(at, peer)| format!("member{at}={peer}"));
        let cluster = named.collect::<Vec<_>>().join(",");
        let started = peers.iter().enumerate().map(|(at, peer)| {
            let address = (Ipv4Addr::LOCALHOST, free_port()).into();
            let name = format!("member{at}");
            let url = format!("http://{address}");
            let mut command = Command::new("etcd");
            command
                .args(["--name", &name, "--data-dir"])
                .arg(folder.join(&name))
                .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
                .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
                .args(["--initial-cluster", &cluster, "--log-level", "error"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let process = command.spawn().ok()?;
            Some(Self { command, process, address })
        });
        started.collect()
    }

    /// Its address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills the process. The data stay.
    ///
    /// # Panics
    /// The process cannot be waited for.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        self.process.wait().expect("it is a child");
    }

    /// Starts it again with its data, after [`EtcdServer::kill`].
    ///
    /// # Panics
    /// It does not start.
    pub fn restart(&mut self) {
        self.process = self.command.spawn().expect("it has started before");
    }

    /// Stops the process until [`EtcdServer::resume`]: connections stay, and get no answer. Returns
    /// when all its threads have stopped.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
        // SAFETY: a structure of numbers and pointers that is only written.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to `info`, which outlives the call. The child is not reaped.
        let result =
            unsafe { libc::waitid(libc::P_PID, self.process.id(), &raw mut info, libc::WSTOPPED) };
        assert_eq!(result, 0, "a child can be waited for");
    }

    /// Lets a paused process continue.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the call takes no pointer. The child was not waited for, so its number is its.
        let result = unsafe { libc::kill(self.process.id() as libc::pid_t, signal) };
        assert_eq!(result, 0, "a child can be signalled");
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
    }
}
