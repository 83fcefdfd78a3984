// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a claimed descriptor is, by the kernel's word.
//!
//! Nothing is asked of it before it is known to be a socket: a file system of somebody's own could
//! let us wait for the answer.

mod diagnosis;
mod internet;
mod option;
mod unix;

use crate::Error;
use crate::activity::Family;
use crate::socket;
use crate::text::Printable;
use diagnosis::Diagnosis;
use freeport_sockets_proto::Reason;
use internet::Address;
use option::{namespace, number};
use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// What tells a connection's end from all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// An end of a TCP connection.
    Internet {
        /// The cookie of the namespace of the network.
        net: u64,
        /// The interface that both ends are bound to, or 0: of different ones, there can be two
        /// connections between the same addresses.
        device: u32,
        /// The address of this end.
        local: Address,
        /// The address of the other one.
        remote: Address,
    },
    /// An end of a connection of Unix sockets.
    Unix {
        /// The inode of this end.
        own: u64,
        /// The inode of the other one.
        peer: u64,
    },
}

/// The address of an end, for people and for rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Of a TCP connection.
    Internet(SocketAddr),
    /// Of a Unix socket: the path that it is bound to, or what stands for one; empty if it is bound
    /// to none.
    Unix(String),
}

/// A claimed end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Which one.
    pub key: Key,
    /// The inode of the socket, as it stands in `/proc/PID/fd`.
    pub inode: u64,
    /// What the kernel calls the socket; no other is called so until the machine begins anew.
    pub cookie: u64,
    /// The address of this end.
    pub local: Place,
    /// The address of the other one.
    pub remote: Place,
    /// The user who made the other end of a connection of Unix sockets, or listened there.
    peer_user: Option<u32>,
}

/// Asks the kernel what claimed descriptors are.
pub struct Examiner {
    /// The cookie of the namespace in which addresses can be looked up, and the peers of Unix
    /// sockets.
    net: u64,
    /// None where the kernel does not tell: Unix sockets stay there then.
    diagnosis: Option<Diagnosis>,
}

impl Key {
    /// The key of the other end.
    pub fn reversed(self) -> Self {
        match self {
            Self::Internet { net, device, local, remote } => {
                Self::Internet { net, device, local: remote, remote: local }
            }
            Self::Unix { own, peer } => Self::Unix { own: peer, peer: own },
        }
    }
}

impl End {
    /// Whether that is the same socket, connected to the same other one.
    pub fn is(&self, other: &Self) -> bool {
        (self.key, self.cookie) == (other.key, other.cookie)
    }

    /// Whether a process of that user may have the other end.
    ///
    /// Ends of Unix sockets are told apart by inodes, of which the kernel has 2^32 before it begins
    /// again: within hours, somebody gets a pair with the numbers of a pair of others. Those others
    /// did not make it, as the kernel knows. Root is who listens for servers of any user.
    pub fn may_be_connected_to(&self, user: u32) -> bool {
        self.peer_user.is_none_or(|maker| maker == user || maker == 0)
    }
}

impl Place {
    /// The kind of socket that has such an address.
    pub fn family(&self) -> Family {
        match self {
            Self::Internet(_) => Family::Tcp,
            Self::Unix(_) => Family::Unix,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => write!(out, "{address}"),
            Self::Unix(path) if path.is_empty() => out.write_str("unix"),
            // Whoever has bound it may have chosen what a terminal takes for commands.
            Self::Unix(path) => write!(out, "{}", Printable(path)),
        }
    }
}

/// The inode of what may be a socket; `None`: it is none.
pub fn inode(shown: BorrowedFd<'_>) -> Option<u64> {
    option::cookie(shown).and_then(|_| option::inode(shown))
}

impl Examiner {
    /// One of this process's namespace.
    ///
    /// # Errors
    /// The kernel cannot tell what it has to know.
    pub fn new() -> Result<Self, Error> {
        let probe = UdpSocket::bind("127.0.0.1:0")
            .or_else(|_| UdpSocket::bind("[::1]:0"))
            .map_err(|source| Error::System { what: "a socket to look at", source })?;
        let net = namespace(probe.as_fd()).ok_or(Error::Kernel)?;
        Ok(Self { net, diagnosis: Diagnosis::new().ok().filter(Diagnosis::works) })
    }

