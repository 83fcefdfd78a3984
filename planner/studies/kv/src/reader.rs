// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads of a copy of the index and of items, for searches.

use crate::entry::Entry;
use crate::layout::Layout;
use crate::lookup::Source;
use freeport_study_verbs::{Fault, Memory, Place, Verbs, Way};

/// A copy of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Index {
    /// The one in the host's memory.
    Host,
    /// One in the processor's memory, by its number.
    Soc(u64),
    /// One in the own memory of the processor.
    Own(u64),
}

/// Reads of one copy of the index and of the host's items.
pub struct Reader<'a, V> {
    /// The place that reads.
    pub verbs: &'a V,
    /// Where things are.
    pub layout: &'a Layout,
    /// The copy of the index.
    pub index: Index,
    /// The engine of accesses to the host's memory.
    pub way: Way,
}

impl<V: Verbs> Source for Reader<'_, V> {
    async fn bucket(&self, number: u64) -> Result<Vec<u8>, Fault> {
        let (layout, bytes) = (self.layout, self.layout.bucket_bytes as usize);
        match self.index {
            Index::Host => {
                let from = Place::Host.at(layout.host_bucket(number));
                self.verbs.read(from, bytes, self.way).await
            }
            Index::Soc(copy) => {
                let from = Place::Soc.at(layout.soc_bucket(number, copy));
                self.verbs.read(from, bytes, Way::Nic).await
            }
            Index::Own(copy) => {
                Ok(self.verbs.memory().load(layout.soc_bucket(number, copy), bytes))
            }
        }
    }

    async fn item(&self, entry: &Entry) -> Result<Vec<u8>, Fault> {
        self.verbs.read(Place::Host.at(entry.at), entry.bytes as usize, self.way).await
    }
}
