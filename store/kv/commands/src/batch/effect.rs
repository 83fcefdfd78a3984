// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Effect of one operation besides its reply.

/// Effect of one operation besides its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// None; or the operation has no key.
    None,
    /// A read has found its key.
    Hit,
    /// A read has not found its key.
    Miss,
    /// The value was replaced, or made.
    Put,
    /// The value was removed.
    Deleted,
    /// The value of one element was updated.
    Updated,
    /// All elements of the value were updated.
    VectorUpdated,
    /// The reply is an error, and nothing has changed.
    Failed,
    /// No memory is left. Nothing has changed, and there is no reply yet.
    Full,
}
