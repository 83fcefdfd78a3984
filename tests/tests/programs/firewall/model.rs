// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Model of a firewall by a search through all rules; and rules similar enough to match the same
//! packets.

use fastrand::Rng;
use freeport_ir::Bits;
use freeport_tests::tables::Tuple;

pub const PASS: u32 = 0;

const FULL: Tuple = Tuple {
    source: u32::MAX,
    target: u32::MAX,
    source_port: u16::MAX,
    target_port: u16::MAX,
    protocol: u8::MAX,
};

/// Returns one of few similar tuples, so that rules match them.
pub fn tuple(random: &mut Rng) -> Tuple {
    Tuple {
        source: 0x0a00_0000 + random.u32(..3),
        target: 0x0a00_0100 + random.u32(..3),
        source_port: random.u16(..2),
        target_port: 80 + random.u16(..2),
        protocol: [6, 17][random.usize(..2)],
    }
}

/// Returns a unique priority for rule `n`, from 1; the sequence is not monotonic.
pub fn priority(n: u16) -> u16 {
    n.wrapping_mul(0x9e37)
}

fn prefix(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

/// Returns a mask: full, a prefix of the target, whole fields, or prefixes of both addresses.
pub fn mask(random: &mut Rng) -> Tuple {
    let mut any = |bits: u32| if random.bool() { bits } else { 0 };
    let whole = Tuple {
        source: any(u32::MAX),
        target: any(u32::MAX),
        source_port: any(0xffff) as u16,
        target_port: any(0xffff) as u16,
        protocol: any(0xff) as u8,
    };
    match random.u8(..4) {
        0 => FULL,
        1 => Tuple { target: prefix(random.u32(..=32)), ..Tuple::default() },
        2 => whole,
        _ => {
            let source = prefix(random.u32(28..=32));
            Tuple { source, target: prefix(random.u32(28..=32)), ..whole }
        }
    }
}

/// A rule for the tuples that equal its own under its mask.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rule {
    pub tuple: Tuple,
    pub mask: Tuple,
    pub action: u32,
    pub priority: u16,
}

impl Rule {
    pub fn new(tuple: Tuple, mask: Tuple, action: u32, priority: u16) -> Self {
        Self { tuple: tuple.masked(&mask), mask, action, priority }
    }

    /// Returns a random rule of any kind.
    pub fn random(random: &mut Rng, priority: u16) -> Self {
        Self::new(tuple(random), mask(random), random.u32(..2), priority)
    }

    pub fn fits(&self, tuple: &Tuple) -> bool {
        tuple.masked(&self.mask) == self.tuple
    }

    pub fn is_of(&self, other: &Self) -> bool {
        (self.tuple, self.mask) == (other.tuple, other.mask)
    }

    pub fn key(&self) -> Vec<Bits> {
        vec![self.tuple.bits(), self.mask.bits()]
    }

    /// Returns the arguments of `insert` and `plan`.
    pub fn arguments(&self) -> Vec<Bits> {
        let mut arguments = self.key();
        arguments.push(Bits::from_u64(32, self.action.into()));
        arguments.push(Bits::from_u64(16, self.priority.into()));
        arguments
    }
}

/// All rules of a firewall. No two have the same priority, so the best rule is unique.
#[derive(Default)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    pub fn has(&self, rule: &Rule) -> bool {
        self.0.iter().any(|other| other.is_of(rule))
    }

    /// Inserts a rule, or replaces the existing one.
    pub fn insert(&mut self, rule: Rule) {
        self.remove(&rule);
        self.0.push(rule);
    }

    /// Removes a rule; returns whether it existed.
    pub fn remove(&mut self, rule: &Rule) -> bool {
        let found = self.0.iter().position(|other| other.is_of(rule));
        found.map(|at| self.0.swap_remove(at)).is_some()
    }

    /// Returns action and priority of the best rule for a tuple; zeros without one.
    pub fn verdict(&self, tuple: &Tuple) -> (u32, u16) {
        let fitting = self.0.iter().filter(|rule| rule.fits(tuple));
        let best = fitting.max_by_key(|rule| rule.priority);
        best.map_or((0, 0), |rule| (rule.action, rule.priority))
    }

    pub fn passes(&self, tuple: &Tuple) -> bool {
        let (action, priority) = self.verdict(tuple);
        priority > 0 && action == PASS
    }
}