    /// What it is, if it is an end of a connection that is established and can be accelerated.
    pub fn examine(&self, socket: BorrowedFd<'_>) -> Result<End, Reason> {
        let family = number(socket, libc::SOL_SOCKET, libc::SO_DOMAIN).ok_or(Reason::NotStream)?;
        if number(socket, libc::SOL_SOCKET, libc::SO_TYPE) != Some(libc::SOCK_STREAM) {
            return Err(Reason::NotStream);
        }
        let inode = option::inode(socket).ok_or(Reason::Resources)?;
        let cookie = option::cookie(socket).ok_or(Reason::Resources)?;
        match family {
            libc::AF_INET | libc::AF_INET6 => {
                let (net, local, remote) = internet::examine(socket)?;
                let device = number(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX);
                let device = device.and_then(|it| u32::try_from(it).ok()).unwrap_or_default();
                let key = Key::Internet { net, device, local, remote };
                let [local, remote] = [local, remote].map(|it| Place::Internet(it.address));
                Ok(End { key, inode, cookie, local, remote, peer_user: None })
            }
            libc::AF_UNIX => {
                if namespace(socket) != Some(self.net) {
                    return Err(Reason::Namespace);
                }
                let diagnosis = self.diagnosis.as_ref().ok_or(Reason::Family)?;
                let peer = diagnosis.peer(inode, Some(cookie))?;
                let key = Key::Unix { own: inode, peer };
                let [local, remote] = unix::places(socket);
                let maker = socket::peer(socket).map_err(|_| Reason::NotConnected)?;
                Ok(End { key, inode, cookie, local, remote, peer_user: Some(maker.user) })
            }
            _ => Err(Reason::Family),
        }
    }

    /// Whether no process of this machine can have the other end, as far as that can be told.
    pub fn is_elsewhere(&self, key: &Key) -> bool {
        match key {
            Key::Internet { net, local, remote, .. } => {
                *net == self.net && internet::is_elsewhere(local, remote)
            }
            Key::Unix { .. } => false,
        }
    }
}

