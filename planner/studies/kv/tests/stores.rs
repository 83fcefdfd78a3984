// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stores on the simulated machine, for tests.

use freeport_plan_model::profile::built_in;
use freeport_study_kv::{Client, Options, Server};
use freeport_study_verbs::simulated::{Simulated, World};
use freeport_study_verbs::{Counted, Place, Verbs};
use std::cell::RefCell;
use std::rc::Rc;

/// A store with host, processor and machines of clients.
pub struct Store {
    pub world: World,
    pub host: Simulated,
    pub server: Server<Simulated>,
    pub options: Options,
}

/// Options of a small store, in which memory is soon used again.
pub fn small() -> Options {
    Options {
        buckets: 64,
        item_memory: 64 << 10,
        cache_memory: 8 << 10,
        cached_item_max: 256,
        ..Options::default()
    }
}

impl Store {
    /// Begins an empty store whose processor answers.
    pub fn begin(options: Options, seed: u64) -> Self {
        let profile = built_in("bluefield2").expect("the default").expect("a profile");
        let world = World::new(&profile, 11, false, seed);
        let layout = options.layout().expect("within the limits");
        let host = world.begin(Place::Host, layout.host_bytes as usize);
        let soc = world.begin(Place::Soc, layout.soc_bytes as usize);
        let server = Server::new(soc.clone(), options.clone()).expect("within the limits");
        soc.spawn(server.clone().serve());
        Self { world, host, server, options }
    }

    /// Begins a machine of clients, with a client whose operations are counted.
    pub fn client(&self, number: u16) -> (Counted<Simulated>, Client<Counted<Simulated>>) {
        let verbs = Counted::new(self.world.begin(Place::Client(number), 0));
        let client = Client::new(verbs.clone(), self.options.clone(), number.into());
        (verbs, client.expect("within the limits"))
    }

    /// Runs a task until it has ended, and returns its result.
    pub fn result<T: 'static>(
        &mut self,
        place: &impl Verbs,
        task: impl Future<Output = T> + 'static,
    ) -> T {
        let result: Rc<RefCell<Option<T>>> = Rc::default();
        let into = Rc::clone(&result);
        place.spawn(async move { *into.borrow_mut() = Some(task.await) });
        assert!(self.world.run_until(|_| result.borrow().is_some()), "the task waits forever");
        result.take().expect("it has ended")
    }
}
