// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registrations whose descriptor is closed. The kernel keeps them for as long as any descriptor of
//! the socket is open, but changes them only by the number with which they were made.

use super::changes::{LISTS, delete, each_of, replace, unlink, with_set};
use super::registration::state;
use crate::process;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use core::sync::atomic::Ordering;

fn has_none(stream: &Stream) -> bool {
    stream.local.registrations.load(Ordering::Relaxed) == 0
}

/// A socket is closed: it is removed from all sets. `is_kept`: the monitor may still have it open
/// for a moment, so that the kernel would continue to report it.
pub fn forget_stream(stream: &Stream, is_kept: bool) {
    if has_none(stream) {
        return;
    }
    let Some(_lists) = LISTS.take(true) else { return };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            if is_kept {
                delete(set_of, known);
            }
            unlink(number, known, set_of, stream);
        });
    });
}

/// The last descriptor of this process is about to be closed, and other processes still hold the
/// socket: the library removes it from its sets. The kernel continues to report it, as the
/// application wants it, if this process has registered it; otherwise that is its parent's matter.
pub fn leaves_to_others(stream: &Stream) {
    if has_none(stream) {
        return;
    }
    let Some(_lists) = LISTS.take(true) else { return };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            if known.made_in == process::generation() {
                if known.is(state::DELETED) {
                    delete(set_of, known);
                } else if known.is(state::TOKENED) {
                    let event = libc::epoll_event { events: known.of_kernel(), u64: known.data };
                    replace(set_of, known, event);
                }
            }
            unlink(number, known, set_of, stream);
        });
    });
}

/// A descriptor is about to be closed, and this process has another one of the socket. Its
/// registrations in the kernel cannot be changed any more, so a connection without a token there
/// has to stay in the kernel. Returns whether it is such a connection.
pub fn loses_descriptor(stream: &Stream, descriptor: i32) -> bool {
    if has_none(stream) || stream.shared.is(phase::LISTENS) {
        return false;
    }
    let mut has_lost = false;
    let Some(lists) = LISTS.take(true) else { return false };
    each_of(stream, |number| {
        with_set(number, |set_of, known| {
            if known.descriptor == descriptor && !known.is(state::TOKENED) {
                unlink(number, known, set_of, stream);
                has_lost = true;
            }
        });
    });
    drop(lists);
    has_lost
}
