// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects: pieces of memory addressed by element or by byte.

use super::packet::byte_range;
use crate::{Addressing, Bits, Object};

/// Contents of one object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectMemory {
    contents: Contents,
    elem_bits: u32,
    /// Whether it was stored to since its last reset.
    is_dirty: bool,
}

#[derive(Clone, Debug)]
enum Contents {
    /// Each element occupies whole limbs.
    Limbs {
        limbs: Vec<u64>,
        stride: usize,
    },
    Bytes(Vec<u8>),
}

impl ObjectMemory {
    /// Allocates memory for `object` with its initial contents; `None` if it exceeds this machine.
    pub fn new(object: &Object) -> Option<Self> {
        let depth = usize::try_from(object.depth).ok()?;
        let contents = match object.addressing {
            Addressing::Element => {
                let stride = object.elem_bits.div_ceil(64) as usize;
                Contents::Limbs { limbs: zeros(depth.checked_mul(stride)?)?, stride }
            }
            Addressing::Byte => Contents::Bytes(zeros(depth)?),
        };
        let mut memory = Self { contents, elem_bits: object.elem_bits, is_dirty: false };
        memory.initialise(object);
        Some(memory)
    }

    /// Restores the initial contents of `object`, from which this was made.
    pub fn reset(&mut self, object: &Object) {
        if self.is_dirty {
            match &mut self.contents {
                Contents::Limbs { limbs, .. } => limbs.fill(0),
                Contents::Bytes(bytes) => bytes.fill(0),
            }
            self.initialise(object);
        }
    }

