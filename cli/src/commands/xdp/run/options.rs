// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of the options of `freeport xdp run`.

use crate::commands::xdp::place::Place;
use anyhow::{Context, bail};
use freeport_xdp::Unsteady;
use std::str::FromStr;

/// The targets: one, or two that are compared; the first is the reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct On(Vec<Place>);

/// The clock of the interpreter and the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// The time of the packet, in nanoseconds since 1970.
    Capture,
    /// That of the machine, starting at 0.
    Running,
    /// A fixed time, in nanoseconds.
    Set(u64),
}

/// `MAP`, or `MAP:FROM..TO` for some bytes of each value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exception(pub Unsteady);

impl On {
    /// One or two targets.
    pub fn places(&self) -> &[Place] {
        &self.0
    }

    /// Whether a target is one of them.
    pub fn has(&self, place: Place) -> bool {
        self.0.contains(&place)
    }

    /// Whether two targets are compared.
    pub fn compares(&self) -> bool {
        self.0.len() > 1
    }

    /// The value of the option.
    pub fn name(&self) -> String {
        match self.0.as_slice() {
            [Place::Kernel, Place::Interpreter] => "both".into(),
            places => places.iter().map(|place| place.name()).collect::<Vec<_>>().join(","),
        }
    }
}

impl FromStr for On {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text == "both" {
            return Ok(Self(vec![Place::Kernel, Place::Interpreter]));
        }
        match text.split(',').map(Place::named).collect::<Option<Vec<_>>>() {
            Some(places) if matches!(places.as_slice(), [_]) => Ok(Self(places)),
            Some(places) if matches!(places.as_slice(), [one, other] if one != other) => {
                Ok(Self(places))
            }
            _ => {
                bail!(
                    "expected interpreter, kernel, native, vliw, sim, two of them with a comma, or \
                     both"
                )
            }
        }
    }
}

impl FromStr for Time {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        Ok(match text {
            "capture" => Self::Capture,
            "running" => Self::Running,
            number => Self::Set(
                number.parse().context("expected capture, running, or a number of nanoseconds")?,
            ),
        })
    }
}

impl FromStr for Exception {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((map, range)) = text.rsplit_once(':') else {
            return Ok(Self(Unsteady { map: text.into(), bytes: 0..usize::MAX }));
        };
        let ends = range.split_once("..").map(|(from, to)| (from.parse(), to.parse()));
        let Some((Ok(from), Ok(to))) = ends else {
            bail!("expected MAP or MAP:FROM..TO, such as buckets:16..24");
        };
        if from >= to {
            bail!("there are no bytes in {from}..{to}");
        }
        Ok(Self(Unsteady { map: map.into(), bytes: from..to }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_whole_values_or_bytes_of_them() {
        let exception = |text: &str| text.parse::<Exception>().map(|exception| exception.0);
        let whole = exception(".bss").unwrap();
        assert_eq!((whole.map.as_str(), whole.bytes), (".bss", 0..usize::MAX));
        let part = exception("buckets:16..24").unwrap();
        assert_eq!((part.map.as_str(), part.bytes), ("buckets", 16..24));
        for text in ["a:", "a:1", "a:1..", "a:..2", "a:2..2", "a:x..y", "a:-1..2"] {
            assert!(exception(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_target_is_named_or_two_that_differ() {
        let on = |text: &str| text.parse::<On>();
        assert_eq!(on("vliw").unwrap().places(), [Place::Vliw]);
        let two = on("interpreter,vliw").unwrap();
        assert_eq!(two.places(), [Place::Interpreter, Place::Vliw]);
        assert_eq!((two.name().as_str(), two.compares()), ("interpreter,vliw", true));
        assert_eq!(on("both").unwrap(), on("kernel,interpreter").unwrap());
        assert_eq!(on("kernel,interpreter").unwrap().name(), "both");
        for text in ["", "other", "vliw,", "vliw,vliw", "both,vliw", "kernel,interpreter,vliw"] {
            assert!(on(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_clock_is_named_or_set() {
        assert_eq!("capture".parse::<Time>().ok(), Some(Time::Capture));
        assert_eq!("running".parse::<Time>().ok(), Some(Time::Running));
        assert_eq!("70".parse::<Time>().ok(), Some(Time::Set(70)));
        assert!("now".parse::<Time>().is_err() && "-1".parse::<Time>().is_err());
    }
}
