// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers between two network interfaces: the kernel's network stack, XDP on an interface, and Open
//! vSwitch.
//!
//! In a namespace of the bench, the kernel sends frames through a pair of virtual interfaces to the
//! peer, which forwards them through another pair to a program that counts and drops them. All of
//! this happens on the sending core. So the measured time includes the creation of the frames and
//! the passage through virtual interfaces, which frames in memory do not need.

use super::case::{Case, NetworkJob};
use super::flows::Flows;
use super::subjects::VSWITCH;
use super::traffic::{Likeness, Traffic, put};
use super::vswitch::Switch;
use crate::harness::namespace::{run, set, within};
use crate::harness::{Subject, Work};
use crate::kernel::{Attachment, XdpObject};
use anyhow::{Result, ensure};

/// Minimum number of frames per round through XDP on an interface.
const XDP_FRAMES: usize = 4_000_000;
/// Minimum number of frames per round through Open vSwitch.
const VSWITCH_FRAMES: usize = 250_000;
/// Frames per batch to Open vSwitch: more do not fit into a socket buffer of the default size.
const VSWITCH_BATCH: u32 = 32;

/// A peer between two interfaces.
pub struct NetworkSubject {
    name: String,
    // Dropped first: programs are detached before the namespace is removed.
    _programs: Vec<Attachment>,
    _peer: Option<XdpObject>,
    switch: Option<Switch>,
    traffic: Traffic,
    /// Frames per round, and how many of them must arrive.
    frames: u32,
    passed: u64,
}

impl NetworkSubject {
    /// Sets up the kernel's network stack between `in1` and `out0`, as a case configures it.
    ///
    /// # Errors
    /// Something is not installed, not permitted, or does not agree with the model.
    pub fn stack(job: &NetworkJob, case: &dyn Case, flows: &Flows) -> Result<Self> {
        let traffic = Traffic::new(flows)?;
        let place = |text: &str| text.replace("IN", "in1").replace("OUT", "out0");
        within(&traffic.namespace, || {
            set("ipv4/ip_forward", "1")?;
            for name in ["all", "in1"] {
                set(&format!("ipv4/conf/{name}/rp_filter"), "0")?;
            }
            run("ip", &["-batch", "-"], &place(&job.addresses))?;
            if !job.rules.is_empty() {
                run("nft", &["-f", "-"], &place(&job.rules))?;
            }
            Ok(())
        })?;
        // Redirecting frames to a veth interface requires a program on its peer interface.
        let entry = traffic.attach("xdp.pass", "in1")?;
        traffic.check("out1", case.model(), flows, job.likeness)?;
        let exit = traffic.attach("xdp.count", "out1")?;
        let round = job.frames as usize;
        Self::new(job.name.into(), vec![entry, exit], None, traffic, case, flows, round)
    }

    /// Sets up the case's XDP program on `in1`, which returns frames where they came from.
    ///
    /// # Errors
    /// Something is not permitted, or does not agree with the model.
    pub fn xdp(case: &dyn Case, flows: &Flows) -> Result<Self> {
        let traffic = Traffic::new(flows)?;
        let job = case.kernel();
        let peer = XdpObject::compile(job.source, &job.entries)?;
        for (map, key, value) in &job.contents {
            peer.map(map)?.update(key, value)?;
        }
        let entry = within(&traffic.namespace, || put(peer.program("xdp")?, "in1"))?;
        traffic.check("in0", case.model(), flows, Likeness::Whole)?;
        let exit = traffic.attach("xdp.count", "in0")?;
        let (name, programs) = ("kernel XDP on veth".into(), vec![entry, exit]);
        Self::new(name, programs, Some(peer), traffic, case, flows, XDP_FRAMES)
    }

    /// Sets up Open vSwitch between `in1` and `out0`, with a case's OpenFlow rules.
    ///
    /// # Errors
    /// Something is not installed, not permitted, or does not agree with the model.
    pub fn vswitch(rules: &str, case: &dyn Case, flows: &Flows) -> Result<Self> {
        let mut traffic = Traffic::new(flows)?;
        traffic.batch = VSWITCH_BATCH;
        let switch = within(&traffic.namespace, || {
            // The kernel's stack sees the frames as well; with another address it ignores them.
            run("ip", &["link", "set", "in1", "address", "02:00:03:00:00:02"], "")?;
            Switch::start("in1", "out0", rules)
        })?;
        let entry = traffic.attach("xdp.pass", "in1")?;
        // It first forwards frames that miss its flow cache, then the rest of a batch by flow.
        traffic.check("out1", case.model(), flows, Likeness::AnyOrder)?;
        let exit = traffic.attach("xdp.count", "out1")?;
        let (name, programs) = (VSWITCH.into(), vec![entry, exit]);
        let mut subject = Self::new(name, programs, None, traffic, case, flows, VSWITCH_FRAMES)?;
        subject.switch.insert(switch).pause()?;
        Ok(subject)
    }

