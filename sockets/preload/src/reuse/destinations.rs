// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where this process connects to, and how often.

use super::Rate;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many are remembered.
const DESTINATIONS: usize = 16;

/// An address as it is compared: what a program may leave undefined in it is not part of it.
pub type Address = [u64; 4];

struct Destination {
    address: [AtomicU64; 4],
    rate: Rate,
}

static TABLE: [Destination; DESTINATIONS] =
    [const { Destination { address: [const { AtomicU64::new(0) }; 4], rate: Rate::new() } };
        DESTINATIONS];
/// Which is forgotten next.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The address of so many bytes that a program gives; `None`: it is none of IPv4 or IPv6.
///
/// # Safety
/// The bytes are there, or `bytes` is less than any address has.
pub unsafe fn address(at: *const libc::sockaddr, bytes: libc::socklen_t) -> Option<Address> {
    if at.is_null() || (bytes as usize) < size_of::<libc::sockaddr_in>() {
        return None;
    }
    // SAFETY: there are as many bytes, as the caller says; so it is below.
    let family = i32::from(unsafe { (&raw const (*at).sa_family).read_unaligned() });
    let word = |low: u16, high: u16, rest: u32| {
        u64::from(low) | u64::from(high) << 16 | u64::from(rest) << 32
    };
    match family {
        libc::AF_INET => {
            // SAFETY: as above.
            let it = unsafe { at.cast::<libc::sockaddr_in>().read_unaligned() };
            Some([word(it.sin_family, it.sin_port, it.sin_addr.s_addr), 0, 0, 0])
        }
        libc::AF_INET6 if bytes as usize >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let it = unsafe { at.cast::<libc::sockaddr_in6>().read_unaligned() };
            let host = u128::from_ne_bytes(it.sin6_addr.s6_addr);
            let first = word(it.sin6_family, it.sin6_port, it.sin6_flowinfo);
            Some([first, host as u64, (host >> 64) as u64, u64::from(it.sin6_scope_id)])
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

/// Notes that it was connected to, and gives its number. `None`: that is not often.
pub fn counts(address: &Address, is_kept: impl Fn(u32) -> bool) -> Option<u32> {
    let number = find(address).or_else(|| remember(address, is_kept))?;
    let place = TABLE.get(number as usize)?;
    place.rate.counts().then_some(number)
}

/// Remembers one more, in the place of one for which no stream is kept.
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
