// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changing a decimal number: what `incr`, `decr` and `ma` have in common.

use std::io::Write;

use freeport_kv_protocol::memcached::{Arithmetic, stored_number};

use crate::item::{BINARY_KEY, Header};
use crate::items::Items;
use crate::now::Now;

/// Why a number is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchanged {
    /// There is no such key.
    NotFound,
    /// The item has another CAS number.
    Exists,
    /// The value is no number.
    NonNumeric,
    /// There is no memory for a longer number.
    NoMemory,
}

/// Digits of a number at most.
const DIGITS_MAX: usize = 20;

impl Items {
    /// Changes a number. `cas` is the number that the item must have, or 0. Returns the number with
    /// the header of the item.
    pub(crate) fn change(
        &mut self,
        key: &[u8],
        operation: Arithmetic,
        delta: u64,
        cas: u64,
        now: Now,
    ) -> Result<(u64, Header), Unchanged> {
        let changed = self.change_uncounted(key, (operation, delta), cas, now);
        let counters = &mut self.counters;
        let (hits, misses) = match operation {
            Arithmetic::Increment => (&mut counters.incr_hits, &mut counters.incr_misses),
            Arithmetic::Decrement => (&mut counters.decr_hits, &mut counters.decr_misses),
        };
        *hits += u64::from(changed.is_ok());
        *misses += u64::from(changed == Err(Unchanged::NotFound));
        changed
    }

    fn change_uncounted(
        &mut self,
        key: &[u8],
        (operation, delta): (Arithmetic, u64),
        cas: u64,
        now: Now,
    ) -> Result<(u64, Header), Unchanged> {
        let (mut header, width) = self.find(key, now).ok_or(Unchanged::NotFound)?;
        if width > 0 && cas != 0 && cas != header.cas {
            return Err(Unchanged::Exists);
        }
        let number = stored_number(self.value(key)).ok_or(Unchanged::NonNumeric)?;
        let number = match operation {
            Arithmetic::Increment => number.wrapping_add(delta),
            Arithmetic::Decrement => number.saturating_sub(delta),
        };
        let mut digits = [b' '; DIGITS_MAX];
        let mut rest = &mut digits[..];
        write!(rest, "{number}").expect("a number of 64 bits has at most 20 digits");
        let length = DIGITS_MAX - rest.len();
        (header.used_s, header.cas) = (now.0, self.next_cas());
        let padding;
        let value = if length > width {
            // The original makes a new item, without the marks of the old one.
            header.marks &= BINARY_KEY;
            self.counters.total_items += 1;
            [&digits[..length], &[]]
        } else {
            // A shorter number is padded in place.
            padding = vec![b' '; width - length];
            [&digits[..length], &padding[..]]
        };
        self.put(key, &header, value, now).map_err(|_| Unchanged::NoMemory)?;
        Ok((number, header))
    }
}
