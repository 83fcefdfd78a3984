// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The targets that XDP programs run on, as named on the command line and in messages.

use clap::ValueEnum;

/// A target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Place {
    /// In the kernel
    Kernel,
    /// In the interpreter, in user space
    Interpreter,
    /// As compiled code, in user space
    Native,
    /// On the model of the small processor
    Vliw,
    /// On the small processor's simulated hardware
    Sim,
}

impl Place {
    /// The name on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Interpreter => "interpreter",
            Self::Native => "native",
            Self::Vliw => "vliw",
            Self::Sim => "sim",
        }
    }

    /// The place, in a sentence.
    pub fn place(self) -> &'static str {
        match self {
            Self::Kernel => "in the kernel",
            Self::Interpreter => "in the interpreter",
            Self::Native => "as compiled code",
            Self::Vliw => "on the model of the processor",
            Self::Sim => "on the simulated card",
        }
    }

    /// The target of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|place| place.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for place in Place::value_variants() {
            let value = place.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), place.name());
            assert_eq!(Place::named(place.name()), Some(*place));
        }
    }
}
