// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places on the simulated machine of the planner's model.
//!
//! Operations pass the stages of their path and compete there; the model has the time, this room
//! the bytes. Longer data are read and written in two parts, one when the operation begins and one
//! when it is done, so that others see torn data.
//!
//! - Connections to clients, and most of those with other machines, are not in the model: they take
//!   the time of their network, and compete with nothing.
//! - Operations of a place on itself take no time but that of a message's receiver.
//! - Places without a connection, such as two clients, refuse with
//!   [`Fault::NoPath`](crate::Fault::NoPath).

mod place;
mod steps;
mod verbs;

pub use place::{SimulatedMemory, SimulatedStable};
pub use verbs::Simulated;

use crate::place::Place;
use crate::tasks::Tasks;
use freeport_plan_model::Profile;
use freeport_plan_model::simulator::{Outcome, Session};
use futures::channel::oneshot;
use futures::executor::LocalPool;
use place::State;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

/// The machines of a study, with their time.
pub struct World {
    pool: LocalPool,
    shared: Rc<Shared>,
}

/// State that all places share.
struct Shared {
    profile: Profile,
    is_plain: bool,
    clients: u32,
    session: RefCell<Session>,
    waiting: RefCell<HashMap<u64, oneshot::Sender<()>>>,
    places: RefCell<BTreeMap<Place, Rc<State>>>,
    tasks: Tasks,
    steps: Cell<u64>,
    forgets: Cell<bool>,
}

impl World {
    /// Creates machines without places. `is_plain` selects the plain NIC; `clients` is the number
    /// of machines of clients.
    pub fn new(profile: &Profile, clients: u32, is_plain: bool, seed: u64) -> Self {
        let pool = LocalPool::new();
        let shared = Shared {
            profile: profile.clone(),
            is_plain,
            clients,
            session: RefCell::new(Session::new(profile, clients, is_plain, seed)),
            waiting: RefCell::default(),
            places: RefCell::default(),
            tasks: Tasks::new(&pool),
            steps: Cell::new(0),
            forgets: Cell::new(false),
        };
        Self { pool, shared: Rc::new(shared) }
    }

    /// Begins a place with this number of bytes of memory. One that has died before, or is alive,
    /// begins anew: its memory is zero, and its file stays.
    ///
    /// # Panics
    /// The place is a machine of clients whose number the world does not have.
    pub fn begin(&self, place: Place, memory_bytes: usize) -> Simulated {
        if let Place::Client(number) = place {
            let clients = self.shared.clients;
            assert!(u32::from(number) < clients, "{place}, but {clients} machines of clients");
        }
        self.kill(place);
        let mut places = self.shared.places.borrow_mut();
        let state = places.entry(place).or_default();
        state.begin(memory_bytes);
        Simulated::new(&self.shared, place, Rc::clone(state))
    }

    /// Kills a place: its tasks end where they are, and its memory is lost. Its file stays.
    pub fn kill(&self, place: Place) {
        self.shared.tasks.end(place);
        if let Some(state) = self.shared.places.borrow().get(&place) {
            state.die();
        }
    }

    /// Makes files keep nothing of further appends, which take the same time: so a run that only
    /// measures may append more than the memory of this machine has.
    pub fn forget_appends(&self) {
        self.shared.forgets.set(true);
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Duration {
        self.shared.now()
    }

    /// Returns the number of operations and waits that have ended so far. It counts through a run
    /// in the same way each time.
    pub fn steps(&self) -> u64 {
        self.shared.steps.get()
    }

    /// Lets tasks run and time pass until nothing is left that can happen, or until this returns
    /// true; it is asked between steps. Returns whether it did.
    pub fn run_until(&mut self, mut is_over: impl FnMut(&Self) -> bool) -> bool {
        loop {
            self.pool.run_until_stalled();
            if is_over(self) {
                return true;
            }
            let Some(ticket) = self.shared.session.borrow_mut().next() else { return false };
            self.shared.steps.set(self.steps() + 1);
            let waiting = self.shared.waiting.borrow_mut().remove(&ticket);
            // A task that has ended does not wait any more.
            let _ = waiting.map(|waiting| waiting.send(()));
        }
    }

    /// Forgets the use of resources and links so far.
    pub fn measure(&self) {
        self.shared.session.borrow_mut().measure();
    }

    /// Returns the use of resources and links since the last call of [`measure`](Self::measure).
    pub fn outcome(&self) -> Outcome {
        self.shared.session.borrow().outcome()
    }
}

impl Drop for World {
    /// Ends all tasks, which hold the places.
    fn drop(&mut self) {
        let places: Vec<Place> = self.shared.places.borrow().keys().copied().collect();
        for place in places {
            self.shared.tasks.end(place);
        }
        self.pool.run_until_stalled();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.session.borrow().now() / 1000)
    }
}
