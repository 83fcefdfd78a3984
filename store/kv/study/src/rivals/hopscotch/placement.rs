// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where entries of the hopscotch table are put: into their neighbourhood, by moving other entries
//! if need be, or into a chain; and how a deletion takes an entry back from the chain.

use super::{HOME, Hopscotch, NEAR_BUCKETS, NEXT, Read, Walk, bucket_pointer};
use crate::access::Cause;
use crate::rivals::bucket::{Bucket, Entry};

impl Hopscotch {
    /// Puts an entry into its neighbourhood, if a slot there is free or can be freed.
    pub(super) fn place_near(&mut self, walk: &Walk, home: u64, entry: Entry) -> bool {
        let own = &walk.reads[..=NEXT];
        if let Some(read) = own.iter().find(|read| read.contents.free_slot().is_some()) {
            return self.place(*read, entry);
        }
        let mut near = own.to_vec();
        while near[near.len() - 1].contents.free_slot().is_none() {
            let distance = near.len() as u64;
            if distance >= NEAR_BUCKETS.min(self.buckets) {
                return false;
            }
            near.push(self.read(home + distance));
        }
        let Some(moves) = self.moves(&near, home) else {
            return false;
        };
        for (at, from) in (NEXT..near.len() - 1).zip(moves).rev() {
            let moving = near[at].contents.entry(from);
            let to = near[at + 1].contents.free_slot().expect("the free slot came this far");
            near[at + 1].contents.set(to, moving);
            near[at].contents.set(from, None);
            self.write(&near[at + 1]);
        }
        self.place(near[NEXT], entry)
    }

    /// Slots whose entries can move to the next bucket, for each bucket between the neighbour and
    /// the last one of `near`; `None` if a bucket has no such entry.
    fn moves(&self, near: &[Read], home: u64) -> Option<Vec<usize>> {
        (NEXT..near.len() - 1)
            .map(|at| {
                let bucket = (home + at as u64) % self.buckets;
                let mut entries = near[at].contents.entries();
                entries.find(|(_, entry)| self.home(entry.key()) == bucket).map(|(slot, _)| slot)
            })
            .collect()
    }

    /// Writes a bucket with one more entry.
    fn place(&mut self, mut read: Read, entry: Entry) -> bool {
        let slot = read.contents.free_slot().expect("the bucket has a free slot");
        read.contents.set(slot, Some(entry));
        self.write(&read);
        true
    }

    /// Puts an entry into the chain of its home bucket, which was read to its end.
    pub(super) fn place_in_chain(&mut self, walk: &Walk, entry: Entry) -> bool {
        let chain = &walk.reads[NEXT + 1..];
        if let Some(read) = chain.iter().find(|read| read.contents.free_slot().is_some()) {
            return self.place(*read, entry);
        }
        let Some(block) = self.memory.allocate_bucket() else {
            return false;
        };
        let mut contents = Bucket::EMPTY;
        contents.set(0, Some(entry));
        self.write(&Read { address: block.address(), cause: Cause::Chain, contents });
        let mut before = *chain.last().unwrap_or(&walk.reads[HOME]);
        before.contents.set_next(block.unit);
        self.write(&before);
        true
    }

    /// Fills a slot of the neighbourhood, which a deletion freed, from the chain of `home`.
    fn fill_from_chain(&mut self, mut freed: Read, slot: usize, home: Read) {
        let mut chained = self.read_chained(home.contents.next());
        let last = chained.contents.entries().next_back();
        let (from, entry) = last.expect("chained buckets are not empty");
        freed.contents.set(slot, Some(entry));
        chained.contents.set(from, None);
        // The home bucket may be the one whose slot was freed: then both changes are one write.
        let mut before = if home.address == freed.address { freed } else { home };
        let is_linked = self.shorten_chain(&mut before, &chained);
        if home.address != freed.address || is_linked {
            self.write(&freed);
        }
    }

    /// Writes a chained bucket after a removal; if it is empty, unlinks it from `before` instead.
    /// Returns whether it is still linked.
    fn shorten_chain(&mut self, before: &mut Read, chained: &Read) -> bool {
        if !chained.contents.is_empty() {
            self.write(chained);
            return true;
        }
        let unit = before.contents.next();
        before.contents.set_next(chained.contents.next());
        self.write(before);
        self.memory.free(bucket_pointer(unit));
        false
    }

    /// Removes the entry that a lookup found in a slot of the last bucket it read.
    pub(super) fn remove(&mut self, walk: &mut Walk, slot: usize) {
        let at = walk.reads.len() - 1;
        let mut read = walk.reads[at];
        read.contents.set(slot, None);
        if at > NEXT {
            let mut before = walk.reads[if at == NEXT + 1 { HOME } else { at - 1 }];
            self.shorten_chain(&mut before, &read);
        } else if walk.reads[HOME].contents.next() != 0 {
            self.fill_from_chain(read, slot, walk.reads[HOME]);
        } else {
            self.write(&read);
        }
    }
}
