// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a child inherits by a fork: the parent shares its sockets before, and the child notes that
//! it holds them.

use crate::state::connection::phase;
use crate::state::holders::Parent;
use crate::state::table::each_stream;
use crate::waiting::epoll;
use core::cell::LazyCell;
use core::sync::atomic::Ordering;

/// Before a fork: the child will have what this process has. `expects`: it will be told which one
/// it is.
pub fn share_all(expects: bool) {
    epoll::sharing::begins();
    each_stream(|_, stream| {
        stream.share_ends();
        stream.shared.references.fetch_add(1, Ordering::AcqRel);
        stream.note_copies();
        if expects {
            stream.expect_child();
        }
    });
}

/// In the parent, behind a fork whose child was expected: which one it has, if that is known.
pub fn knows_child(child: impl FnOnce() -> Option<i32>) {
    let child = LazyCell::new(child);
    each_stream(|_, stream| stream.knows_child(*child));
}

/// There was no fork after all.
#[cold]
pub fn has_no_child() {
    each_stream(|_, stream| _ = stream.shared.references.fetch_sub(1, Ordering::AcqRel));
}

/// In the child of a fork that nobody was told of, as soon as it is noticed: it has its parent's
/// sockets, which the parent takes for its own alone.
#[cold]
pub fn has_strayed() {
    epoll::sharing::begins();
    each_stream(|_, stream| {
        stream.shared.references.fetch_add(1, Ordering::AcqRel);
        stream.strays();
    });
}

/// In the child of a fork, which has what its parent had; `parent`: who has expected it.
pub fn note_in_child(parent: Option<Parent>) {
    each_stream(|descriptor, stream| {
        stream.note_in_child(parent);
        // Its parent may close its own, and this process may not look for long.
        if let Some(slot) = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED)) {
            slot.say_descriptor(descriptor);
        }
    });
    each_stream(|_, stream| stream.has_no_callers());
}
