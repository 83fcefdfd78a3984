// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines from the kernel what a claimed descriptor is.
//!
//! The first check is that it is a socket: any other query could block on a file system that
//! another user serves.

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

/// Key that identifies one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// An end of a TCP connection.
    Internet {
        /// Cookie of the network namespace.
        net: u64,
        /// Interface that both ends are bound to, or 0: on different interfaces, two connections
        /// can have the same addresses.
        device: u32,
        /// Address of this end.
        local: Address,
        /// Address of the peer.
        remote: Address,
    },
    /// An end of a connection of Unix sockets.
    Unix {
        /// Inode of this end.
        own: u64,
        /// Inode of the peer.
        peer: u64,
    },
}

/// Address of an end, for users and rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Address of a TCP end.
    Internet(SocketAddr),
    /// Path or abstract name that a Unix socket is bound to; empty if it is unbound.
    Unix(String),
}

/// A claimed end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Key of the end.
    pub key: Key,
    /// Inode of the socket, as shown in `/proc/PID/fd`.
    pub inode: u64,
    /// Cookie of the socket, unique until the machine restarts.
    pub cookie: u64,
    /// Address of this end.
    pub local: Place,
    /// Address of the peer.
    pub remote: Place,
    /// User who created the peer's Unix socket, or who listened there.
    peer_user: Option<u32>,
}

/// Inspects claimed descriptors with the kernel's help.
pub struct Examiner {
    /// Cookie of the namespace in which addresses and the peers of Unix sockets can be looked up.
    net: u64,
    /// `None` if the kernel does not report peers: Unix sockets stay in the kernel then.
    diagnosis: Option<Diagnosis>,
}

impl Key {
    /// Returns the key of the peer.
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
    /// Returns whether both are the same socket, connected to the same peer.
    pub fn is(&self, other: &Self) -> bool {
        (self.key, self.cookie) == (other.key, other.cookie)
    }

    /// Returns whether a process of this user may have the peer.
    ///
    /// Ends of Unix sockets are identified by inode numbers, of which the kernel has 2^32 before it
    /// reuses them: within hours, one user's pair can get the numbers of an earlier pair of other
    /// users. The kernel knows that those users did not create it. Root listens on behalf of
    /// servers of any user.
    pub fn may_be_connected_to(&self, user: u32) -> bool {
        self.peer_user.is_none_or(|maker| maker == user || maker == 0)
    }
}

impl Place {
    /// Kind of socket with such an address.
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
            // Another user may have bound it to a name with terminal control sequences.
            Self::Unix(path) => write!(out, "{}", Printable(path)),
        }
    }
}

/// Returns the inode of a descriptor; `None` if it is no socket.
pub fn inode(shown: BorrowedFd<'_>) -> Option<u64> {
    option::cookie(shown).and_then(|_| option::inode(shown))
}

impl Examiner {
    /// Creates an examiner for this process's network namespace.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel cannot distinguish network namespaces, or [`Error::System`]
    /// without a socket.
    pub fn new() -> Result<Self, Error> {
        let probe = UdpSocket::bind("127.0.0.1:0")
            .or_else(|_| UdpSocket::bind("[::1]:0"))
            .map_err(|source| Error::System { what: "making a socket to inspect", source })?;
        let net = namespace(probe.as_fd()).ok_or(Error::Kernel)?;
        Ok(Self { net, diagnosis: Diagnosis::new().ok().filter(Diagnosis::works) })
    }

    /// Inspects a descriptor: returns its end if the connection is established and can be
    /// accelerated.
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

    /// Returns whether no process of this machine can have the peer, as far as that is known.
    pub fn is_elsewhere(&self, key: &Key) -> bool {
        match key {
            Key::Internet { net, local, remote, .. } => {
                *net == self.net && internet::is_elsewhere(local, remote)
            }
            Key::Unix { .. } => false,
        }
    }
}

/// Returns the inode of a Unix stream socket's peer, if both are in the caller's namespace.
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

    /// Asserts that the two sockets are each other's peers, and returns the first.
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
        // Connected, but not accepted: it has no peer until then.
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
        // SAFETY: the descriptor is new and has no other owner.
        let socket: std::os::fd::OwnedFd =
            unsafe { std::os::fd::FromRawFd::from_raw_fd(descriptor) };
        assert_eq!(examined(&socket).err(), Some(Reason::Family));
    }

    /// As where interfaces separate networks with the same addresses (VRF).
    #[test]
    fn connections_of_another_interface_are_others() {
        let (client, server) = pair("127.0.0.1:0");
        let device = 1_i32;
        // SAFETY: the option's value is a number.
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
        // SAFETY: the call takes no arguments.
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
        // An address reserved for documentation.
        remote.address.set_ip(Ipv4Addr::new(192, 0, 2, 77).into());
        let examiner = Examiner::new().unwrap();
        assert!(examiner.is_elsewhere(&Key::Internet { net, device, local, remote }));
        let net = net + 1;
        assert!(!examiner.is_elsewhere(&Key::Internet { net, device, local, remote }));
    }
}
