// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choices of one instance: made and recorded, or taken from a record.

use crate::oracle::{HostEvent, InstanceOracle, MethodCall};

/// Records the choices of an instance; in a replay, takes them from the record instead.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Choices made so far.
    pub made: InstanceOracle,
    /// In a replay: the choices to make.
    recorded: Option<InstanceOracle>,
}

/// A stream of the record has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Exhausted {
    /// Name of the stream.
    pub stream: &'static str,
}

impl Choice {
    pub fn recording() -> Self {
        Self::default()
    }

    pub fn replaying(recorded: InstanceOracle) -> Self {
        Self { made: InstanceOracle::default(), recorded: Some(recorded) }
    }

    /// Discards the choices made; a replay keeps the streams that mark its position.
    pub fn forget(&mut self) {
        if self.recorded.is_none() {
            let InstanceOracle { ready, now, random, host, calls } = &mut self.made;
            [ready, now, random].into_iter().for_each(Vec::clear);
            host.clear();
            calls.clear();
        }
    }

    pub fn is_replay(&self) -> bool {
        self.recorded.is_some()
    }

    /// Returns the result of `now`: `clock` if no record exists.
    pub fn now(&mut self, clock: u64) -> Result<u64, Exhausted> {
        let made = &mut self.made.now;
        let recorded = self.recorded.as_ref().map(|recorded| &recorded.now[..]);
        choose("now", made, recorded, || clock)
    }

    /// Returns the result of `random`: drawn from `generator` if no record exists.
    pub fn random(&mut self, generator: &mut fastrand::Rng) -> Result<u64, Exhausted> {
        let made = &mut self.made.random;
        let recorded = self.recorded.as_ref().map(|recorded| &recorded.random[..]);
        choose("random", made, recorded, || generator.u64(..))
    }

    /// In a replay of an element that has a choice, returns the recorded ready bitmap of the next
    /// firing; the inner `None` means that no firings are left.
    pub fn recorded_ready(&self) -> Option<Option<u64>> {
        let recorded = self.recorded.as_ref()?;
        Some(recorded.ready.get(self.made.ready.len()).copied())
    }

    /// Returns the next host event of the record, if it is due before firing `firing`.
    pub fn due_host_event(&self, firing: u64) -> Option<HostEvent> {
        let event = self.recorded.as_ref()?.host.get(self.made.host.len())?;
        (event.before_firing <= firing).then(|| event.clone())
    }

    /// Returns the next method call of the record, in a replay.
    pub fn recorded_call(&self) -> Option<Result<&MethodCall, Exhausted>> {
        let recorded = self.recorded.as_ref()?;
        let call = recorded.calls.get(self.made.calls.len());
        Some(call.ok_or(Exhausted { stream: "calls" }))
    }

    /// Returns the name of the first stream of the record that has not been used up.
    pub fn unused(&self) -> Option<&'static str> {
        let recorded = self.recorded.as_ref()?;
        let streams = [
            ("ready", recorded.ready.len(), self.made.ready.len()),
            ("now", recorded.now.len(), self.made.now.len()),
            ("random", recorded.random.len(), self.made.random.len()),
            ("host", recorded.host.len(), self.made.host.len()),
            ("calls", recorded.calls.len(), self.made.calls.len()),
        ];
        streams.into_iter().find(|(_, recorded, made)| made < recorded).map(|(name, ..)| name)
    }
}

fn choose(
    stream: &'static str,
    made: &mut Vec<u64>,
    recorded: Option<&[u64]>,
    fresh: impl FnOnce() -> u64,
) -> Result<u64, Exhausted> {
    let value = match recorded {
        Some(recorded) => *recorded.get(made.len()).ok_or(Exhausted { stream })?,
        None => fresh(),
    };
    made.push(value);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_gives_what_was_recorded_and_then_ends() {
        let mut recording = Choice::recording();
        let mut generator = fastrand::Rng::with_seed(1);
        let drawn = [recording.random(&mut generator), recording.random(&mut generator)];
        assert_eq!(recording.now(17), Ok(17));
        let mut replay = Choice::replaying(recording.made);
        let mut other = fastrand::Rng::with_seed(2);
        assert_eq!([replay.random(&mut other), replay.random(&mut other)], drawn);
        assert_eq!(replay.unused(), Some("now"));
        assert_eq!(replay.now(99), Ok(17));
        assert_eq!(replay.unused(), None);
        assert_eq!(replay.random(&mut other), Err(Exhausted { stream: "random" }));
    }
}
