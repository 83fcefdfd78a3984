// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts redirection: to a device, or by the entry of a map.

use super::held::State;
use super::{Lifter, NotLiftable};
use crate::abi::verdict;
use crate::object::MapKind;
use freeport_ir::{Op, Type, ValueId};

/// Bits of the flags with the verdict for a key that the map does not have.
const VERDICT_FLAGS: u64 = 3;

impl Lifter<'_> {
    pub fn redirect(&mut self, state: &State) -> Result<ValueId, NotLiftable> {
        if self.always(2) != Some(0) {
            return self.refuse("it redirects with flags");
        }
        let device = self.number(state.get(1))?;
        let device = self.builder.resize(device, 32, false);
        self.set_target(device);
        Ok(self.word(verdict::REDIRECT.into()))
    }

    pub fn redirect_by_map(&mut self, state: &State) -> Result<ValueId, NotLiftable> {
        let (table, map) = self.table(state)?;
        let (kind, value_bits) = (map.kind, map.value_size * 8);
        if !matches!(kind, MapKind::Devmap | MapKind::DevmapHash) {
            return self.refuse(format!("it redirects by a {kind}"));
        }
        let Some(flags) = self.always(3).filter(|flags| flags & !VERDICT_FLAGS == 0) else {
            return self
                .refuse("it redirects to several devices, or with flags that are not constant");
        };
        let key = self.number(state.get(2))?;
        let key = self.builder.resize(key, 32, false);
        let found = self.found(table, key);
        let exists = self.is_valid(found);
        let none = self.builder.number(32, 0);
        let (ends, device) = self.only_if(exists, none);
        let load = Op::RefLoad { reference: found, width: value_bits.min(32) };
        let number = self.builder.push(load, Type::Bits(value_bits.min(32)));
        let number = self.builder.resize(number, 32, false);
        self.end_if(ends, number);
        self.set_target(device);
        let (redirected, otherwise) = (self.word(verdict::REDIRECT.into()), self.word(flags));
        Ok(self.select(exists, redirected, otherwise))
    }

    fn set_target(&mut self, device: ValueId) {
        let zero = self.builder.number(32, 0);
        self.builder.store(self.target, zero, 0, device);
    }
}
