// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The addresses that this process connects to, and how often.

use super::Rate;
use crate::kernel::raw;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Number of addresses that are remembered.
const DESTINATIONS: usize = 16;

/// An address for comparison, without the parts that a program may leave undefined.
pub type Address = [u64; 4];

struct Destination {
    address: [AtomicU64; 4],
    rate: Rate,
}

static TABLE: [Destination; DESTINATIONS] =
    [const { Destination { address: [const { AtomicU64::new(0) }; 4], rate: Rate::new() } };
        DESTINATIONS];
/// The place that is reused next.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The address that a program passes; `None`: it cannot be read, or is not of IPv4 or IPv6. The
/// kernel copies it, since it checks the program's memory.
pub fn address(at: *const libc::sockaddr, bytes: libc::socklen_t) -> Option<Address> {
    let mut room = [0_u8; size_of::<libc::sockaddr_in6>()];
    let room = room.get_mut(..(bytes as usize).min(size_of::<libc::sockaddr_in6>()))?;
    if room.len() < size_of::<libc::sockaddr_in>()
        || raw::copy_of_own(at.cast(), room) != Ok(room.len())
    {
        return None;
    }
    let half = |at: usize| Some(u16::from_ne_bytes(*room.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u64::from_ne_bytes(*room.get(at..)?.first_chunk()?));
    match i32::from(half(0)?) {
        // The family, the port and the host; for IPv6 also the flow and the scope.
        libc::AF_INET => Some([word(0)?, 0, 0, 0]),
        libc::AF_INET6 => {
            let scope = u32::from_ne_bytes(*room.get(24..)?.first_chunk()?);
            Some([word(0)?, word(8)?, word(16)?, u64::from(scope)])
        }
        _ => None,
    }
}

fn is(place: &Destination, address: &Address) -> bool {
    place.address.iter().zip(address).all(|(one, other)| one.load(Ordering::Relaxed) == *other)
}

/// The number of a destination, if it is remembered.
pub fn find(address: &Address) -> Option<u32> {
    TABLE.iter().position(|place| is(place, address)).map(|at| at as u32)
}

/// Counts a connection to an address, and returns its number. `None`: the rate is too low.
pub fn counts(address: &Address, is_kept: impl Fn(u32) -> bool) -> Option<u32> {
    let number = find(address).or_else(|| remember(address, is_kept))?;
    let place = TABLE.get(number as usize)?;
    place.rate.counts().then_some(number)
}

/// Remembers an address, in a place for which no stream is kept.
#[cold]
fn remember(address: &Address, is_kept: impl Fn(u32) -> bool) -> Option<u32> {
    for _ in 0..DESTINATIONS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % DESTINATIONS as u32;
        let place = TABLE.get(number as usize).filter(|_| !is_kept(number));
        let Some(place) = place else { continue };
        place.rate.forget();
        for (word, value) in place.address.iter().zip(address) {
            word.store(*value, Ordering::Relaxed);
        }
        return Some(number);
    }
    None
}
