// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice between a schedule for the paths that packets take through a program and one without
//! a profile: the one that takes fewer cycles.

/// The kind of a schedule.
pub enum Schedule {
    /// For the paths that the packets take.
    Profiled,
    /// Without a profile, as requested.
    Plain,
    /// Without a profile, since the other schedule does not fit the card or is slower; the reason.
    Rather(String),
}

impl Schedule {
    /// Chooses the faster of two measured schedules; `mean` returns the cycles per packet.
    pub fn best<T>(plain: T, profiled: anyhow::Result<T>, mean: impl Fn(&T) -> f64) -> (Self, T) {
        let profiled = match profiled {
            Ok(profiled) => profiled,
            Err(error) => return (Self::Rather(format!("it does not fit: {error:#}")), plain),
        };
        let cycles = mean(&profiled);
        if cycles <= mean(&plain) {
            return (Self::Profiled, profiled);
        }
        (Self::Rather(format!("it takes {cycles:.1} cycles")), plain)
    }

    /// Why the profile is not used, if one was requested.
    pub fn left_out(&self) -> Option<&str> {
        match self {
            Self::Rather(reason) => Some(reason),
            Self::Profiled | Self::Plain => None,
        }
    }

    /// Whether the schedule uses the profile.
    pub fn is_profiled(&self) -> bool {
        matches!(self, Self::Profiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_schedule_that_fits_is_taken() {
        let best = |plain: f64, profiled| {
            let (schedule, cycles) = Schedule::best(plain, profiled, |cycles| *cycles);
            (schedule.is_profiled(), schedule.left_out().map(str::to_owned), cycles)
        };
        assert_eq!(best(9.0, Ok(8.0)), (true, None, 8.0));
        assert_eq!(best(9.0, Ok(9.0)), (true, None, 9.0));
        assert_eq!(best(9.0, Ok(10.04)), (false, Some("it takes 10.0 cycles".into()), 9.0));
        let refused = anyhow::anyhow!("too many rows").context("prog");
        let reason = "it does not fit: prog: too many rows";
        assert_eq!(best(9.0, Err(refused)), (false, Some(reason.into()), 9.0));
    }
}
