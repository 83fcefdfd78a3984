// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case `firewall-wildcard`: 16,384 rules under 16 masks. Rules overlap, and the matching rule
//! of the highest priority applies; its mask cannot be predicted from any order of the masks.

use super::case::{Case, ClickJob, KernelJob, Model, Ours, insert};
use super::firewall::{DENY, PERMIT};
use super::flows::{SEED, Tuple};
use anyhow::Result;
use freeport_ir::Bits;
use freeport_port::packet::ipv4;
use freeport_runtime::device::Device;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Number of rules.
pub const RULES: usize = 16_384;
/// Default number of flows.
pub const FLOWS: usize = 131_072;

/// One rule in this many denies.
const RULES_TO_A_DENIAL: usize = 16;

/// One flow in this many is drawn independently of the rules.
const FLOWS_TO_A_STRANGER: usize = 16;

/// Prefix lengths of source and destination, and whether the ports and the protocol are matched.
const MASKS: [(u32, u32, bool, bool, bool); 16] = [
    (32, 32, false, false, false),
    (32, 24, false, true, true),
    (32, 16, false, true, true),
    (32, 0, false, false, false),
    (28, 32, false, true, true),
    (28, 24, false, false, true),
    (24, 32, false, true, true),
    (24, 24, false, true, true),
    (24, 16, false, false, true),
    (24, 32, true, false, true),
    (20, 32, false, true, true),
    (20, 32, false, false, false),
    (16, 32, false, true, true),
    (0, 32, false, true, true),
    (0, 32, true, false, true),
    (0, 32, false, false, false),
];

/// The measured graph.
const CONFIGURATION: &str = "
    Parse :: parse
    HashTcam :: wildcard
    PacketBuffer<1> :: buffer
    from_tor -> parse [out] ->{depth = 64} [in] buffer -> to_tor
    parse [match] -> wildcard -> [verdict] buffer
";

/// A rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Index of its mask.
    pub mask: usize,
    /// Value that a masked tuple must have.
    pub key: Tuple,
    /// Priority from 1; each is unique.
    pub priority: u16,
    /// [`PERMIT`] or [`DENY`].
    pub action: u32,
}

/// The rules and the flows.
pub struct Wildcard {
    rules: Vec<Rule>,
    tuples: Vec<Tuple>,
}

impl Wildcard {
    /// Draws rules, and flows of which most match at least one.
    pub fn new(flows: Option<usize>) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED);
        let rules = draw_rules(&mut random);
        let count = flows.unwrap_or(FLOWS);
        let (mut known, mut tuples) = (HashSet::new(), Vec::with_capacity(count));
        while tuples.len() < count {
            let mut tuple = draw_tuple(&mut random);
            if random.usize(..FLOWS_TO_A_STRANGER) > 0 {
                let rule = rules[random.usize(..rules.len())];
                tuple = within(rule, tuple);
            }
            if known.insert(tuple) {
                tuples.push(tuple);
            }
        }
        Self { rules, tuples }
    }
}

/// Draws rules under each mask in turn, sorted by ascending priority.
fn draw_rules(random: &mut fastrand::Rng) -> Vec<Rule> {
    let mut priorities: Vec<u16> = (1..=RULES as u16).collect();
    random.shuffle(&mut priorities);
    let (mut known, mut rules) = (HashSet::new(), vec![]);
    while rules.len() < RULES {
        let mask = rules.len() % MASKS.len();
        let key = masked(mask, draw_tuple(random));
        if known.insert((mask, key)) {
            let denies = (rules.len() / MASKS.len()).is_multiple_of(RULES_TO_A_DENIAL);
            let action = if denies { DENY } else { PERMIT };
            rules.push(Rule { mask, key, priority: priorities[rules.len()], action });
        }
    }
    rules.sort_by_key(|rule| rule.priority);
    rules
}

