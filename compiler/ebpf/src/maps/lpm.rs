// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Longest prefix match: a binary tree of prefixes in which each node has two children or a value.
//!
//! A key is a length in bits (32 bits, in the machine's byte order) followed by that many bits,
//! starting with the most significant bit of the first byte. Nodes are numbered like the elements
//! that hold their values; higher numbers are forks, where two prefixes part. A lookup compares the
//! key with each node on its path, and the last matching node with a value is the longest prefix.

/// No node.
const NONE: u32 = u32::MAX;

/// Prefixes, and the elements that hold their values.
pub(crate) struct PrefixTree {
    data_size: usize,
    nodes: Vec<Node>,
    data: Vec<u8>,
    root: u32,
    free_elements: Vec<u32>,
    free_forks: Vec<u32>,
    elements: u32,
}

#[derive(Clone, Copy)]
struct Node {
    bits: u32,
    children: [u32; 2],
}

/// A prefix in the form of a map's key.
#[derive(Clone, Copy)]
struct Prefix<'k> {
    bits: u32,
    data: &'k [u8],
}

impl PrefixTree {
    /// Returns the size in bytes of a tree of `count` keys, or `None` on overflow.
    pub fn bytes_for(count: u64, key_size: u32) -> Option<usize> {
        let one = u64::from(key_size) + size_of::<Node>() as u64 + 4;
        usize::try_from(count.checked_mul(one)?.checked_mul(2)?).ok()
    }

    /// Creates a tree for at most `elements` prefixes, whose keys have `key_size` bytes including
    /// the length.
    pub fn new(elements: u32, key_size: u32) -> Self {
        let data_size = key_size as usize - 4;
        let nodes = 2 * elements as usize;
        Self {
            data_size,
            nodes: vec![Node { bits: 0, children: [NONE; 2] }; nodes],
            data: vec![0; nodes * data_size],
            root: NONE,
            free_elements: (0..elements).rev().collect(),
            free_forks: (elements..2 * elements).rev().collect(),
            elements,
        }
    }

    /// Returns whether the length in `key` is within the size of its data.
    pub fn is_valid(&self, key: &[u8]) -> bool {
        self.prefix(key).bits as usize <= 8 * self.data_size
    }

    /// Returns the element of the longest prefix of `key`.
    pub fn longest(&self, key: &[u8]) -> Option<u32> {
        let key = self.prefix(key);
        let (mut at, mut found) = (self.root, None);
        while at != NONE {
            let node = self.nodes[at as usize];
            if self.agreement(at, key) < node.bits {
                break;
            }
            if at < self.elements {
                found = Some(at);
            }
            if node.bits >= key.bits {
                break;
            }
            at = node.children[bit(key.data, node.bits)];
        }
        found
    }

    /// Returns the element of exactly this prefix.
    pub fn exact(&self, key: &[u8]) -> Option<u32> {
        let wanted = self.prefix(key).bits;
        self.longest(key).filter(|&element| self.nodes[element as usize].bits == wanted)
    }

    /// Stores the key that was set last for the prefix of an element: bits beyond the prefix may
    /// differ.
    pub fn write_key(&mut self, element: u32, key: &[u8]) {
        let children = self.nodes[element as usize].children;
        self.write(element, self.prefix(key));
        self.nodes[element as usize].children = children;
    }

    /// Allocates an element for a new valid prefix, or returns `None` if all are in use.
    pub fn insert(&mut self, key: &[u8]) -> Option<u32> {
        let key = self.prefix(key);
        let element = self.free_elements.pop()?;
        self.write(element, key);
        let (mut parent, mut at) = (None, self.root);
        while at != NONE {
            let node = self.nodes[at as usize];
            if self.agreement(at, key) < node.bits || node.bits == key.bits {
                break;
            }
            let side = bit(key.data, node.bits);
            parent = Some((at, side));
            at = node.children[side];
        }
        let top = self.join(element, at, key);
        self.set_child(parent, top);
        Some(element)
    }

