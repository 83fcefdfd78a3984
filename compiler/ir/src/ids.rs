// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Index types: every list in a [`Program`](crate::Program) has its own kind of index, so that one
//! can never be used in place of another.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the position in the list that this index belongs to.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns the index of position `at`.
            ///
            /// # Panics
            /// If `at` does not fit 32 bits, which no list of a program reaches.
            pub fn new(at: usize) -> Self {
                Self(u32::try_from(at).expect("a program's list is shorter than 2^32"))
            }
        }
    )+};
}

ids! {
    /// A value of a function ([`Function::values`](crate::Function::values)).
    ValueId,
    /// A block of a function ([`Function::blocks`](crate::Function::blocks)); 0 is the entry.
    BlockId,
    /// A state object of an element ([`Element::state`](crate::Element::state)).
    ObjectId,
    /// A firing-lifetime object of a function ([`Function::locals`](crate::Function::locals)).
    LocalId,
    /// An input or an output port of an element, numbered from 0 on each side.
    PortId,
    /// A table of an element ([`Element::tables`](crate::Element::tables)).
    TableId,
    /// A method of an element ([`Element::methods`](crate::Element::methods)).
    MethodId,
    /// An element type of a program, specialised ([`Program::elements`](crate::Program::elements)).
    ElementId,
    /// A function of a program ([`Program::functions`](crate::Program::functions)).
    FunctionId,
    /// An element instance of the graph ([`Graph::instances`](crate::Graph::instances)).
    InstanceId,
    /// A channel of the graph ([`Graph::channels`](crate::Graph::channels)).
    ChannelId,
    /// An endpoint of the graph ([`Graph::endpoints`](crate::Graph::endpoints)).
    EndpointId,
    /// A source file ([`Program::files`](crate::Program::files)).
    FileId,
}
