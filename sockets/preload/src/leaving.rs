// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a process has of sockets that others have as well, when it is over or becomes another
//! program: the others are told that it has them no more.
//!
//! A process that is killed tells nobody, so what it had counts on. Nothing is wrong with that but
//! that the others never have the socket alone again.

use crate::connections::{self, Stream};
use crate::table::{self, What};
use crate::{process, raw};
use core::sync::atomic::Ordering;

/// When the process is over.
pub fn is_over() {
    if !process::is_guest() {
        process::check();
        each(|_, stream| _ = gives_up(stream));
    }
}

/// Before the process becomes another program, which does not have what is closed by that.
pub fn gives_up_closed() {
    each(|descriptor, stream| {
        let flags = raw::fcntl(descriptor, libc::F_GETFD, 0);
        if flags.is_ok_and(|flags| flags & libc::FD_CLOEXEC != 0) && gives_up(stream) {
            stream.local.given_up.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// It has become no other program.
#[cold]
pub fn takes_back() {
    each(|_, stream| {
        let given_up = stream.local.given_up.swap(0, Ordering::Relaxed);
        stream.shared.references.fetch_add(given_up, Ordering::AcqRel);
    });
}

/// One descriptor less, unless it is the last one of all.
fn gives_up(stream: &Stream) -> bool {
    let less = |count: u32| if count > 1 { Some(count - 1) } else { None };
    stream.shared.references.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less).is_ok()
}

fn each(visit: impl Fn(i32, &Stream)) {
    table::each(|descriptor, what| {
        if let What::Stream(number) = what
            && let Some(stream) = connections::get(number)
        {
            visit(descriptor, &stream);
        }
    });
}