/// The inode of the socket that a Unix stream socket is connected to, if both are in the namespace
/// of who asks.
pub fn peer_of_unix(inode: u64) -> Option<u64> {
    Diagnosis::new().ok()?.peer(inode, None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_testbed::skip;
    use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener, UnixStream};

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let mut to = listener.local_addr().unwrap();
        if to.ip().is_unspecified() {
            to.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let client = TcpStream::connect(to).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn examined(socket: &impl AsFd) -> Result<End, Reason> {
        Examiner::new().unwrap().examine(socket.as_fd())
    }

    /// Whether two sockets are each other's ends. What the first is.
    fn are_ends(one: &impl AsFd, other: &impl AsFd) -> End {
        let (here, there) = (examined(one).unwrap(), examined(other).unwrap());
        assert_eq!(here.key.reversed(), there.key);
        assert_eq!(there.key.reversed(), here.key);
        assert_ne!(here.inode, there.inode);
        assert_ne!(here.cookie, there.cookie);
        assert_eq!((&here.local, &here.remote), (&there.remote, &there.local));
        assert!(here.is(&examined(one).unwrap()) && !here.is(&there));
        here
    }

    #[test]
    fn two_ends_of_a_connection_are_each_others() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let (client, server) = pair(address);
            let here = are_ends(&client, &server);
            assert_eq!(here.local, Place::Internet(client.local_addr().unwrap()), "{address}");
            assert!(!Examiner::new().unwrap().is_elsewhere(&here.key));
        }
    }

    #[test]
    fn ends_of_unix_sockets_have_a_path_a_name_or_none() {
        let (one, other) = UnixStream::pair().unwrap();
        let here = are_ends(&one, &other);
        assert_eq!(here.local.to_string(), "unix");
        assert!(!Examiner::new().unwrap().is_elsewhere(&here.key));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a\nb");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let server = listener.accept().unwrap().0;
        let here = are_ends(&client, &server);
        assert_eq!(here.remote, Place::Unix(path.to_str().unwrap().to_owned()));
        assert!(here.remote.to_string().ends_with("/a\\nb"), "{}", here.remote);
        assert_eq!(here.local, Place::Unix(String::new()));

        let name = format!("freeport-{}-\0x", std::process::id());
        let address = UnixAddress::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let client = UnixStream::connect_addr(&address).unwrap();
        let server = listener.accept().unwrap().0;
        assert_eq!(are_ends(&server, &client).local, Place::Unix(format!("@{name}")));
    }

    #[test]
    fn what_is_no_established_connection_is_refused() {
        let not_connected = Some(Reason::NotConnected);
        let (client, server) = pair("127.0.0.1:0");
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(examined(&server).err(), not_connected);
        drop((client, server));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(examined(&listener).err(), not_connected);
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(examined(&datagrams).err(), Some(Reason::NotStream));
        let file = std::fs::File::open("/proc/self/maps").unwrap();
        assert_eq!(examined(&file).err(), Some(Reason::NotStream));
    }

    #[test]
    fn unix_sockets_that_nobody_answers_are_refused() {
        let not_connected = Some(Reason::NotConnected);
        let (one, other) = UnixStream::pair().unwrap();
        one.shutdown(Shutdown::Read).unwrap();
        assert_eq!([&one, &other].map(|it| examined(it).err()), [not_connected; 2]);
        let (one, other) = UnixStream::pair().unwrap();
        drop(other);
        assert_eq!(examined(&one).err(), not_connected);
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("it")).unwrap();
        assert_eq!(examined(&listener).err(), not_connected);
        // Connected, but not accepted: only then it has another end.
        let client = UnixStream::connect(folder.path().join("it")).unwrap();
        assert_eq!(examined(&client).err(), Some(Reason::PeerPlain));
        let _server = listener.accept().unwrap();
        assert_eq!(examined(&client).err(), None);
        let (one, _other) = UnixDatagram::pair().unwrap();
        assert_eq!(examined(&one).err(), Some(Reason::NotStream));
    }

    #[test]
    fn other_families_are_refused() {
        // SAFETY: no memory is passed.
        let descriptor = unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) };
        if descriptor < 0 {
            return skip("this kernel has no sockets of the family AF_VSOCK");
        }
        // SAFETY: the descriptor was just made, and has no other owner.
        let socket: std::os::fd::OwnedFd =
            unsafe { std::os::fd::FromRawFd::from_raw_fd(descriptor) };
        assert_eq!(examined(&socket).err(), Some(Reason::Family));
    }

    /// As where networks of the same addresses are kept apart by interfaces (VRF).
    #[test]
    fn connections_of_another_interface_are_others() {
        let (client, server) = pair("127.0.0.1:0");
        let device = 1_i32;
        // SAFETY: an option that is a number.
        let result = unsafe {
            let (level, name) = (libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX);
            let length = size_of_val(&device) as libc::socklen_t;
            let value = (&raw const device).cast();
            libc::setsockopt(server.as_raw_fd(), level, name, value, length)
        };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        let [here, there] = [&client, &server].map(|it| examined(it).unwrap());
        assert_ne!(here.key.reversed(), there.key);
    }

    #[test]
    fn only_who_made_the_other_end_has_it_or_who_root_has_listened_for() {
        // SAFETY: it has no arguments.
        let user = unsafe { libc::geteuid() };
        let (one, _other) = UnixStream::pair().unwrap();
        let mut end = examined(&one).unwrap();
        assert!(end.may_be_connected_to(user));
        assert_eq!(end.may_be_connected_to(user + 1), user == 0);
        end.peer_user = Some(7);
        assert_eq!(
            [0, 6, 7, 8].map(|user| end.may_be_connected_to(user)),
            [false, false, true, false]
        );
        let (client, _server) = pair("127.0.0.1:0");
        assert!(examined(&client).unwrap().may_be_connected_to(user + 1));
    }

    #[test]
    fn an_address_of_nobody_here_is_elsewhere() {
        let (client, _server) = pair("127.0.0.1:0");
        let Key::Internet { net, device, local, mut remote } = examined(&client).unwrap().key
        else {
            panic!("it is a TCP connection")
        };
        // One that is kept for documentation.
        remote.address.set_ip(Ipv4Addr::new(192, 0, 2, 77).into());
        let examiner = Examiner::new().unwrap();
        assert!(examiner.is_elsewhere(&Key::Internet { net, device, local, remote }));
        let net = net + 1;
        assert!(!examiner.is_elsewhere(&Key::Internet { net, device, local, remote }));
    }
}
