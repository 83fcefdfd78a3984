// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses of a program, and their translation to memory.
//!
//! The upper 16 bits of an address select a window, the lower 48 are the offset in it. Address 0 is
//! in no window. Each access is checked against the current contents of its window (this packet,
//! the active frames, the reserved records), and nothing else can be reached.

use super::abort::{Access, Reason, Window};
use super::{Run, Stack};
use crate::abi::context;

/// Bits of an address within a window.
const WINDOW_BITS: u32 = 48;
/// Window of the context, `xdp_md`.
const CONTEXT: u64 = 1;
/// Window of stack frames.
const STACK: u64 = 2;
/// Window of the packet with its metadata.
const PACKET: u64 = 3;
/// Window of map handles; it has no memory.
const MAPS: u64 = 4;
/// Window of function handles, by their steps; it has no memory.
const FUNCTIONS: u64 = 5;
/// Window of the keys of elements for which functions are called.
const KEYS: u64 = 6;
/// Window of the values of map 0; those of the next maps follow.
const FIRST_VALUES: u64 = 16;
/// Maximum number of maps with a window.
pub(crate) const MAPS_MAX: usize = 0x7000;

/// The address of the context.
pub(crate) const CONTEXT_ADDRESS: u64 = CONTEXT << WINDOW_BITS;

/// Returns the address at an offset of the stack's window.
pub(crate) fn stack_address(offset: u64) -> u64 {
    STACK << WINDOW_BITS | offset
}

/// Returns the address at an offset of the packet's window.
pub(crate) fn packet_address(offset: u64) -> u64 {
    PACKET << WINDOW_BITS | offset
}

/// Returns the handle of a map.
pub(crate) fn map_handle(map: usize) -> u64 {
    MAPS << WINDOW_BITS | map as u64
}

/// Returns the map of a handle, if it is one.
pub(crate) fn map_of_handle(handle: u64) -> Option<usize> {
    (handle >> WINDOW_BITS == MAPS).then_some((handle & OFFSETS) as usize)
}

/// Returns the handle of a function of the running program.
pub(crate) fn function_handle(step: usize) -> u64 {
    FUNCTIONS << WINDOW_BITS | step as u64
}

/// Returns the first step of the function of a handle, if it is one.
pub(crate) fn function_of_handle(handle: u64) -> Option<usize> {
    (handle >> WINDOW_BITS == FUNCTIONS).then_some((handle & OFFSETS) as usize)
}

/// Returns the address at an offset of a map's window.
pub(crate) fn value_address(map: usize, offset: u64) -> u64 {
    (FIRST_VALUES + map as u64) << WINDOW_BITS | offset
}

/// Returns map and offset of an address, if it is in a map's window.
pub(crate) fn value_place(address: u64) -> Option<(usize, u64)> {
    let window = (address >> WINDOW_BITS).checked_sub(FIRST_VALUES)?;
    Some((window as usize, address & OFFSETS))
}

/// Returns the end of an address's window.
pub(crate) fn window_end(address: u64) -> u64 {
    (address | OFFSETS).saturating_add(1)
}

/// Returns the address of the key for which functions at this depth are called.
pub(crate) fn key_address(depth: usize) -> u64 {
    KEYS << WINDOW_BITS | (depth as u64) << 32
}

const OFFSETS: u64 = (1 << WINDOW_BITS) - 1;

