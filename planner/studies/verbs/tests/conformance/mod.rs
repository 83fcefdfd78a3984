// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Properties of places that hold on every machine. A case is a task of one place, which begins and
//! kills others; a back end runs it in a place with [`MEMORY_BYTES`] of memory.

mod calls;
mod deaths;
mod memory;
mod server;

pub use calls::*;
pub use deaths::*;
pub use memory::*;
pub use server::{Role, play};

use freeport_study_verbs::{Fault, Place, Verbs};
use futures::channel::oneshot;
use server::Request;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::rc::Rc;

/// Size of each place's memory, unless a case says otherwise.
pub const MEMORY_BYTES: usize = 4096;

/// A request of a case to its back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// A place begins, with this number of bytes of memory.
    Begin(Place, usize, Role),
    /// A place dies.
    Kill(Place),
}

/// A command, and the case that waits for its end.
type Given = (Command, oneshot::Sender<()>);

/// The back end, as a case sees it.
#[derive(Clone, Default)]
pub struct Stage {
    commands: Rc<RefCell<VecDeque<Given>>>,
}

impl Stage {
    /// Begins a place.
    async fn begin(&self, place: Place, memory_bytes: usize, role: Role) {
        self.command(Command::Begin(place, memory_bytes, role)).await;
    }

    /// Begins a place that serves.
    async fn serve(&self, place: Place) {
        self.begin(place, MEMORY_BYTES, Role::Server).await;
    }

    /// Kills a place.
    async fn kill(&self, place: Place) {
        self.command(Command::Kill(place)).await;
    }

    async fn command(&self, command: Command) {
        let (sender, done) = oneshot::channel();
        self.commands.borrow_mut().push_back((command, sender));
        done.await.expect("the back end obeys");
    }

    /// Carries out the commands of a case. Returns whether there were any.
    pub fn obey(&self, mut carry_out: impl FnMut(Command)) -> bool {
        let commands = self.commands.take();
        let is_busy = !commands.is_empty();
        for (command, done) in commands {
            carry_out(command);
            done.send(()).expect("the case waits");
        }
        is_busy
    }
}

/// Starts a case; the result becomes true when it has ended.
pub fn start<V: Verbs>(here: &V, case: impl Future<Output = ()> + 'static) -> Rc<Cell<bool>> {
    let has_ended: Rc<Cell<bool>> = Rc::default();
    let end = Rc::clone(&has_ended);
    here.spawn(async move {
        case.await;
        end.set(true);
    });
    has_ended
}

/// Asks a place that serves.
async fn ask<V: Verbs>(here: &V, place: Place, request: Request) -> Result<Vec<u8>, Fault> {
    here.call(place, request.to_bytes()).await
}

/// Runs a task beside the case; the result is that of the task.
fn aside<V: Verbs, T: 'static>(
    here: &V,
    task: impl Future<Output = T> + 'static,
) -> oneshot::Receiver<T> {
    let (sender, result) = oneshot::channel();
    here.spawn(async move {
        // The case may have ended.
        let _ = sender.send(task.await);
    });
    result
}

/// Makes a test of each case.
macro_rules! conform {
    ($run:path: $($case:ident)*) => {
        $(#[test]
        fn $case() {
            $run(|here, stage| crate::conformance::$case(here, stage));
        })*
    };
    ($run:path) => {
        crate::conformance::conform!($run:
            memory_is_read_as_it_was_written
            accesses_outside_are_refused
            words_are_whole
            long_data_arrive
            memory_of_this_place_can_be_reached_like_that_of_others
            answers_come_in_any_order
            many_calls_wait_at_the_same_time
            places_call_each_other
            calls_that_are_dropped_fail
            operations_are_counted
            sleeps_last
            absent_places_are_gone
            calls_of_a_place_that_dies_fail
            places_begin_anew_with_their_file
            a_file_that_a_death_has_left_stays_so
            files_are_cut
        );
    };
}
pub(crate) use conform;