    /// Places `element` beside, above or instead of node `at`, and returns the node that replaces
    /// `at`.
    fn join(&mut self, element: u32, at: u32, key: Prefix) -> u32 {
        if at == NONE {
            return element;
        }
        let node = self.nodes[at as usize];
        let agreed = self.agreement(at, key);
        if agreed == node.bits && node.bits == key.bits {
            // A fork with the same bits is replaced by the prefix itself.
            self.nodes[element as usize].children = node.children;
            self.free_forks.push(at);
            return element;
        }
        if agreed == key.bits {
            let side = bit(self.data_of(at), agreed);
            self.nodes[element as usize].children[side] = at;
            return element;
        }
        let fork = self.free_forks.pop().expect("a tree has fewer forks than prefixes");
        self.write(fork, Prefix { bits: agreed, data: key.data });
        let side = bit(key.data, agreed);
        self.nodes[fork as usize].children[side] = element;
        self.nodes[fork as usize].children[1 - side] = at;
        fork
    }

    /// Removes a prefix and returns its element, which is free from now on.
    pub fn remove(&mut self, key: &[u8]) -> Option<u32> {
        let key = self.prefix(key);
        let (mut grandparent, mut parent, mut at) = (None, None, self.root);
        loop {
            if at == NONE {
                return None;
            }
            let node = self.nodes[at as usize];
            if self.agreement(at, key) < node.bits || node.bits > key.bits {
                return None;
            }
            if node.bits == key.bits {
                break;
            }
            let side = bit(key.data, node.bits);
            (grandparent, parent, at) = (parent, Some((at, side)), node.children[side]);
        }
        if at >= self.elements {
            return None;
        }
        self.unlink(at, parent, grandparent);
        self.free_elements.push(at);
        Some(at)
    }

    fn unlink(&mut self, at: u32, parent: Option<(u32, usize)>, grandparent: Option<(u32, usize)>) {
        match self.nodes[at as usize].children {
            [NONE, NONE] => match parent {
                // A fork with only one child left is removed.
                Some((fork, side)) if fork >= self.elements => {
                    let other = self.nodes[fork as usize].children[1 - side];
                    self.set_child(grandparent, other);
                    self.free_forks.push(fork);
                }
                _ => self.set_child(parent, NONE),
            },
            [only, NONE] | [NONE, only] => self.set_child(parent, only),
            children => {
                let fork = self.free_forks.pop().expect("a tree has fewer forks than prefixes");
                let bits = self.nodes[at as usize].bits;
                self.nodes[fork as usize] = Node { bits, children };
                let (from, to) = (at as usize * self.data_size, fork as usize * self.data_size);
                self.data.copy_within(from..from + self.data_size, to);
                self.set_child(parent, fork);
            }
        }
    }

    /// Returns all elements that hold a prefix, in the order of the tree.
    pub fn used_elements(&self) -> Vec<u32> {
        let (mut found, mut waiting) = (vec![], vec![self.root]);
        while let Some(at) = waiting.pop() {
            if at == NONE {
                continue;
            }
            if at < self.elements {
                found.push(at);
            }
            waiting.extend(self.nodes[at as usize].children.iter().rev());
        }
        found
    }

    /// Returns the key of `element`, in the format of the map's users.
    pub fn key(&self, element: u32) -> Vec<u8> {
        let bits = self.nodes[element as usize].bits;
        [&bits.to_ne_bytes()[..], self.data_of(element)].concat()
    }

    fn prefix<'k>(&self, key: &'k [u8]) -> Prefix<'k> {
        let (bits, data) = key.split_at(4);
        Prefix { bits: u32::from_ne_bytes(bits.try_into().expect("four bytes")), data }
    }

    fn data_of(&self, node: u32) -> &[u8] {
        let start = node as usize * self.data_size;
        &self.data[start..start + self.data_size]
    }

    fn write(&mut self, node: u32, prefix: Prefix) {
        self.nodes[node as usize] = Node { bits: prefix.bits, children: [NONE; 2] };
        let start = node as usize * self.data_size;
        self.data[start..start + self.data_size].copy_from_slice(prefix.data);
    }

    fn set_child(&mut self, parent: Option<(u32, usize)>, child: u32) {
        match parent {
            Some((parent, side)) => self.nodes[parent as usize].children[side] = child,
            None => self.root = child,
        }
    }

    /// Returns the number of leading bits that `key` and `node` share, up to the shorter of the
    /// two.
    fn agreement(&self, node: u32, key: Prefix) -> u32 {
        let limit = key.bits.min(self.nodes[node as usize].bits);
        let mut agreed = 0;
        for (a, b) in self.data_of(node).iter().zip(key.data) {
            agreed += (a ^ b).leading_zeros();
            if a != b || agreed >= limit {
                break;
            }
        }
        agreed.min(limit)
    }
}