impl Run<'_> {
    /// Returns `size` bytes that a program or a helper reads. Zero bytes need no valid address.
    #[inline]
    pub(crate) fn read(&self, address: u64, size: usize) -> Result<&[u8], Reason> {
        let offset = address & OFFSETS;
        let bytes = match address >> WINDOW_BITS {
            _ if size == 0 => Some(&[][..]),
            PACKET => self.packet.at(offset, size),
            STACK => self.stack.at(offset, size),
            KEYS => {
                let key = self.keys.get((offset >> 32) as usize);
                let start = offset as u32 as usize;
                key.and_then(|key| key.get(start..start.checked_add(size)?))
            }
            window => {
                let map = self.maps.get(window.wrapping_sub(FIRST_VALUES) as usize);
                map.and_then(|map| map.bytes(offset, size))
            }
        };
        match bytes {
            Some(bytes) => Ok(bytes),
            None => Err(self.miss(Access::Read, address, size)),
        }
    }

    /// Returns `size` bytes that a program or a helper writes.
    #[inline]
    pub(crate) fn write(&mut self, address: u64, size: usize) -> Result<&mut [u8], Reason> {
        let offset = address & OFFSETS;
        // The bounds are checked separately, because the description of a miss borrows everything.
        let is_inside = match address >> WINDOW_BITS {
            _ if size == 0 => return Ok(&mut []),
            PACKET => self.packet.at(offset, size).is_some(),
            STACK => self.stack.at(offset, size).is_some(),
            window => {
                let map = self.maps.get_mut(window.wrapping_sub(FIRST_VALUES) as usize);
                map.is_some_and(|map| map.bytes_mut(offset, size).is_some())
            }
        };
        if !is_inside {
            return Err(self.miss(Access::Write, address, size));
        }
        let bytes = match address >> WINDOW_BITS {
            PACKET => self.packet.at_mut(offset, size),
            STACK => self.stack.at_mut(offset, size),
            window => self.maps[(window - FIRST_VALUES) as usize].bytes_mut(offset, size),
        };
        Ok(bytes.unwrap_or_default())
    }

    /// Loads `SIZE` bytes in the machine's byte order. Fields of the context are loaded as the
    /// kernel rewrites them: packet addresses have 64 bits.
    #[inline(always)]
    pub(crate) fn load<const SIZE: usize>(&self, address: u64) -> Result<u64, Reason> {
        let offset = address & OFFSETS;
        let bytes = match address >> WINDOW_BITS {
            PACKET => self.packet.at(offset, SIZE),
            STACK => self.stack.at(offset, SIZE),
            window => {
                let map = self.maps.get(window.wrapping_sub(FIRST_VALUES) as usize);
                map.and_then(|map| map.bytes(offset, SIZE))
            }
        };
        match bytes {
            Some(bytes) => {
                let mut word = [0; 8];
                word[..SIZE].copy_from_slice(bytes);
                Ok(u64::from_le_bytes(word))
            }
            None => self.load_otherwise::<SIZE>(address),
        }
    }

    /// Handles the slow path of loads, and misses.
    #[inline(never)]
    fn load_otherwise<const SIZE: usize>(&self, address: u64) -> Result<u64, Reason> {
        if address >> WINDOW_BITS != CONTEXT {
            return self.load_plain::<SIZE>(address);
        }
        let field = self.context_field(address & OFFSETS, SIZE);
        field.ok_or_else(|| self.miss(Access::Read, address, SIZE))
    }

    /// As `load`, for memory other than the context.
    #[inline]
    pub(crate) fn load_plain<const SIZE: usize>(&self, address: u64) -> Result<u64, Reason> {
        let mut word = [0; 8];
        word[..SIZE].copy_from_slice(self.read(address, SIZE)?);
        Ok(u64::from_le_bytes(word))
    }

    /// Returns the string at an address, without the terminating zero.
    pub(crate) fn text(&self, address: u64, most: usize) -> Result<&[u8], Reason> {
        for length in 0..most {
            if self.read(address.wrapping_add(length as u64), 1)? == [0] {
                return self.read(address, length);
            }
        }
        Err(Reason::EndlessString(address))
    }

    /// Stores the low `SIZE` bytes of `value`.
    #[inline(always)]
    pub(crate) fn store<const SIZE: usize>(
        &mut self,
        address: u64,
        value: u64,
    ) -> Result<(), Reason> {
        let offset = address & OFFSETS;
        let bytes = match address >> WINDOW_BITS {
            PACKET => self.packet.at_mut(offset, SIZE),
            STACK => self.stack.at_mut(offset, SIZE),
            window => {
                let map = self.maps.get_mut(window.wrapping_sub(FIRST_VALUES) as usize);
                map.and_then(|map| map.bytes_mut(offset, SIZE))
            }
        };
        match bytes {
            Some(bytes) => bytes.copy_from_slice(&value.to_le_bytes()[..SIZE]),
            None => return Err(self.miss(Access::Write, address, SIZE)),
        }
        Ok(())
    }

    /// Returns a field of `xdp_md`, read as a whole.
    fn context_field(&self, offset: u64, size: usize) -> Option<u64> {
        if size != 4 {
            return None;
        }
        let [metadata, data, end] = self.packet.places();
        match offset {
            context::DATA => Some(packet_address(data)),
            context::DATA_END => Some(packet_address(end)),
            context::DATA_META => Some(packet_address(metadata)),
            context::INGRESS_IFINDEX => Some(self.packet.ingress_ifindex.into()),
            context::RX_QUEUE_INDEX => Some(self.packet.rx_queue_index.into()),
            context::EGRESS_IFINDEX => Some(self.packet.egress_ifindex.into()),
            _ => None,
        }
    }

    /// Describes an access that misses.
    #[cold]
    pub(crate) fn miss(&self, access: Access, address: u64, size: usize) -> Reason {
        let offset = address & OFFSETS;
        let window = match address >> WINDOW_BITS {
            CONTEXT => Window::Context,
            STACK => Window::Stack(Stack::from_frame_pointer(offset)),
            PACKET => {
                let [_, data, end] = self.packet.places();
                Window::Packet(offset as i64 - data as i64, end - data)
            }
            MAPS | FUNCTIONS => Window::Handle,
            KEYS => Window::Key,
            _ => value_place(address)
                .and_then(|(map, _)| self.maps.get(map))
                .map_or(Window::Nothing, |map| Window::Map(map.definition().name.clone())),
        };
        Reason::OutOfBounds { access, address, size: size as u64, window }
    }
}
