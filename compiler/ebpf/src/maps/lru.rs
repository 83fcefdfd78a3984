// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Eviction from a full map: a key that was not looked up since the hand last passed it ("second
//! chance"). The kernel maintains lists instead, so it may evict a different key; below its
//! capacity the map is a hash table.

use super::hash::HashIndex;

/// Elements in a circle, and whether each was used since the hand passed it.
pub(crate) struct Recency {
    was_used: Vec<bool>,
    hand: u32,
}

impl Recency {
    /// Creates the state for `count` elements, at least one.
    pub fn new(count: u32) -> Self {
        Self { was_used: vec![false; count as usize], hand: 0 }
    }

    /// Records that `element` was looked up.
    pub fn touch(&mut self, element: u32) {
        self.was_used[element as usize] = true;
    }

    /// Allocates an element of `index`; if none is free, evicts a key.
    pub fn take(&mut self, index: &mut HashIndex) -> Option<u32> {
        let element = match index.take() {
            Some(element) => element,
            None => {
                let victim = self.victim(index)?;
                let key = index.key(victim).to_vec();
                index.detach(&key)?
            }
        };
        self.was_used[element as usize] = false;
        Some(element)
    }

    /// Searches one round, which clears the marks, and a second one if all were marked.
    fn victim(&mut self, index: &HashIndex) -> Option<u32> {
        for _ in 0..2 * self.was_used.len() {
            let element = self.hand;
            self.hand = (self.hand + 1) % self.was_used.len() as u32;
            let was_used = std::mem::take(&mut self.was_used[element as usize]);
            if !was_used && index.is_used(element) {
                return Some(element);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_up_stays() {
        let mut index = HashIndex::new(3, 1, 1);
        let mut recency = Recency::new(3);
        for key in 0..3 {
            let element = recency.take(&mut index).expect("there is room");
            index.insert(element, &[key]);
        }
        recency.touch(index.find(&[0]).expect("it is there"));
        recency.touch(index.find(&[2]).expect("it is there"));
        let element = recency.take(&mut index).expect("one gives way");
        index.insert(element, &[9]);
        assert_eq!(index.find(&[1]), None);
        assert!([0, 2, 9].iter().all(|&key| index.find(&[key]).is_some()));
    }

    #[test]
    fn if_all_were_looked_up_one_gives_way_nevertheless() {
        let mut index = HashIndex::new(2, 1, 1);
        let mut recency = Recency::new(2);
        for key in 0..2 {
            let element = recency.take(&mut index).expect("there is room");
            index.insert(element, &[key]);
            recency.touch(element);
        }
        assert!(recency.take(&mut index).is_some());
        assert_eq!((0..2).filter(|&element| index.is_used(element)).count(), 1);
    }
}
