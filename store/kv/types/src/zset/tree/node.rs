// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of the counted B+tree, and the pools that hold them.
//!
//! A node keeps its columns in separate arrays, so that a search reads scores only. An inner node
//! repeats the first key of each child exactly, and the number of elements below it.

/// Entries of a full node.
pub const CAPACITY: usize = 64;

/// A node with fewer entries is joined with a neighbour, or takes entries from it.
pub const FEW: usize = CAPACITY / 4;

/// No node: the end of the chain of leaves.
pub const NONE: u32 = u32::MAX;

/// Columns of a node of either kind.
pub trait Node: Sized {
    /// The values of one entry.
    type Entry;

    /// A node without entries.
    fn empty() -> Box<Self>;
    /// Number of entries.
    fn len(&self) -> usize;
    /// Inserts an entry before position `at`; the node has room.
    fn insert(&mut self, at: usize, entry: Self::Entry);
    /// Removes the entry at `at`.
    fn remove(&mut self, at: usize);
    /// Moves the entries from `at` to the start of `target`.
    fn move_tail(&mut self, at: usize, target: &mut Self);
    /// Moves the first `count` entries to the end of `target`.
    fn move_head(&mut self, count: usize, target: &mut Self);
}

/// Elements in ascending order, linked with the leaves before and after.
#[derive(Clone, Debug)]
pub struct Leaf {
    len: u32,
    /// The leaf before this one, or [`NONE`].
    pub previous: u32,
    /// The leaf after this one, or [`NONE`].
    pub next: u32,
    /// Score of each element.
    pub scores: [f64; CAPACITY],
    /// Number of each element in the table of members.
    pub ids: [u32; CAPACITY],
}

/// Children in ascending order.
#[derive(Clone, Debug)]
pub struct Inner {
    len: u32,
    /// Score of the first element of each child.
    pub scores: [f64; CAPACITY],
    /// Number of the first element of each child.
    pub ids: [u32; CAPACITY],
    /// Position of each child in the pool of its level.
    pub children: [u32; CAPACITY],
    /// Number of elements below each child.
    pub counts: [u32; CAPACITY],
}

/// One entry of an inner node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Child {
    /// Score of the child's first element.
    pub score: f64,
    /// Number of the child's first element.
    pub id: u32,
    /// Position in the pool.
    pub node: u32,
    /// Elements below it.
    pub count: u32,
}

fn open<T: Copy>(column: &mut [T], len: usize, at: usize, value: T) {
    column.copy_within(at..len, at + 1);
    column[at] = value;
}

fn close<T: Copy>(column: &mut [T], len: usize, at: usize) {
    column.copy_within(at + 1..len, at);
}

/// Moves `source[at..source_len]` before the `target_len` values of `target`.
fn prepend<T: Copy>(
    source: &[T],
    at: usize,
    source_len: usize,
    target: &mut [T],
    target_len: usize,
) {
    let moved = source_len - at;
    target.copy_within(..target_len, moved);
    target[..moved].copy_from_slice(&source[at..source_len]);
}

/// Moves the first `count` of `source_len` values behind the `target_len` values of `target`.
fn append<T: Copy>(
    source: &mut [T],
    count: usize,
    source_len: usize,
    target: &mut [T],
    target_len: usize,
) {
    target[target_len..target_len + count].copy_from_slice(&source[..count]);
    source.copy_within(count..source_len, 0);
}

/// Implements [`Node`] by doing the same with each column.
macro_rules! columns {
    ($node:ident, $entry:ty, $($column:ident: $from:expr),+) => {
        fn len(&self) -> usize {
            self.len as usize
        }

        fn insert(&mut self, at: usize, entry: $entry) {
            let len = self.len();
            $(open(&mut self.$column, len, at, $from(&entry));)+
            self.len += 1;
        }

        fn remove(&mut self, at: usize) {
            let len = self.len();
            $(close(&mut self.$column, len, at);)+
            self.len -= 1;
        }

        fn move_tail(&mut self, at: usize, target: &mut Self) {
            let (len, target_len) = (self.len(), target.len());
            $(prepend(&self.$column, at, len, &mut target.$column, target_len);)+
            target.len += (len - at) as u32;
            self.len = at as u32;
        }

        fn move_head(&mut self, count: usize, target: &mut Self) {
            let (len, target_len) = (self.len(), target.len());
            $(append(&mut self.$column, count, len, &mut target.$column, target_len);)+
            target.len += count as u32;
            self.len -= count as u32;
        }
    };
}

impl Node for Leaf {
    type Entry = (f64, u32);

    fn empty() -> Box<Self> {
        let (scores, ids) = ([0.0; CAPACITY], [0; CAPACITY]);
        Box::new(Self { len: 0, previous: NONE, next: NONE, scores, ids })
    }

    columns!(Leaf, (f64, u32), scores: |entry: &(f64, u32)| entry.0,
        ids: |entry: &(f64, u32)| entry.1);
}

impl Node for Inner {
    type Entry = Child;

    fn empty() -> Box<Self> {
        let (ids, children, counts) = ([0; CAPACITY], [0; CAPACITY], [0; CAPACITY]);
        Box::new(Self { len: 0, scores: [0.0; CAPACITY], ids, children, counts })
    }

    columns!(Inner, Child, scores: |child: &Child| child.score, ids: |child: &Child| child.id,
        children: |child: &Child| child.node, counts: |child: &Child| child.count);
}

impl Inner {
    /// Number of elements below this node.
    pub fn total(&self) -> u32 {
        self.counts[..self.len()].iter().sum()
    }

    /// Replaces the entry at `at`.
    pub fn set(&mut self, at: usize, child: Child) {
        self.scores[at] = child.score;
        self.ids[at] = child.id;
        self.children[at] = child.node;
        self.counts[at] = child.count;
    }
}

/// Nodes of one kind, by position. Nodes have allocations of their own: growth copies pointers
/// only, and a removed node gives its memory back.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    nodes: Vec<Option<Box<T>>>,
    free: Vec<u32>,
}

impl<T: Node> Pool<T> {
    /// A pool without nodes.
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new() }
    }

    /// Adds an empty node and returns its position.
    pub fn add(&mut self) -> u32 {
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = Some(T::empty());
            return at;
        }
        if self.nodes.len() == self.nodes.capacity() {
            self.nodes.reserve_exact(8.max(self.nodes.len() / 4));
        }
        self.nodes.push(Some(T::empty()));
        (self.nodes.len() - 1) as u32
    }

    /// Removes the node at `at`.
    pub fn remove(&mut self, at: u32) {
        self.nodes[at as usize] = None;
        self.free.push(at);
    }

    /// The node at `at`.
    pub fn get(&self, at: u32) -> &T {
        self.nodes[at as usize].as_deref().expect("links lead to nodes of the pool")
    }

    /// The node at `at`, to change it.
    pub fn get_mut(&mut self, at: u32) -> &mut T {
        self.nodes[at as usize].as_deref_mut().expect("links lead to nodes of the pool")
    }

    /// Two different nodes, to move entries between them.
    pub fn pair_mut(&mut self, first: u32, second: u32) -> (&mut T, &mut T) {
        let [first, second] = self
            .nodes
            .get_disjoint_mut([first as usize, second as usize])
            .expect("neighbours are different nodes of the pool");
        let reason = "links lead to nodes of the pool";
        (first.as_deref_mut().expect(reason), second.as_deref_mut().expect(reason))
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Bytes of memory that the pool has allocated.
    pub fn memory_bytes(&self) -> usize {
        self.len() * size_of::<T>() + self.nodes.capacity() * 8 + self.free.capacity() * 4
    }
}
