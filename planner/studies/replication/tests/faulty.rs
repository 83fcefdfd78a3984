// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places that do something wrong, which the checks have to find, or slowly.

use crate::cluster::Kind;
use freeport_study_verbs::simulated::{Simulated, SimulatedMemory, SimulatedStable};
use freeport_study_verbs::{Address, Fault, Place, Stable, Verbs, Way};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// A place that does something wrong, or slowly.
#[derive(Clone)]
pub struct Faulty {
    inner: Simulated,
    stable: FaultyStable,
    is_hasty: bool,
}

/// A file that does something wrong, or slowly.
#[derive(Clone)]
pub struct FaultyStable {
    inner: SimulatedStable,
    place: Simulated,
    habit: Habit,
    /// End of the last append that was begun.
    appended: Rc<Cell<Duration>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    Plain,
    Uncut,
    Slow,
    Late,
    Full,
}

/// Backups that acknowledge a chunk when they have begun to send it to the next one.
pub struct Hasty;

/// Places that keep torn chunks in their files.
pub struct Uncut;

/// Places whose files take a long time for an append, with a part there meanwhile. That is allowed.
pub struct Slow;

/// Places whose files say that data are there, and append them later.
pub struct Late;

/// Places whose files do not take more than a few chunks.
pub struct Full;

const FULL_BYTES: usize = 20_000;
const APPEND: Duration = Duration::from_micros(30);

impl Faulty {
    fn new(inner: Simulated, habit: Habit, is_hasty: bool) -> Self {
        let stable = FaultyStable {
            inner: inner.stable().clone(),
            place: inner.clone(),
            habit,
            appended: Rc::default(),
        };
        Self { inner, stable, is_hasty }
    }
}

macro_rules! kind {
    ($Kind:ident, $habit:ident, $is_hasty:literal) => {
        impl Kind for $Kind {
            type Verbs = Faulty;

            fn of(inner: Simulated) -> Faulty {
                Faulty::new(inner, Habit::$habit, $is_hasty)
            }
        }
    };
}

kind!(Hasty, Plain, true);
kind!(Uncut, Uncut, false);
kind!(Slow, Slow, false);
kind!(Late, Late, false);
kind!(Full, Full, false);

impl Stable for FaultyStable {
    async fn append(&self, mut data: Vec<u8>) -> Result<(), Fault> {
        match self.habit {
            Habit::Plain | Habit::Uncut => self.inner.append(data).await,
            Habit::Full if self.inner.read()?.len() > FULL_BYTES => {
                Err(Fault::Broken { place: self.place.place(), reason: "it is full".into() })
            }
            Habit::Full => self.inner.append(data).await,
            Habit::Slow => {
                let rest = data.split_off(data.len() / 2);
                self.inner.append(data).await?;
                self.place.sleep(APPEND).await;
                self.inner.append(rest).await
            }
            Habit::Late => {
                let begin = self.place.now().max(self.appended.get());
                self.appended.set(begin + APPEND);
                let (file, place) = (self.inner.clone(), self.place.clone());
                let wait = begin - place.now();
                self.place.spawn(async move {
                    place.sleep(wait).await;
                    drop(file.append(data).await);
                });
                Ok(())
            }
        }
    }

    fn read(&self) -> Result<Vec<u8>, Fault> {
        self.inner.read()
    }

    fn truncate(&self, bytes: u64) -> Result<(), Fault> {
        if self.habit == Habit::Uncut { Ok(()) } else { self.inner.truncate(bytes) }
    }
}

impl Verbs for Faulty {
    type Memory = SimulatedMemory;
    type Stable = FaultyStable;

    fn place(&self) -> Place {
        self.inner.place()
    }

    async fn read(&self, from: Address, bytes: usize, way: Way) -> Result<Vec<u8>, Fault> {
        self.inner.read(from, bytes, way).await
    }

    async fn write(&self, to: Address, data: Vec<u8>, way: Way) -> Result<(), Fault> {
        self.inner.write(to, data, way).await
    }

    async fn call(&self, to: Place, message: Vec<u8>) -> Result<Vec<u8>, Fault> {
        if self.is_hasty && matches!(self.place(), Place::Peer(_)) {
            let inner = self.inner.clone();
            self.spawn(async move { drop(inner.call(to, message).await) });
            // Held, without bytes.
            return Ok([1_u64, 0, 0, 0].map(u64::to_le_bytes).concat());
        }
        self.inner.call(to, message).await
    }

    freeport_study_verbs::forward!(inner);

    fn stable(&self) -> &FaultyStable {
        &self.stable
    }
}
