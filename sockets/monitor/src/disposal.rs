// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Closes descriptors of members without letting them block the monitor.
//!
//! How long `close` takes can be up to another party. A socket may be set to linger until its peer
//! has read; the file system of a file may be a program that never answers. So a timer signal
//! interrupts the thread that closes, which ends the lingering, and descriptors that are not
//! sockets are closed by a thread of their own.
//!
//! No descriptor is leaked. Closing threads are counted for the user whose process sent the
//! descriptor: while a user has several of them, the kernel drops the descriptors of the user's
//! messages before they arrive, see [`Closing`].

use crate::Error;
use std::collections::BTreeMap;
use std::mem::{ManuallyDrop, size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that a socket may linger.
const PERIOD_NANOSECONDS: i64 = 5_000_000;

/// Duration that counts as long: less than that period, and more than closing takes otherwise.
const LONG: Duration = Duration::from_millis(4);

/// Signal that ends the lingering. It is directed to the serving thread only, whatever else a
/// process uses it for.
const SIGNAL: i32 = libc::SIGALRM;

/// Number of closing threads above which no more descriptors are accepted: of one user, and of all.
/// One message may exceed both by the descriptors it carries.
const CLOSING_OF_USER: usize = 4;
const CLOSING_MAX: usize = 64;

/// Number of closing threads of a monitor, by user.
#[derive(Clone, Debug, Default)]
pub struct Closing(Arc<Mutex<BTreeMap<u32, usize>>>);

impl Closing {
    /// Returns whether descriptors from a user's processes may be accepted: not while several of
    /// that user, or many of all, are still being closed.
    pub fn has_room(&self, user: u32) -> bool {
        let counts = self.counts();
        let of_user = counts.get(&user).copied().unwrap_or_default();
        of_user < CLOSING_OF_USER && counts.values().sum::<usize>() < CLOSING_MAX
    }

    /// Counts one more for a user, until the result is dropped.
    fn count(&self, user: u32) -> Counted {
        *self.counts().entry(user).or_default() += 1;
        Counted { all: self.clone(), user }
    }

    /// No code panics while it holds the lock; the counts would stay right even then.
    fn counts(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A descriptor being closed, counted for its user.
struct Counted {
    all: Closing,
    user: u32,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.all.counts();
        if let Some(count) = counts.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.user);
            }
        }
    }
}

/// A timer that interrupts blocking calls of its thread while it is wound up.
pub struct Waker {
    timer: libc::timer_t,
}

impl Waker {
    /// Creates a waker for the calling thread.
    ///
    /// # Errors
    /// [`Error::System`] if no timer can be created.
    pub fn new() -> Result<Self, Error> {
        extern "C" fn nothing(_: i32) {}
        let mut timer = std::ptr::null_mut();
        // SAFETY: all zero is a value of this structure: no flags, and no handler.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        // SAFETY: the structure outlives the call. The handler does nothing, and without flags
        // interrupted calls are not restarted.
        unsafe { libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) };
        // The parent process may have blocked the signal.
        // SAFETY: all zero is a value of this structure: the empty set.
        let mut signals: libc::sigset_t = unsafe { zeroed() };
        // SAFETY: the set is initialised.
        unsafe { libc::sigaddset(&mut signals, SIGNAL) };
        // SAFETY: the set is initialised, and outlives the call.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &signals, std::ptr::null_mut()) };
        // SAFETY: all zero is a value of this structure.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        // SAFETY: no memory is passed, and it cannot fail.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        // SAFETY: the event and the place for the timer outlive the call.
        let result = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) };
        if result == 0 { Ok(Self { timer }) } else { Err(Error::system("timer_create")) }
    }

    /// Starts the periodic interrupts.
    pub fn wind_up(&self) {
        self.set(PERIOD_NANOSECONDS);
    }

    /// Stops the interrupts, so that the thread can wait.
    pub fn stop(&self) {
        self.set(0);
    }

    fn set(&self, nanoseconds: i64) {
        let period = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the timer is ours, and the structure outlives the call.
        unsafe { libc::timer_settime(self.timer, 0, &times, std::ptr::null_mut()) };
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and is not used again.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// A descriptor received from a member.
#[derive(Debug)]
pub struct Shown {
    descriptor: ManuallyDrop<OwnedFd>,
    /// User of the process that sent it.
    user: u32,
    closing: Closing,
}

impl Shown {
    /// Wraps a descriptor sent by a process of that user, and counts it while it is being closed.
    pub fn new(descriptor: OwnedFd, user: u32, closing: &Closing) -> Self {
        Self { descriptor: ManuallyDrop::new(descriptor), user, closing: closing.clone() }
    }

    /// Whether it is a socket of any kind.
    pub fn is_socket(&self) -> bool {
        is_socket(self.as_fd())
    }

    /// Closes it. Returns whether the sender made that take long.
    pub fn close(self) -> bool {
        let lingers = lingers(self.as_fd());
        let before = Instant::now();
        drop(self);
        lingers && before.elapsed() >= LONG
    }
}

impl AsFd for Shown {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // SAFETY: it is not used after this.
        let descriptor = unsafe { ManuallyDrop::take(&mut self.descriptor) };
        if is_socket(descriptor.as_fd()) {
            return drop(descriptor);
        }
        // Counted until the thread ends. If no thread can be started, the closure is dropped with
        // its captures, which closes the descriptor here.
        let counted = self.closing.count(self.user);
        let begin = thread::Builder::new().name("closing".into());
        let _ = begin.spawn(move || {
            drop(descriptor);
            drop(counted);
        });
    }
}