/// Returns bit `at` of `data`, counted from the most significant bit of the first byte.
fn bit(data: &[u8], at: u32) -> usize {
    usize::from(data[at as usize / 8] >> (7 - at % 8) & 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn key(bits: u32, data: &[u8]) -> Vec<u8> {
        [&bits.to_ne_bytes()[..], data].concat()
    }

    /// Returns whether the first `bits` bits are equal, compared bit by bit.
    fn agree(a: &[u8], b: &[u8], bits: u32) -> bool {
        (0..bits as usize).all(|at| {
            let mask = 0x80 >> (at % 8);
            a[at / 8] & mask == b[at / 8] & mask
        })
    }

    fn random_key(random: &mut Rng) -> Vec<u8> {
        let bytes = [random.u8(..) & 0xc1, random.u8(..) & 0x81, random.u8(..)];
        key(random.u32(0..=24), &bytes)
    }

    /// An unordered list of prefixes with a linear search.
    struct Model(Vec<(u32, Vec<u8>, u32)>);

    impl Model {
        fn longest(&self, bits: u32, data: &[u8]) -> Option<u32> {
            let fits =
                |entry: &&(u32, Vec<u8>, u32)| entry.0 <= bits && agree(&entry.1, data, entry.0);
            self.0.iter().filter(fits).max_by_key(|entry| entry.0).map(|entry| entry.2)
        }

        fn position(&self, bits: u32, data: &[u8]) -> Option<usize> {
            self.0.iter().position(|entry| entry.0 == bits && agree(&entry.1, data, bits))
        }
    }

    #[test]
    fn random_operations_agree_with_a_linear_search() {
        let mut random = Rng::with_seed(11);
        let mut tree = PrefixTree::new(40, 7);
        let mut model = Model(vec![]);
        for _ in 0..30_000 {
            let key = random_key(&mut random);
            let (bits, data) = (u32::from_ne_bytes([key[0], key[1], key[2], key[3]]), &key[4..]);
            assert_eq!(tree.longest(&key), model.longest(bits, data));
            let position = model.position(bits, data);
            assert_eq!(tree.exact(&key), position.map(|at| model.0[at].2));
            match (position, random.u8(0..3)) {
                (_, 0) => {
                    let removed = position.map(|at| model.0.swap_remove(at).2);
                    assert_eq!(tree.remove(&key), removed);
                }
                (None, _) => match tree.insert(&key) {
                    Some(element) => model.0.push((bits, data.to_vec(), element)),
                    None => assert_eq!(model.0.len(), 40, "full only when all are used"),
                },
                _ => {}
            }
            assert_eq!(40 - tree.free_elements.len(), model.0.len());
        }
        let mut elements = tree.used_elements();
        elements.sort();
        let mut expected: Vec<_> = model.0.iter().map(|entry| entry.2).collect();
        expected.sort();
        assert_eq!(elements, expected);
    }

    #[test]
    fn the_prefix_of_no_bits_is_the_default() {
        let mut tree = PrefixTree::new(2, 8);
        let default = tree.insert(&key(0, &[0; 4]));
        let host = tree.insert(&key(32, &[10, 0, 0, 1]));
        assert_eq!(tree.longest(&key(32, &[10, 0, 0, 1])), host);
        assert_eq!(tree.longest(&key(32, &[10, 0, 0, 2])), default);
        assert_eq!(tree.longest(&key(31, &[10, 0, 0, 1])), default, "a shorter key");
        assert!(!tree.is_valid(&key(33, &[0; 4])));
        assert_eq!(tree.remove(&key(24, &[10, 0, 0, 0])), None);
    }
}