    fn new(
        name: String,
        programs: Vec<Attachment>,
        peer: Option<XdpObject>,
        traffic: Traffic,
        case: &dyn Case,
        flows: &Flows,
        round: usize,
    ) -> Result<Self> {
        let cycle = flows.stamps.len();
        let cycles = round.div_ceil(cycle);
        let mut model = case.model();
        let passed = flows.frames().take(cycle).filter(|frame| model(frame).is_some()).count();
        let passed = (passed * cycles) as u64;
        let frames = u32::try_from(cycle * cycles)?;
        traffic.rewind(flows)?;
        let (_programs, _peer, switch) = (programs, peer, None);
        Ok(Self { name, _programs, _peer, switch, traffic, frames, passed })
    }
}

impl Subject for NetworkSubject {
    fn name(&self) -> &str {
        &self.name
    }

    /// Lost frames do not count as work.
    fn run(&mut self) -> Result<Work> {
        if let Some(switch) = &mut self.switch {
            switch.proceed()?;
        }
        let sent = self.traffic.send(self.frames, self.passed);
        if let Some(switch) = &mut self.switch {
            switch.pause()?;
        }
        let (arrived, elapsed) = sent?;
        ensure!(arrived <= self.passed, "{arrived} frames arrived, not {}", self.passed);
        let part = arrived as f64 / self.passed.max(1) as f64;
        Ok(Work { frames: f64::from(self.frames) * part, elapsed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::namespace::Namespace;
    use crate::nf::CaseName;
    use crate::nf::subjects::flows_of;
    use freeport_testbed::skip;

    #[track_caller]
    fn may_make_namespaces() -> bool {
        let may = Namespace::new().is_ok();
        if !may {
            skip("this process may not make network namespaces");
        }
        may
    }

    #[test]
    fn the_kernel_routes_as_the_model_does() {
        if !may_make_namespaces() {
            return;
        }
        let case = CaseName::Route.make(Some(500));
        let flows = flows_of(case.as_ref(), 64);
        let mut job = case.network().expect("the kernel routes");
        job.frames = 5_000;
        let mut subject = NetworkSubject::stack(&job, case.as_ref(), &flows).expect("it routes");
        let work = subject.run().expect("it runs");
        assert!((1.0..=5_000.0).contains(&work.frames), "{}", work.frames);
        // Without routes, nothing arrives.
        let is_kept = |line: &&str| !line.contains(" via ");
        let kept: Vec<&str> = job.addresses.lines().filter(is_kept).collect();
        job.addresses = kept.join("\n");
        let refused = NetworkSubject::stack(&job, case.as_ref(), &flows).err().expect("no route");
        assert!(refused.to_string().contains("0 of 500 frames arrived"), "{refused}");
    }

    #[test]
    #[ignore = "long: Open vSwitch is installed for long runs only"]
    fn open_vswitch_does_as_the_rules_say() {
        if !may_make_namespaces() {
            return;
        }
        if run("ovs-vswitchd", &["--version"], "").is_err() {
            skip("Open vSwitch is not installed");
            return;
        }
        let case = CaseName::FirewallWildcard.make(Some(500));
        let flows = flows_of(case.as_ref(), 64);
        let rules = case.open_flow().expect("it has rules");
        let begin = |rules: &str| NetworkSubject::vswitch(rules, case.as_ref(), &flows);
        let mut subject = begin(&rules).expect("it does the job");
        let rounds_in_one = u64::from(subject.frames / 5_000);
        subject.frames = 5_000;
        subject.passed /= rounds_in_one;
        let work = subject.run().expect("it runs");
        assert!((1.0..=5_000.0).contains(&work.frames), "{}", work.frames);
        drop(subject);
        // Without rules that permit, nothing arrives.
        let refused = begin("priority=0,actions=drop\n").err().expect("no rule");
        assert!(refused.to_string().contains("0 of 500 frames arrived"), "{refused}");
    }
}
