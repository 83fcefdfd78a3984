// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses as a program sees them, and the one way to what they mean.
//!
//! The upper 16 bits of an address say which window it is in, the lower 48 where in it. Address 0
//! is in no window. What a window holds today (this packet, the frames in use, the records
//! reserved) is asked at each access, and nothing else can be reached.

use super::abort::{Access, Reason, Window};
use super::{Run, Stack};
use crate::abi::context;

/// Bits of an address within a window.
const WINDOW_BITS: u32 = 48;
/// `xdp_md`.
const CONTEXT: u64 = 1;
/// Frames of functions.
const STACK: u64 = 2;
/// The packet with its metadata.
const PACKET: u64 = 3;
/// Numbers of maps. There are no bytes there.
const MAPS: u64 = 4;
/// Functions of programs, by their steps. There are no bytes there.
const FUNCTIONS: u64 = 5;
/// Keys of elements that functions are called for.
const KEYS: u64 = 6;
/// The values of map 0; those of the next follow.
const FIRST_VALUES: u64 = 16;
/// Maps that have a window.
pub(crate) const MAPS_MAX: usize = 0x7000;

/// The address of the context.
pub(crate) const CONTEXT_ADDRESS: u64 = CONTEXT << WINDOW_BITS;

/// The address of a place in the stack's window.
pub(crate) fn stack_address(offset: u64) -> u64 {
    STACK << WINDOW_BITS | offset
}

/// The address of a place in the packet's window.
pub(crate) fn packet_address(offset: u64) -> u64 {
    PACKET << WINDOW_BITS | offset
}

/// What stands for a map.
pub(crate) fn map_handle(map: usize) -> u64 {
    MAPS << WINDOW_BITS | map as u64
}

/// The map that a handle stands for, if it is one.
pub(crate) fn map_of_handle(handle: u64) -> Option<usize> {
    (handle >> WINDOW_BITS == MAPS).then_some((handle & OFFSETS) as usize)
}

/// What stands for a function of the running program.
pub(crate) fn function_handle(step: usize) -> u64 {
    FUNCTIONS << WINDOW_BITS | step as u64
}

/// The step where the function begins that a handle stands for, if it is one.
pub(crate) fn function_of_handle(handle: u64) -> Option<usize> {
    (handle >> WINDOW_BITS == FUNCTIONS).then_some((handle & OFFSETS) as usize)
}

/// The address of a place in a map's window.
pub(crate) fn value_address(map: usize, offset: u64) -> u64 {
    (FIRST_VALUES + map as u64) << WINDOW_BITS | offset
}

/// The map and the place in its window that an address means, if it is in one.
pub(crate) fn value_place(address: u64) -> Option<(usize, u64)> {
    let window = (address >> WINDOW_BITS).checked_sub(FIRST_VALUES)?;
    Some((window as usize, address & OFFSETS))
}

/// The first address that is not in an address's window.
pub(crate) fn window_end(address: u64) -> u64 {
    (address | OFFSETS).saturating_add(1)
}

/// The address of the key that functions at this depth are called for.
pub(crate) fn key_address(depth: usize) -> u64 {
    KEYS << WINDOW_BITS | (depth as u64) << 32
}

const OFFSETS: u64 = (1 << WINDOW_BITS) - 1;

impl Run<'_> {
    /// `size` bytes that a program or a helper reads. None at all need no address.
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

    /// `size` bytes that a program or a helper writes.
    #[inline]
    pub(crate) fn write(&mut self, address: u64, size: usize) -> Result<&mut [u8], Reason> {
        let offset = address & OFFSETS;
        // Asked twice, because a miss is described with all that there is.
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

    /// Loads `SIZE` bytes, of the machine's order. From the context come fields as the kernel
    /// rewrites them: the addresses of the packet are whole ones.
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

    /// What is loaded seldom, and what is missed.
    #[inline(never)]
    fn load_otherwise<const SIZE: usize>(&self, address: u64) -> Result<u64, Reason> {
        if address >> WINDOW_BITS != CONTEXT {
            return self.load_plain::<SIZE>(address);
        }
        let field = self.context_field(address & OFFSETS, SIZE);
        field.ok_or_else(|| self.miss(Access::Read, address, SIZE))
    }

    /// The same from memory, where the context is none.
    #[inline]
    pub(crate) fn load_plain<const SIZE: usize>(&self, address: u64) -> Result<u64, Reason> {
        let mut word = [0; 8];
        word[..SIZE].copy_from_slice(self.read(address, SIZE)?);
        Ok(u64::from_le_bytes(word))
    }

    /// The text that begins at an address, without the zero that ends it.
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

    /// A field of `xdp_md`, read whole.
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

    /// Says what an address misses.
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
