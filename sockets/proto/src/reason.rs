// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a connection is not accelerated.

/// Defines the reasons, each with its number and its text.
macro_rules! reasons {
    ($($(#[$about:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why a connection stays in the kernel.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u16)]
        pub enum Reason {
            $($(#[$about])* $name = $number,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Stable name, for programs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Explanation, for users.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

reasons! {
    /// The other end was not claimed: its process is not preloaded, or has hardly used it.
    PeerPlain = 1, "the peer is not preloaded, or has hardly used its end";
    /// The other end is on another machine or in another network namespace.
    PeerElsewhere = 2, "the peer has an address of another machine";
    /// Both ends are in the same process.
    SameProcess = 3, "both ends are in one process";
    /// A policy forbids it.
    Policy = 4, "a policy forbids it";
    /// Not a stream socket.
    NotStream = 5, "not a stream socket";
    /// Neither a TCP nor a Unix socket.
    Family = 6, "neither a TCP nor a Unix socket";
    /// Bytes bypassed the library, so it does not know the position in the stream.
    PastLibrary = 7, "bytes bypassed the library";
    /// Several processes hold it, or may hold it.
    Shared = 8, "several processes hold it, or may hold it";
    /// A C library stream (`FILE`) uses it, or it is a standard stream.
    Stdio = 9, "a stream of the C library (FILE) uses it";
    /// Urgent data was used.
    Urgent = 10, "urgent data was used";
    /// No memory, or no descriptors.
    Resources = 11, "no memory or no descriptor is left for it";
    /// The connection is not established, or no longer.
    NotConnected = 12, "not connected";
    /// No monitor answers.
    NoMonitor = 13, "no monitor answers";
    /// Too few operations so far.
    Young = 14, "too few operations so far";
    /// A Unix socket in another network namespace than the monitor's.
    Namespace = 15, "a Unix socket in another network namespace";
    /// It was accelerated, and returned to the kernel before it was passed to another process.
    HandedOn = 16, "passed to another process or program: it is back in the kernel";
    /// It was accelerated, and returned to the kernel because the rules no longer allow it.
    Recalled = 17, "it was accelerated, and is back in the kernel: the rules no longer allow it";
    /// Its process uses `io_uring`.
    IoUring = 18, "its process uses io_uring, which the library cannot observe";
    /// The users of the two ends have reached the limit of connections between two users, or one of
    /// them the limit of claims.
    UserLimit = 19, "its users have reached their limit";
    /// Its process restricts its system calls (`seccomp`).
    Confined = 20, "its process restricts its system calls (seccomp)";
    /// A Unix socket with ancillary data, or with an option that requests it.
    Ancillary = 21, "it has ancillary data (descriptors, names), or an option requests them";
    /// It is registered in an `epoll` set that another process or program also holds.
    ForeignSet = 22, "it is in an epoll set that another process or program also holds";
    /// One of its directions was shut before it left the kernel.
    HalfShut = 23, "one direction was shut down before it left the kernel";
    /// `splice` moved bytes from it to a pipe before it left the kernel.
    Spliced = 24, "splice moved bytes from it before it left the kernel";
    /// `SO_RCVLOWAT` was set on it before it left the kernel.
    LowWater = 25, "it waits for a minimum number of bytes (SO_RCVLOWAT)";
    /// A Unix socket received from another process or program: the kernel does not count its bytes.
    Uncounted = 26, "a Unix socket received from another process or program";
    /// It returned to the kernel with unread bytes that only the peer could send again. The peer
    /// did not respond, so the connection has ended.
    PeerAway = 27, "it has ended: the peer did not respond, and no process may send in its place";
    /// It has a slot, and leaves the kernel with the next operation of each end.
    Leaving = 28, "it leaves the kernel with the next operation of each end";
    /// It was claimed, and the other end may still be claimed.
    Waiting = 29, "it was just claimed, and the other end may still be claimed";
    /// The library has not reported a reason, or the monitor no longer has it.
    Untold = 30, "the library gave no reason, or the monitor no longer has it";
    /// It is a listener.
    Listens = 31, "it is a listener: the connections that it accepts are accelerated";
    /// Its process does not have the library.
    NotPreloaded = 32, "its process is not preloaded";
    /// Its process belongs to another user, and the caller may not inspect it.
    NotPermitted = 33, "its process belongs to another user";
    /// There is no such process.
    NoProcess = 34, "there is no such process";
    /// The process has no such descriptor.
    NoDescriptor = 35, "its process has no such descriptor";
    /// The descriptor is no socket.
    NotSocket = 36, "not a socket";
    /// The two ends are claimed with two monitors.
    PeerMonitor = 37, "the peer uses another monitor";
    /// Its process has the library, but makes system calls without the C library.
    NoCalls = 38, "its process makes system calls without the C library";
    /// It has an option whose effect on the bytes only the kernel implements.
    Option = 39, "it has an option that only the kernel can honour (pacing, filters, signatures)";
}

impl Reason {
    /// Returns the reason with that number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| *reason as u16 == number)
    }

    /// Returns the reason of that [name](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_reasons() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_number(*reason as u16), Some(*reason));
            assert_eq!(Reason::named(reason.name()), Some(*reason));
        }
        assert_eq!(Reason::from_number(0), None);
        assert_eq!(Reason::from_number(Reason::ALL.len() as u16 + 1), None);
    }
}