/// Draws a tuple from 65,536 sources and 4,096 destinations, few enough for rules to overlap.
fn draw_tuple(random: &mut fastrand::Rng) -> Tuple {
    Tuple {
        source: 0x0b00_0000 | random.u32(..16) << 16 | random.u32(..16) << 8 | random.u32(..256),
        target: 0x0a80_0000 | random.u32(..4) << 16 | random.u32(..4) << 8 | random.u32(..256),
        source_port: random.u16(1_024..),
        target_port: [53, 80, 443, 8_080][random.usize(..4)],
        protocol: if random.bool() { ipv4::TCP } else { ipv4::UDP },
    }
}

/// Returns the tuple with the bits that a rule matches on taken from the rule.
fn within(rule: Rule, tuple: Tuple) -> Tuple {
    let (mask, key) = (masks()[rule.mask], rule.key);
    Tuple {
        source: tuple.source & !mask.source | key.source,
        target: tuple.target & !mask.target | key.target,
        source_port: tuple.source_port & !mask.source_port | key.source_port,
        target_port: tuple.target_port & !mask.target_port | key.target_port,
        protocol: tuple.protocol & !mask.protocol | key.protocol,
    }
}

/// Returns the masks as tuples in which set bits are matched.
pub fn masks() -> [Tuple; MASKS.len()] {
    let prefix = |length| u32::MAX.checked_shl(32 - length).unwrap_or(0);
    let all = |counts: bool| if counts { u16::MAX } else { 0 };
    MASKS.map(|(source, target, source_port, target_port, protocol)| Tuple {
        source: prefix(source),
        target: prefix(target),
        source_port: all(source_port),
        target_port: all(target_port),
        protocol: if protocol { u8::MAX } else { 0 },
    })
}

fn masked(mask: usize, tuple: Tuple) -> Tuple {
    let mask = masks()[mask];
    Tuple {
        source: tuple.source & mask.source,
        target: tuple.target & mask.target,
        source_port: tuple.source_port & mask.source_port,
        target_port: tuple.target_port & mask.target_port,
        protocol: tuple.protocol & mask.protocol,
    }
}

