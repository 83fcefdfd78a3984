// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Follows the topology: begins and ends imports, and orders purges.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use freeport_kv_cluster::{Move, Revision};

use super::{Direction, import, is_present};
use crate::cluster::View;
use crate::shared::Shared;

/// Time between two looks, if the topology does not change.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A thread is to end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
    /// A handle of the connection on which the thread waits for a reply.
    socket: Mutex<Option<TcpStream>>,
}

impl Stop {
    /// The thread is to end.
    pub fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the thread end.
    pub fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
        if let Some(socket) = self.socket().take() {
            // The other side may have done so before.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// The thread waits for a reply on a connection, which ends when the thread is to end.
    ///
    /// # Errors
    /// The thread is to end.
    pub fn attach(&self, socket: TcpStream) -> Result<(), String> {
        *self.socket() = Some(socket);
        match self.is_set() {
            false => Ok(()),
            true => Err("the move is no longer wanted".into()),
        }
    }

    /// The thread waits for no reply any more.
    pub fn detach(&self) {
        *self.socket() = None;
    }

    fn socket(&self) -> MutexGuard<'_, Option<TcpStream>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a time, or until the thread is to end.
    pub fn wait(&self, time: Duration) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        // Either end is right.
        let _ = self.changed.wait_timeout_while(is_set, time, |is_set| !*is_set);
    }
}

/// An import that runs.
struct Running {
    wanted: Move,
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

/// Begins to follow the topology, in a thread.
///
/// # Errors
/// The system has no thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let shared = shared.clone();
    std::thread::Builder::new().name("kv-moving".into()).spawn(move || run(&shared))
}

fn run(shared: &Arc<Shared>) {
    let (Some(cluster), Some(moving)) = (&shared.cluster, &shared.moving) else { return };
    let (mut imports, mut seen): (Vec<Running>, _) = (vec![], Revision(0));
    while !shared.is_stopping() {
        let view = cluster.wait_for_view(seen, LOOK_EVERY);
        seen = view.revision;
        end_imports(&mut imports, |wanted| is_present(&view, wanted, Direction::Import));
        begin_imports(shared, &view, &mut imports);
        moving.order_purge(cluster);
    }
    end_imports(&mut imports, |_| false);
}

/// Ends imports that are not wanted, and forgets those that have ended.
fn end_imports(imports: &mut Vec<Running>, is_wanted: impl Fn(&Move) -> bool) {
    for import in imports.iter().filter(|import| !is_wanted(&import.wanted)) {
        import.stop.set();
    }
    for import in imports.extract_if(.., |it| !is_wanted(&it.wanted) || it.thread.is_finished()) {
        // A panic was reported by its thread.
        let _ = import.thread.join();
    }
}

fn begin_imports(shared: &Arc<Shared>, view: &View, imports: &mut Vec<Running>) {
    for wanted in &view.topology.moves {
        let is_running = imports.iter().any(|import| import.wanted == *wanted);
        if is_running || !is_present(view, wanted, Direction::Import) {
            continue;
        }
        let stop = Arc::new(Stop::default());
        let (shared, is_over) = (shared.clone(), stop.clone());
        let moved = wanted.clone();
        let thread = std::thread::Builder::new().name("kv-import".into());
        let thread = thread.spawn(move || import::run(&shared, &moved, &is_over));
        match thread {
            Ok(thread) => imports.push(Running { wanted: wanted.clone(), stop, thread }),
            Err(error) => tracing::warn!(%error, "an import of slots cannot begin"),
        }
    }
}
