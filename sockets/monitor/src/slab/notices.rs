// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Notices of the monitor about the connections of a slab, in memory that only it can write: the
//! file is sealed against writing, except through the mapping made before.

use super::sealed;
use crate::Error;
use freeport_sockets_proto::slab::{NOTICES_BYTES, Side, notice};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The notices of a slab.
pub struct Notices {
    /// For members that have not received it yet.
    file: Option<Arc<File>>,
    start: *mut u8,
}

// SAFETY: the mapping is not bound to a thread, and its words are accessed only as atomics.
unsafe impl Send for Notices {}

impl Notices {
    /// Creates empty notices.
    ///
    /// # Errors
    /// [`Error::System`]: no memory, no descriptor, or a kernel before 5.1, which lacks the seal.
    pub fn new() -> Result<Self, Error> {
        let file = sealed::memory(c"freeport-notices", NOTICES_BYTES)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (none, descriptor) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: the kernel chooses the address.
        let start =
            unsafe { libc::mmap(none, NOTICES_BYTES, protection, libc::MAP_SHARED, descriptor, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::system("mapping notices"));
        }
        let notices = Self { file: Some(Arc::new(file)), start: start.cast() };
        if let Some(file) = &notices.file {
            sealed::seal(file, libc::F_SEAL_FUTURE_WRITE)?;
        }
        Ok(notices)
    }

    /// Returns the file that members map, until it is [dropped](Self::forget_file).
    pub fn file(&self) -> Option<Arc<File>> {
        self.file.clone()
    }

    /// Closes the file: all members that need it have it.
    pub fn forget_file(&mut self) {
        self.file = None;
    }

    /// Sets flags for a side of a slot.
    pub fn say(&self, slot: u32, side: Side, flags: u64) {
        self.word(slot, side).fetch_or(flags, Ordering::SeqCst);
    }

    /// Clears the flags of a slot.
    pub fn clear(&self, slot: u32) {
        for side in [Side::First, Side::Second] {
            self.word(slot, side).store(0, Ordering::SeqCst);
        }
    }

    fn word(&self, slot: u32, side: Side) -> &AtomicU64 {
        let at = notice(slot, side).expect("a slab has slots of that number");
        // SAFETY: notices are inside the mapping.
        let place = unsafe { self.start.add(at) };
        // SAFETY: the word is aligned, and mapped until this is dropped; the seal prevents
        // truncation. All processes that map it access it only as an atomic.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no word is used any more.
        unsafe { libc::munmap(self.start.cast(), NOTICES_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn who_has_the_file_can_only_read_it() {
        let notices = Notices::new().unwrap();
        notices.say(63, Side::Second, 6);
        let (file, at) = (notices.file().unwrap(), notice(63, Side::Second).unwrap() as u64);
        let read = || {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, at).unwrap();
            u64::from_ne_bytes(word)
        };
        assert_eq!(read(), 6);
        assert!(file.write_all_at(&[1; 8], at).is_err());
        assert!(file.set_len(0).is_err());
        let map = |protection, kind| {
            let none = std::ptr::null_mut();
            // SAFETY: the kernel chooses the address, and the mapping is not used.
            let start =
                unsafe { libc::mmap(none, NOTICES_BYTES, protection, kind, file.as_raw_fd(), 0) };
            start != libc::MAP_FAILED
        };
        assert!(!map(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED));
        assert!(map(libc::PROT_READ, libc::MAP_SHARED));
        notices.clear(63);
        assert_eq!(read(), 0);
    }
}
