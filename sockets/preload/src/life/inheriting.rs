// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that a child inherits by a fork: the parent shares them before, and the child notes that
//! it holds them.

use crate::state::connection::phase;
use crate::state::holders::Parent;
use crate::state::table::each_stream;
use crate::waiting::epoll;
use core::cell::LazyCell;
use core::sync::atomic::Ordering;

/// Before a fork: shares all sockets with the child. `expects`: [`knows_child`] will tell which
/// process it is.
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

/// In the parent, after a fork whose child was expected: notes its process, if that is known.
pub fn knows_child(child: impl FnOnce() -> Option<i32>) {
    let child = LazyCell::new(child);
    each_stream(|_, stream| stream.knows_child(*child));
}

/// The fork has failed: takes the counts back.
#[cold]
pub fn has_no_child() {
    each_stream(|_, stream| _ = stream.shared.references.fetch_sub(1, Ordering::AcqRel));
}

/// In the child of a fork that the library did not see, as soon as it notices: it holds its
/// parent's sockets, while the parent assumes that it alone holds them.
#[cold]
pub fn has_strayed() {
    epoll::sharing::begins();
    each_stream(|_, stream| {
        stream.shared.references.fetch_add(1, Ordering::AcqRel);
        stream.strays();
    });
}

/// In the child of a fork: notes that it holds its parent's sockets. `parent`: the process that has
/// expected it.
pub fn note_in_child(parent: Option<Parent>) {
    each_stream(|descriptor, stream| {
        stream.note_in_child(parent);
        // The parent may close its descriptor, and this process may not look for long.
        if let Some(slot) = stream.slot().filter(|_| stream.shared.is(phase::ATTACHED)) {
            slot.say_descriptor(descriptor);
        }
    });
    each_stream(|_, stream| stream.has_no_callers());
}
