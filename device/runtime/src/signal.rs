// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals: the messages that the manager sends to an instance, and the answers (ClickNP 3.5).

use freeport_ir::{Bits, SIGNAL_BITS, SIGNAL_PARAM_BIT, SIGNAL_WORDS};

/// A signal, or the answer to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signal {
    /// The command; the element defines its meaning.
    pub command: u32,
    /// Receiving instance, by its number in the graph.
    pub element: u32,
    /// Parameters, `LParam` in ClickNP.
    pub params: [u64; SIGNAL_WORDS],
}

impl Signal {
    /// Encodes the signal as the program sees it.
    pub fn to_bits(&self) -> Bits {
        let mut bytes = Vec::with_capacity(SIGNAL_BITS as usize / 8);
        bytes.extend(self.command.to_le_bytes());
        bytes.extend(self.element.to_le_bytes());
        bytes.extend(self.params.iter().flat_map(|param| param.to_le_bytes()));
        Bits::from_le_bytes(SIGNAL_BITS, &bytes)
    }

    /// Decodes a signal that the program made; missing bits are 0.
    pub fn from_bits(bits: &Bits) -> Self {
        let word = |at: usize| bits.extract(SIGNAL_PARAM_BIT + 64 * at as u32, 64).to_u64();
        Self {
            command: bits.extract(0, 32).to_u64() as u32,
            element: bits.extract(32, 32).to_u64() as u32,
            params: std::array::from_fn(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_laid_out_as_the_contract_says() {
        let params = [1, u64::MAX, 3, 4, 5, 6, 0x0123_4567_89ab_cdef];
        let signal = Signal { command: 0xdead_beef, element: 7, params };
        let bits = signal.to_bits();
        assert_eq!(bits.extract(0, 64).to_u64(), 7 << 32 | 0xdead_beef);
        assert_eq!(bits.extract(448, 64).to_u64(), params[6]);
        assert_eq!(Signal::from_bits(&bits), signal);
    }
}
