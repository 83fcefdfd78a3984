// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a program is scheduled for the ways that packets take through it: that is for them to
//! decide.

/// For what a program is scheduled.
pub enum Schedule {
    /// The ways that the packets take.
    Profiled,
    /// None, as was asked for.
    Plain,
    /// None, since the other schedule does not fit the card, or is slower: the reason.
    Rather(String),
}

impl Schedule {
    /// Of what was counted with both schedules, the faster one; `mean` gives its cycles per packet.
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

    /// Why there is no profile, if one was asked for.
    pub fn left_out(&self) -> Option<&str> {
        match self {
            Self::Rather(reason) => Some(reason),
            Self::Profiled | Self::Plain => None,
        }
    }

    /// Whether packets decided about it.
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
