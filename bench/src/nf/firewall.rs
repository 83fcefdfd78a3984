// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case `firewall`: 131,072 exact rules on the five-tuple, most of which permit their flow.

use super::case::{Case, ClickJob, KernelJob, Model, NetworkJob, Ours, insert};
use super::flows::{SEED, Tuple, different_tuples};
use super::traffic::Likeness;
use anyhow::Result;
use freeport_ir::Bits;
use freeport_runtime::device::Device;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Number of rules; each flow matches one.
pub const RULES: usize = 131_072;

/// Every sixteenth rule denies.
const RULES_TO_A_DENIAL: usize = 16;
/// Action of rules that let a frame pass.
pub const PERMIT: u32 = 0;
/// Action of rules that drop a frame.
pub const DENY: u32 = 255;

/// The measured graph.
const CONFIGURATION: &str = "
    Parse :: parse
    CuckooHash :: exact
    PacketBuffer<1> :: buffer
    from_tor -> parse [out] ->{depth = 64} [in] buffer -> to_tor
    parse [match] -> exact -> [verdict] buffer
";

/// The rules and the flows.
pub struct Firewall {
    rules: Vec<(Tuple, u32)>,
    tuples: Vec<Tuple>,
}

impl Firewall {
    /// Draws the rules, and flows that match them in another order. Flows beyond the number of
    /// rules match none.
    pub fn new(flows: Option<usize>) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED);
        let flows = flows.unwrap_or(RULES);
        let mut tuples = different_tuples(RULES.max(flows), &mut random);
        let action =
            |at: usize| if (at + 1).is_multiple_of(RULES_TO_A_DENIAL) { DENY } else { PERMIT };
        let rules = tuples.iter().take(RULES).copied().enumerate();
        let rules = rules.map(|(at, tuple)| (tuple, action(at))).collect();
        tuples.truncate(RULES.max(flows));
        random.shuffle(&mut tuples);
        tuples.truncate(flows);
        Self { rules, tuples }
    }
}

impl Case for Firewall {
    fn name(&self) -> &'static str {
        "firewall"
    }

    fn about(&self) -> String {
        format!(
            "firewall: {} exact rules on the five-tuple, one of {RULES_TO_A_DENIAL} denies; {} \
             flows in turn, in no order of the rules, seed {SEED}",
            self.rules.len(),
            self.tuples.len()
        )
    }

    fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }

    fn model(&self) -> Model<'_> {
        let rules: HashMap<Tuple, u32> = self.rules.iter().copied().collect();
        Box::new(move |frame| {
            let action = rules.get(&Tuple::of(frame)?)?;
            (*action == PERMIT).then(|| frame.to_vec())
        })
    }

    fn ours(&self, library: &[PathBuf]) -> Result<Option<Ours<'_>>> {
        let set_up = |device: &mut dyn Device| {
            for (tuple, action) in &self.rules {
                let verdict = [Bits::from_u64(32, (*action).into()), Bits::from_u64(16, 1)];
                let [action, priority] = verdict;
                insert(device, "exact", "insert", &[tuple.record(), action, priority])?;
            }
            Ok(())
        };
        Ours::compile("firewall", CONFIGURATION, library, Box::new(set_up)).map(Some)
    }

    fn kernel(&self) -> KernelJob {
        let entry = |(tuple, action): &(Tuple, u32)| {
            ("rules", tuple.kernel_key(), action.to_le_bytes().to_vec())
        };
        KernelJob {
            source: include_str!("../../../programs/firewall.bpf.c"),
            entries: vec![],
            contents: self.rules.iter().map(entry).collect(),
            growth: 0,
        }
    }

    fn network(&self) -> Result<NetworkJob, &'static str> {
        let verdict = |action| if action == PERMIT { "accept" } else { "drop" };
        let mut elements = String::new();
        for (it, action) in &self.rules {
            let (source, target) = (Ipv4Addr::from(it.source), Ipv4Addr::from(it.target));
            let _ = writeln!(
                elements,
                "{source} . {target} . {} . {} . {} : {},",
                it.source_port,
                it.target_port,
                it.protocol,
                verdict(*action)
            );
        }
        let rules = format!(
            "table ip firewall {{\n map rules {{\n type ipv4_addr . ipv4_addr . inet_service . \
             inet_service . inet_proto : verdict\n size {RULES}\n elements = {{ {elements} }}\n \
             }}\n chain forward {{\n type filter hook forward priority 0; policy drop;\n ip saddr \
             . ip daddr . th sport . th dport . ip protocol vmap @rules\n }}\n}}\n"
        );
        let addresses = "addr add 10.1.0.1/24 dev OUT\n\
                         neigh add 10.1.0.2 lladdr 02:00:02:00:00:01 dev OUT\n\
                         route add default via 10.1.0.2\n";
        Ok(NetworkJob {
            name: "nftables",
            addresses: addresses.into(),
            rules,
            likeness: Likeness::Tuple,
            frames: 1_500_000,
        })
    }

    fn click(&self) -> Result<ClickJob, &'static str> {
        Err("no element of Click has a table of exact rules; IPFilter makes a program of them")
    }

    fn open_flow(&self) -> Result<String, &'static str> {
        let mut text = String::from("priority=0,actions=drop\n");
        for (it, action) in &self.rules {
            let protocol = if it.protocol == 6 { "tcp" } else { "udp" };
            let actions = if *action == PERMIT { "output:OUT" } else { "drop" };
            let _ = writeln!(
                text,
                "priority=1,{protocol},in_port=IN,nw_src={},nw_dst={},tp_src={},tp_dst={},\
                 actions={actions}",
                Ipv4Addr::from(it.source),
                Ipv4Addr::from(it.target),
                it.source_port,
                it.target_port,
            );
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nf::flows::Flows;
    use std::collections::HashSet;

    #[test]
    fn each_flow_meets_a_rule_and_one_in_sixteen_is_denied() {
        let case = Firewall::new(None);
        assert_eq!(case.tuples().iter().collect::<HashSet<_>>().len(), RULES);
        let flows = Flows::new(&case.tuples()[..16_000], 64);
        let mut model = case.model();
        let passed = flows.frames().take(16_000).filter(|frame| model(frame).is_some()).count();
        assert!((14_800..=15_200).contains(&passed), "{passed}");
    }

    #[test]
    fn a_flow_without_a_rule_is_dropped() {
        let case = Firewall::new(Some(RULES + 1));
        let known: HashSet<Tuple> = case.rules.iter().map(|(tuple, _)| *tuple).collect();
        let stranger = case.tuples().iter().find(|it| !known.contains(it)).expect("one more");
        let flows = Flows::new(&[*stranger], 64);
        assert_eq!(case.model()(&flows.frames().next().expect("a frame")), None);
    }
}