    /// Returns the number of elements.
    pub fn depth(&self) -> u64 {
        match &self.contents {
            Contents::Limbs { limbs, stride } => (limbs.len() / stride) as u64,
            Contents::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Returns the width of an element.
    pub fn elem_bits(&self) -> u32 {
        self.elem_bits
    }

    /// Loads `width` bits from bit `lo` of element `index`; `None` if there is no such element.
    pub fn load(&self, index: u64, lo: u32, width: u32) -> Option<Bits> {
        let index = usize::try_from(index).ok()?;
        match &self.contents {
            Contents::Limbs { limbs, stride: 1 } => {
                let limb = *limbs.get(index)?;
                Some(Bits::from_u64(width, limb.checked_shr(lo).unwrap_or(0)))
            }
            Contents::Limbs { limbs, stride } => {
                let element = limbs.chunks_exact(*stride).nth(index)?;
                Some(Bits::from_limbs(self.elem_bits, element).extract(lo, width))
            }
            Contents::Bytes(bytes) => {
                Some(Bits::from_u64(8, u64::from(*bytes.get(index)?)).extract(lo, width))
            }
        }
    }

    /// Loads the whole element `index`.
    pub fn element(&self, index: u64) -> Option<Bits> {
        self.load(index, 0, self.elem_bits)
    }

    /// Stores the bits of `value` that `mask` selects (all if there is none) from bit `lo` of
    /// element `index`; returns false if there is no such element.
    pub fn store(&mut self, index: u64, lo: u32, value: &Bits, mask: Option<&Bits>) -> bool {
        let Some(old) = self.element(index) else { return false };
        let value = match mask {
            Some(mask) => {
                let kept = old.extract(lo, value.width());
                let limbs = kept.limbs().iter().zip(value.limbs()).zip(mask.limbs());
                let mixed: smallvec::SmallVec<[u64; 8]> =
                    limbs.map(|((kept, new), mask)| kept & !mask | new & mask).collect();
                &Bits::from_limbs(value.width(), &mixed)
            }
            None => value,
        };
        let new = old.insert(lo, value);
        let index = index as usize;
        match &mut self.contents {
            Contents::Limbs { limbs, stride } => {
                limbs[index * *stride..][..*stride].copy_from_slice(new.limbs());
            }
            Contents::Bytes(bytes) => bytes[index] = new.to_u64() as u8,
        }
        self.is_dirty = true;
        true
    }

    /// Loads `count` bytes from `offset`; `None` if any of them is beyond the object.
    pub fn load_bytes(&self, offset: &Bits, count: u32) -> Option<Bits> {
        let Contents::Bytes(bytes) = &self.contents else { return None };
        let range = byte_range(offset, count as usize, bytes.len())?;
        Some(Bits::from_le_bytes(count * 8, &bytes[range]))
    }

    /// Stores at `offset`; returns false and stores nothing if any byte is beyond the object.
    pub fn store_bytes(&mut self, offset: &Bits, value: &Bits) -> bool {
        let Contents::Bytes(bytes) = &mut self.contents else { return false };
        let value = value.to_le_bytes();
        let Some(range) = byte_range(offset, value.len(), bytes.len()) else { return false };
        bytes[range].copy_from_slice(&value);
        self.is_dirty = true;
        true
    }

    fn initialise(&mut self, object: &Object) {
        for (index, value) in object.init.iter().enumerate() {
            self.store(index as u64, 0, &value.resize(self.elem_bits), None);
        }
        self.is_dirty = false;
    }
}

/// Allocates `length` zeros; `None` if they exceed the limit.
pub(super) fn zeros<T: Clone + Default>(length: usize) -> Option<Vec<T>> {
    const MOST_BYTES: usize = 1 << 32;
    let is_held = length.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= MOST_BYTES);
    is_held.then(|| vec![T::default(); length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lifetime, Loc, Space};

    fn object(elem_bits: u32, depth: u64, addressing: Addressing) -> Object {
        Object {
            name: "memory".into(),
            space: Space::Local,
            elem_bits,
            depth,
            addressing,
            lifetime: Lifetime::Instance,
            init: vec![],
            host_visible: true,
            is_pinned: false,
            loc: Loc::default(),
        }
    }

    fn bits(width: u32, value: u64) -> Bits {
        Bits::from_u64(width, value)
    }

    #[test]
    fn elements_of_every_width_keep_what_is_stored() {
        for width in [1, 7, 63, 64, 65, 128, 512, 1024] {
            let mut memory = ObjectMemory::new(&object(width, 3, Addressing::Element)).unwrap();
            let value = Bits::ones(width);
            assert!(memory.store(1, 0, &value, None));
            let contents = [0, 1, 2, 3].map(|index| memory.element(index));
            let zero = Some(Bits::zero(width));
            assert_eq!(contents, [zero.clone(), Some(value), zero, None]);
            assert!(!memory.store(3, 0, &Bits::ones(width), None));
        }
    }

    #[test]
    fn a_store_changes_only_its_bits() {
        for width in [32, 96] {
            let mut memory = ObjectMemory::new(&object(width, 1, Addressing::Element)).unwrap();
            memory.store(0, 0, &bits(width, 0x1234_5678), None);
            memory.store(0, 8, &bits(8, 0xff), Some(&bits(8, 0x0f)));
            assert_eq!(memory.element(0), Some(bits(width, 0x1234_5f78)));
            assert_eq!(memory.load(0, 4, 12), Some(bits(12, 0x5f7)));
        }
    }

    #[test]
    fn reset_brings_back_the_initial_contents() {
        let mut object = object(16, 3, Addressing::Element);
        object.init = vec![bits(16, 5), bits(16, 6)];
        let mut memory = ObjectMemory::new(&object).unwrap();
        for index in 0..3 {
            memory.store(index, 0, &bits(16, 0xffff), None);
        }
        memory.reset(&object);
        let contents = [0, 1, 2].map(|index| memory.element(index).unwrap().to_u64());
        assert_eq!(contents, [5, 6, 0]);
    }

    #[test]
    fn bytes_are_little_endian_and_whole_or_nothing() {
        let mut memory = ObjectMemory::new(&object(8, 8, Addressing::Byte)).unwrap();
        assert!(memory.store_bytes(&bits(8, 4), &bits(32, 0x4433_2211)));
        assert!(!memory.store_bytes(&bits(8, 5), &bits(32, u64::MAX)));
        assert_eq!(memory.load_bytes(&bits(8, 3), 3), Some(bits(24, 0x22_1100)));
        assert_eq!(memory.load_bytes(&bits(8, 6), 3), None);
        assert_eq!(memory.load_bytes(&Bits::ones(64), 1), None);
        assert_eq!(memory.element(7), Some(bits(8, 0x44)));
    }

    #[test]
    fn an_object_beyond_the_machine_is_refused() {
        assert!(ObjectMemory::new(&object(64, u64::MAX, Addressing::Element)).is_none());
    }
}