impl Case for Wildcard {
    fn name(&self) -> &'static str {
        "firewall-wildcard"
    }

    fn about(&self) -> String {
        format!(
            "firewall-wildcard: {} rules under {} masks, priorities in no order of the masks, one \
             of {RULES_TO_A_DENIAL} denies; no exact rule; {} flows in turn, seed {SEED}",
            self.rules.len(),
            MASKS.len(),
            self.tuples.len()
        )
    }

    fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }

    fn model(&self) -> Model<'_> {
        let rules: HashMap<(usize, Tuple), Rule> =
            self.rules.iter().map(|rule| ((rule.mask, rule.key), *rule)).collect();
        Box::new(move |frame| {
            let tuple = Tuple::of(frame)?;
            let hits = (0..MASKS.len()).filter_map(|mask| rules.get(&(mask, masked(mask, tuple))));
            let best = hits.max_by_key(|rule| rule.priority)?;
            (best.action == PERMIT).then(|| frame.to_vec())
        })
    }

    fn ours(&self, library: &[PathBuf]) -> Result<Option<Ours<'_>>> {
        let set_up = |device: &mut dyn Device| {
            for rule in &self.rules {
                let action = Bits::from_u64(32, rule.action.into());
                let priority = Bits::from_u64(16, rule.priority.into());
                let (key, mask) = (rule.key.record(), masks()[rule.mask].record());
                insert(device, "wildcard", "insert", &[key, mask, action, priority])?;
            }
            Ok(())
        };
        Ours::compile("firewall-wildcard", CONFIGURATION, library, Box::new(set_up)).map(Some)
    }

    fn kernel(&self) -> KernelJob {
        let masks = masks().iter().flat_map(Tuple::kernel_key).collect();
        let mut contents = vec![("masks", vec![0; 4], masks)];
        for rule in &self.rules {
            let mut key = rule.key.kernel_key();
            key[13] = rule.mask as u8;
            let action = rule.action as u16;
            let value = [rule.priority.to_le_bytes(), action.to_le_bytes()].concat();
            contents.push(("rules", key, value));
        }
        KernelJob {
            source: include_str!("../../../programs/wildcard.bpf.c"),
            entries: vec![],
            contents,
            growth: 0,
        }
    }

    fn network(&self) -> Result<super::case::NetworkJob, &'static str> {
        Err("nftables finds rules that overlap, with priorities in no order, only one by one")
    }

    fn click(&self) -> Result<ClickJob, &'static str> {
        let mut elements =
            String::from("in -> Strip(14) -> CheckIPHeader -> filter :: IPFilter(\n");
        // The first rule that matches applies.
        for rule in self.rules.iter().rev() {
            let (mask, key) = (masks()[rule.mask], rule.key);
            let net = |address: u32, mask: u32| {
                format!("{}/{}", Ipv4Addr::from(address), mask.leading_ones())
            };
            let verb = if rule.action == PERMIT { "allow" } else { "deny" };
            let (source, target) = (net(key.source, mask.source), net(key.target, mask.target));
            let _ = write!(elements, "{verb} src net {source} && dst net {target}");
            if mask.protocol != 0 {
                let _ = write!(elements, " && ip proto {}", key.protocol);
            }
            if mask.source_port != 0 {
                let _ = write!(elements, " && src port {}", key.source_port);
            }
            if mask.target_port != 0 {
                let _ = write!(elements, " && dst port {}", key.target_port);
            }
            elements += ",\n";
        }
        elements += "deny all);\nfilter -> Unstrip(14) -> out;\n";
        Ok(ClickJob { elements, frames: 8_192 })
    }

    fn open_flow(&self) -> Result<String, &'static str> {
        let mut text = String::from("priority=0,actions=drop\n");
        for rule in &self.rules {
            let (mask, key) = (masks()[rule.mask], rule.key);
            let _ = write!(text, "priority={},ip,in_port=IN", rule.priority);
            let address = |value| Ipv4Addr::from(value);
            let _ = write!(text, ",nw_src={}/{}", address(key.source), address(mask.source));
            let _ = write!(text, ",nw_dst={}/{}", address(key.target), address(mask.target));
            if mask.protocol != 0 {
                let _ = write!(text, ",nw_proto={}", key.protocol);
            }
            if mask.source_port != 0 {
                let _ = write!(text, ",tp_src={}", key.source_port);
            }
            if mask.target_port != 0 {
                let _ = write!(text, ",tp_dst={}", key.target_port);
            }
            let actions = if rule.action == PERMIT { "output:OUT" } else { "drop" };
            let _ = writeln!(text, ",actions={actions}");
        }
        Ok(text)
    }

    fn published(&self, frame_bytes: usize) -> Option<f64> {
        (frame_bytes == 64).then_some(56.4e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nf::flows::Flows;

    #[test]
    fn rules_overlap_and_the_highest_priority_counts() {
        let case = Wildcard::new(None);
        let known: HashMap<(usize, Tuple), Rule> =
            case.rules.iter().map(|rule| ((rule.mask, rule.key), *rule)).collect();
        assert_eq!((known.len(), case.tuples().len()), (RULES, FLOWS));
        let flows = Flows::new(&case.tuples()[..2_000], 64);
        let (mut model, mut overlaps, mut denied) = (case.model(), 0, 0);
        for (frame, tuple) in flows.frames().zip(&case.tuples()[..2_000]) {
            let mut hits: Vec<Rule> = (case.rules.iter())
                .filter(|rule| masked(rule.mask, *tuple) == rule.key)
                .copied()
                .collect();
            hits.sort_by_key(|rule| rule.priority);
            overlaps += usize::from(hits.len() > 1);
            let passes = hits.last().is_some_and(|rule| rule.action == PERMIT);
            denied += usize::from(!passes);
            assert_eq!(model(&frame), passes.then_some(frame));
        }
        assert!(overlaps > 500 && denied > 50, "{overlaps} overlaps, {denied} denied");
    }
}
