// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The work of a case for its targets: a program, the contents of its maps, and packets.

use super::{Case, frame, set_up};
use anyhow::{Context, Result, ensure};
use freeport_card::Sim;
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_vliw::Options;
use freeport_xdp::scenario::Scenario;
use freeport_xdp::traffic::{Packet, Traffic};
use freeport_xdp::{Arrival, Error, Interpreter, Target};

/// Number of packets of a whole program's traffic.
const PACKETS: usize = 500;
/// Seed of that traffic.
const SEED: u64 = 1;

/// Whole programs, measured with the packets of their scenarios: title, scenario, and source.
const WHOLE: [(&str, &str, &str); 5] = [
    ("parsing", "xdp2", include_str!("../../../programs/xdp/xdp2.bpf.c")),
    ("hash-lookup", "simple_firewall", include_str!("../../../programs/xdp/simple_firewall.bpf.c")),
    ("router", "router_ipv4", include_str!("../../../programs/xdp/router_ipv4.bpf.c")),
    ("tunnel", "tx_ip_tunnel", include_str!("../../../programs/xdp/tx_ip_tunnel.bpf.c")),
    ("load-balancer", "load_balancer", include_str!("../../../programs/xdp/load_balancer.bpf.c")),
];

/// Fills the maps of a target.
type SetUp = Box<dyn Fn(&mut dyn Target) -> Result<(), Error>>;

/// Work for all targets.
pub struct Work {
    /// Name of the work.
    pub name: &'static str,
    /// The object, as clang produces it.
    pub bytes: Vec<u8>,
    pub object: Object,
    pub program: &'static str,
    pub packets: Vec<Packet>,
    set_up: SetUp,
    /// Whether the program maps the first packet to itself after one run or two, so that the kernel
    /// can repeat it.
    pub is_repeatable: bool,
}

impl Work {
    /// Returns the work of a case of the card.
    ///
    /// # Errors
    /// clang is missing.
    pub fn of(case: Case) -> Result<Self> {
        let (_, program, _) = case.program();
        let packet = Packet { bytes: frame(0), ingress_ifindex: 1, rx_queue_index: 0 };
        let set_up = move |target: &mut dyn Target| set_up(case, target);
        Self::new(case.name(), program, case.compiled()?, vec![packet], Box::new(set_up))
    }

    /// Returns the work of whole programs.
    ///
    /// # Errors
    /// clang is missing.
    pub fn whole() -> Result<Vec<Self>> {
        let scenarios = Scenario::all();
        let work = |(name, scenario, source): (&'static str, &str, &'static str)| {
            let found = scenarios.iter().find(|it| it.name == scenario);
            let found = found.with_context(|| format!("there is no scenario {scenario}"))?;
            let mut traffic = Traffic::new(SEED, found.kinds);
            // The kernel requires an existing device: all packets arrive at the loopback.
            let by_loopback = |packet| Packet { ingress_ifindex: 1, rx_queue_index: 0, ..packet };
            let packets = (0..PACKETS).map(|_| by_loopback(traffic.next_packet()));
            // Packets whose length all targets accept.
            let packets = packets.filter(|packet| Sim::LENGTHS.contains(&packet.bytes.len()));
            let (set_up, packets) = (found.set_up, packets.collect());
            Self::new(name, found.program, super::compile(source)?, packets, Box::new(set_up))
        };
        WHOLE.into_iter().map(work).collect()
    }

    fn new(
        name: &'static str,
        program: &'static str,
        bytes: Vec<u8>,
        packets: Vec<Packet>,
        set_up: SetUp,
    ) -> Result<Self> {
        let object = Object::parse(&bytes)?;
        let mut work = Self { name, bytes, object, program, packets, set_up, is_repeatable: false };
        work.is_repeatable = work.packets.len() == 1 && work.leaves_its_packet()?;
        Ok(work)
    }

    /// Returns whether the first packet is unchanged after one run or two.
    fn leaves_its_packet(&self) -> Result<bool> {
        let mut interpreter = self.interpreter()?;
        let first = self.packets.first().context("there are no packets")?;
        let once = interpreter.run(self.program, &first.arrival())?;
        let again = Arrival { bytes: &once.bytes, ..first.arrival() };
        let twice = interpreter.run(self.program, &again)?;
        let is_same = |bytes: &[u8]| bytes == first.bytes;
        Ok(once.verdict == twice.verdict && (is_same(&once.bytes) || is_same(&twice.bytes)))
    }

    /// Returns the interpreter with its maps filled.
    ///
    /// # Errors
    /// The interpreter rejects the program.
    pub fn interpreter(&self) -> Result<Interpreter> {
        let mut interpreter = Interpreter::load(&self.object, Environment::default())?;
        (self.set_up)(&mut interpreter)?;
        Ok(interpreter)
    }

    /// Fills the maps of another target.
    ///
    /// # Errors
    /// A map rejects an entry.
    pub fn fill(&self, target: &mut dyn Target) -> Result<()> {
        Ok((self.set_up)(target)?)
    }

    /// Returns the mean cycles per packet on the simulated card: packets arrive back to back; time
    /// runs from the start of the first to the verdict of the last, without packets that only fill
    /// the maps.
    ///
    /// # Errors
    /// The card rejects the program.
    pub fn cycles(&self) -> Result<f64> {
        let mut sim = Sim::load(&self.object, &Options::default(), &Environment::default())?;
        sim.takes(self.program)?;
        self.fill(&mut sim)?;
        let arrivals: Vec<Arrival<'_>> = self.packets.iter().map(Packet::arrival).collect();
        let arrivals = if let [one] = arrivals[..] { vec![one; PACKETS] } else { arrivals };
        sim.run_stream(self.program, &arrivals)?;
        let stamps = sim.run_stream(self.program, &arrivals)?;
        let (first, last) = (stamps.first(), stamps.last());
        let (Some(first), Some(last)) = (first, last) else { anyhow::bail!("no packets") };
        ensure!(stamps.len() > 1, "at least two packets are required");
        Ok((last.done - first.done) as f64 / (stamps.len() - 1) as f64)
    }
}
