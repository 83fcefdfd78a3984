// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arrays whose slots may be empty: of devices, processors, sockets, programs, maps and event
//! buffers. The value of a slot is what the map's user wrote. Effects of flags and errors differ by
//! kind, as in the kernel.

use super::ErrorNumber;
use super::flags::{ANY, EXIST, NOEXIST, check};

/// Contents of slots, as far as they matter for an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    /// Numbers of devices; 0 empties the slot.
    Devices,
    /// Queue lengths of processors; 0 empties the slot.
    Processors,
    /// AF_XDP sockets.
    Sockets,
    /// Objects that user space names by file descriptors: programs, maps, event buffers.
    Descriptors,
}

/// Maximum queue length of a processor in a cpumap.
const QUEUE_MAX: u32 = 16_384;

/// The slots of a map, and which of them are set.
pub(crate) struct Slots {
    holds: Holds,
    is_set: Vec<bool>,
}

impl Slots {
    /// Creates `count` empty slots.
    pub fn new(holds: Holds, count: u32) -> Self {
        Self { holds, is_set: vec![false; count as usize] }
    }

    /// Returns the slot of `key`, if it is set.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        self.place(key).filter(|&place| self.is_set[place as usize])
    }

    /// Sets the slot of `key` to `value`, or empties it if the value means that. Returns the slot
    /// to be written.
    ///
    /// # Errors
    /// The kernel's errors for this kind.
    pub fn update(&mut self, key: &[u8], value: &[u8], flags: u64) -> Result<u32, ErrorNumber> {
        let first = number(value.get(..4).unwrap_or_default()).ok_or(ErrorNumber::EINVAL)?;
        if flags > EXIST || (self.holds == Holds::Descriptors && flags != ANY) {
            return Err(ErrorNumber::EINVAL);
        }
        let place = self.place(key).ok_or(ErrorNumber::E2BIG)?;
        match self.holds {
            Holds::Devices | Holds::Processors if flags == NOEXIST => {
                return Err(ErrorNumber::EEXIST);
            }
            Holds::Processors if first > QUEUE_MAX => return Err(ErrorNumber::EOVERFLOW),
            Holds::Sockets => check(flags, self.is_set[place as usize])?,
            _ => {}
        }
        let empties = matches!(self.holds, Holds::Devices | Holds::Processors) && first == 0;
        self.is_set[place as usize] = !empties;
        Ok(place)
    }

    /// Empties the slot of `key`.
    ///
    /// # Errors
    /// The kernel's errors for this kind.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), ErrorNumber> {
        let is_descriptor = self.holds == Holds::Descriptors;
        let beyond = if is_descriptor { ErrorNumber::E2BIG } else { ErrorNumber::EINVAL };
        let place = self.place(key).ok_or(beyond)?;
        let was_set = std::mem::take(&mut self.is_set[place as usize]);
        if is_descriptor && !was_set { Err(ErrorNumber::ENOENT) } else { Ok(()) }
    }

    /// Returns the first slot from `from` on that is set.
    pub fn next_set(&self, from: u32) -> Option<u32> {
        (from..self.is_set.len() as u32).find(|&place| self.is_set[place as usize])
    }

    fn place(&self, key: &[u8]) -> Option<u32> {
        number(key).filter(|&place| (place as usize) < self.is_set.len())
    }
}

/// Returns a 32-bit number in the machine's byte order.
pub(crate) fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().map(u32::from_ne_bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u32) -> [u8; 4] {
        number.to_ne_bytes()
    }

    #[test]
    fn devices_are_set_and_emptied_as_in_the_kernel() {
        let mut slots = Slots::new(Holds::Devices, 4);
        assert_eq!(slots.update(&bytes(3), &bytes(7), ANY), Ok(3));
        assert_eq!(slots.find(&bytes(3)), Some(3));
        assert_eq!(slots.update(&bytes(3), &bytes(7), NOEXIST), Err(ErrorNumber::EEXIST));
        assert_eq!(slots.update(&bytes(4), &bytes(7), ANY), Err(ErrorNumber::E2BIG));
        assert_eq!(slots.update(&bytes(3), &bytes(7), 3), Err(ErrorNumber::EINVAL));
        assert_eq!(slots.update(&bytes(3), &bytes(0), ANY), Ok(3), "no device");
        assert_eq!(slots.find(&bytes(3)), None);
        assert_eq!(slots.delete(&bytes(3)), Ok(()), "also an empty place");
        assert_eq!(slots.delete(&bytes(4)), Err(ErrorNumber::EINVAL));
    }

    #[test]
    fn queues_of_processors_have_a_longest() {
        let mut slots = Slots::new(Holds::Processors, 1);
        assert_eq!(slots.update(&bytes(0), &bytes(16_385), ANY), Err(ErrorNumber::EOVERFLOW));
        assert_eq!(slots.update(&bytes(0), &bytes(16_384), ANY), Ok(0));
    }

    #[test]
    fn sockets_follow_the_flags_and_descriptors_have_none() {
        let mut sockets = Slots::new(Holds::Sockets, 2);
        assert_eq!(sockets.update(&bytes(1), &bytes(0), EXIST), Err(ErrorNumber::ENOENT));
        assert_eq!(sockets.update(&bytes(1), &bytes(0), NOEXIST), Ok(1));
        assert_eq!(sockets.update(&bytes(1), &bytes(0), NOEXIST), Err(ErrorNumber::EEXIST));
        assert_eq!((sockets.next_set(0), sockets.next_set(2)), (Some(1), None));
        let mut programs = Slots::new(Holds::Descriptors, 2);
        assert_eq!(programs.update(&bytes(1), &bytes(0), EXIST), Err(ErrorNumber::EINVAL));
        assert_eq!(programs.delete(&bytes(1)), Err(ErrorNumber::ENOENT));
        assert_eq!(programs.delete(&bytes(2)), Err(ErrorNumber::E2BIG));
    }
}
