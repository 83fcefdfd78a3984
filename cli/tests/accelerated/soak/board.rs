// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of clients, in shared memory that outlives them, and a file of events, one per line.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of desks, the first of which belongs to the test.
const DESKS: usize = 256;
const DESK_BYTES: usize = 128;

/// Words of a desk, as in `programs/soak/client.c`.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// Changes with every event. On the desk of the test: whether to rest.
    Steps = 0,
    State = 1,
    /// Process ID of the peer.
    Peer = 2,
    /// Time of the last change, in milliseconds.
    Since = 3,
    /// Number of the server, from 1.
    Server = 4,
    /// Number of connections that ended normally, and of those that the end of the server cut.
    Talks = 5,
    Cuts = 6,
    /// Number of connections that were accelerated at their end.
    Past = 7,
    Bytes = 8,
    Pid = 9,
}

/// Activity of a client.
pub mod state {
    pub const BEGINS: u64 = 1;
    pub const CONNECTS: u64 = 2;
    pub const TALKS: u64 = 3;
    pub const IDLES: u64 = 4;
    pub const RESTS: u64 = 6;
}

/// All desks.
pub struct Board {
    start: *mut u8,
    events: File,
}

// SAFETY: the memory is accessed only by atomics.
unsafe impl Sync for Board {}

impl Board {
    /// Creates a board in a folder.
    pub fn make(folder: &Path) -> Self {
        for (name, bytes) in [("board", DESKS * DESK_BYTES), ("events", 0)] {
            let file = File::create(folder.join(name)).expect("it can be made");
            file.set_len(bytes as u64).expect("it can be of any length");
            // Workers of servers may run as another user.
            let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            file.set_permissions(all).expect("it is ours");
        }
        Self::open(folder)
    }

    /// Opens the board of a folder.
    pub fn open(folder: &Path) -> Self {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(folder.join("board")).expect("it is there");
        let events = OpenOptions::new().read(true).append(true).open(folder.join("events"));
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the mapping has the size of the file.
        let start = unsafe {
            let (flags, bytes) = (libc::MAP_SHARED, DESKS * DESK_BYTES);
            libc::mmap(ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        Self { start: start.cast(), events: events.expect("they are there") }
    }

    pub fn word(&self, desk: usize, word: Word) -> &AtomicU64 {
        assert!(desk < DESKS);
        // SAFETY: the memory has `DESKS` desks, each with room for all words.
        let place = unsafe { self.start.add(desk * DESK_BYTES + 8 * word as usize) };
        // SAFETY: the word is aligned, and the memory stays mapped.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    pub fn get(&self, desk: usize, word: Word) -> u64 {
        self.word(desk, word).load(Ordering::Relaxed)
    }

    pub fn set(&self, desk: usize, word: Word, value: u64) {
        self.word(desk, word).store(value, Ordering::Relaxed);
    }

    pub fn add(&self, desk: usize, word: Word, by: u64) {
        self.word(desk, word).fetch_add(by, Ordering::Relaxed);
    }

    /// The sum of a word over all clients.
    pub fn sum(&self, word: Word) -> u64 {
        (1..DESKS).map(|desk| self.get(desk, word)).sum()
    }

    /// Requests all clients to rest, or to continue.
    pub fn rest(&self, is_rest: bool) {
        self.set(0, Word::Steps, u64::from(is_rest));
    }

    pub fn has_to_rest(&self) -> bool {
        self.get(0, Word::Steps) != 0
    }

    /// Appends an event.
    pub fn tell(&self, line: &str) {
        (&self.events).write_all(format!("{line}\n").as_bytes()).expect("it can be written");
    }

    /// Events since the last call.
    pub fn reported(&self) -> String {
        let mut text = String::new();
        (&self.events).read_to_string(&mut text).expect("it can be read");
        text
    }
}

/// Milliseconds of the monotonic clock, which all processes share.
pub fn now_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