fn is_socket(descriptor: BorrowedFd<'_>) -> bool {
    option::<i32>(descriptor, libc::SO_TYPE).is_some()
}

fn lingers(socket: BorrowedFd<'_>) -> bool {
    option::<libc::linger>(socket, libc::SO_LINGER)
        .is_some_and(|it| it.l_onoff != 0 && it.l_linger != 0)
}

/// Reads an option that every socket has and nothing else has; `T` consists of numbers only.
fn option<T: Copy>(socket: BorrowedFd<'_>, name: i32) -> Option<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the type consists of numbers only, so zero is a value of it.
    let mut value: T = unsafe { zeroed() };
    let place = (&raw mut value).cast();
    let number = socket.as_raw_fd();
    // SAFETY: `length` is the size of `value`, and any bytes are a value of its type.
    let result = unsafe { libc::getsockopt(number, libc::SOL_SOCKET, name, place, &mut length) };
    (result == 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    fn shown(descriptor: impl Into<OwnedFd>) -> Shown {
        Shown::new(descriptor.into(), 0, &Closing::default())
    }

    #[test]
    fn what_is_no_socket_is_closed_elsewhere() {
        let mut ends = [0; 2];
        // SAFETY: there is room for two descriptors.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        // SAFETY: both descriptors are new and have no other owner.
        let owned = |end| unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(end) };
        let [mut from, to] = ends.map(owned).map(Some);
        drop(to.map(shown));
        let mut from = std::fs::File::from(from.take().unwrap());
        assert_eq!(from.read(&mut [0]).unwrap(), 0, "the other end is closed, now or soon");
        let (here, there) = UnixStream::pair().unwrap();
        assert!(!shown(there).close());
        assert_eq!((&here).read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_user_whose_descriptors_take_long_to_close_gives_no_more() {
        let (closing, slow, others) = (Closing::default(), 1000, 1001);
        let mut counted: Vec<_> = (1..CLOSING_OF_USER).map(|_| closing.count(slow)).collect();
        assert!(closing.has_room(slow));
        counted.push(closing.count(slow));
        assert!(!closing.has_room(slow) && closing.has_room(others));
        counted.pop();
        assert!(closing.has_room(slow));
        counted.extend((0..CLOSING_MAX as u32).map(|user| closing.count(2000 + user)));
        assert!(!closing.has_room(others));
        drop(counted);
        assert!(closing.has_room(others) && closing.counts().is_empty());
    }

    #[test]
    fn a_socket_that_lingers_is_closed_soon() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        fill_and_linger(&client);
        let waker = Waker::new().unwrap();
        waker.wind_up();
        // Without the waker this would take a thousand seconds.
        assert!(shown(client).close());
        waker.stop();
    }

    fn fill_and_linger(client: &TcpStream) {
        client.set_nonblocking(true).unwrap();
        while std::io::Write::write(&mut &*client, &[7; 65536]).is_ok() {}
        let linger = libc::linger { l_onoff: 1, l_linger: 1000 };
        // SAFETY: the structure outlives the call.
        let result = unsafe {
            let length = size_of::<libc::linger>() as libc::socklen_t;
            let (level, name) = (libc::SOL_SOCKET, libc::SO_LINGER);
            libc::setsockopt(client.as_raw_fd(), level, name, (&raw const linger).cast(), length)
        };
        assert_eq!(result, 0);
    }
}
