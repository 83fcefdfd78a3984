// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place whose operations take a random time longer, so that they meet in more ways.

use freeport_study_verbs::{Address, Fault, Place, Verbs, Way};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// A place with delays. Clones draw from one sequence.
#[derive(Clone)]
pub struct Delayed<V> {
    inner: V,
    random: Rc<RefCell<fastrand::Rng>>,
    longest: Duration,
}

impl<V: Verbs> Delayed<V> {
    /// Half of all operations are delayed, at most for this time before and after them.
    pub fn new(inner: V, longest: Duration, seed: u64) -> Self {
        let random = Rc::new(RefCell::new(fastrand::Rng::with_seed(seed)));
        Self { inner, random, longest }
    }

    async fn delay(&self) {
        let time = {
            let mut random = self.random.borrow_mut();
            if random.bool() { 0.0 } else { random.f64() }
        };
        if time > 0.0 {
            self.inner.sleep(self.longest.mul_f64(time)).await;
        }
    }
}

impl<V: Verbs> Verbs for Delayed<V> {
    type Memory = V::Memory;
    type Stable = V::Stable;

    fn place(&self) -> Place {
        self.inner.place()
    }

    async fn read(&self, from: Address, bytes: usize, way: Way) -> Result<Vec<u8>, Fault> {
        self.delay().await;
        let data = self.inner.read(from, bytes, way).await;
        self.delay().await;
        data
    }

    async fn write(&self, to: Address, data: Vec<u8>, way: Way) -> Result<(), Fault> {
        self.delay().await;
        let done = self.inner.write(to, data, way).await;
        self.delay().await;
        done
    }

    async fn call(&self, to: Place, message: Vec<u8>) -> Result<Vec<u8>, Fault> {
        self.delay().await;
        let answer = self.inner.call(to, message).await;
        self.delay().await;
        answer
    }

    freeport_study_verbs::forward!(inner);

    fn stable(&self) -> &V::Stable {
        self.inner.stable()
    }
}
