// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many cycles the card takes for packets of each scenario that come as fast as it takes them:
//! packets of the scenario's traffic, cut or filled to 64 bytes where an argument says so.
//!
//!     cargo run --release -p freeport-sim --example cycles -- [PACKETS] [BYTES]

use freeport_ebpf::interpreter::{Clock, Environment};
use freeport_ebpf::object::Object;
use freeport_sim::Sim;
use freeport_vliw::Options;
use freeport_xdp::scenario::Scenario;
use freeport_xdp::traffic::Traffic;
use freeport_xdp::{Arrival, compile};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// Cycles in a second: the clock of 40 Gbit/s Ethernet with beats of 32 bytes.
const HERTZ: f64 = 156.25e6;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> = std::env::args().skip(1).flat_map(|text| text.parse()).collect();
    let count = arguments.first().copied().unwrap_or(500);
    let bytes = arguments.get(1).copied();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/xdp");
    let environment = Environment { clock: Clock::Set(1_000_000_007), ..Environment::default() };
    println!(
        "{:24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "program", "cycles", "Mpps", "rows", "memory", "helpers", "long", "latency"
    );
    let (mut cycles_all, started) = (0, Instant::now());
    for scenario in Scenario::all() {
        let object = compile(&folder.join(format!("{}.bpf.c", scenario.source)))?;
        let object = Object::parse(&object)?;
        let mut sim = Sim::load(&object, &Options::default(), &environment)?;
        if sim.takes(scenario.program).is_err() {
            continue;
        }
        (scenario.set_up)(&mut sim)?;
        let mut traffic = Traffic::new(1, scenario.kinds);
        let mut packets = vec![];
        for _ in 0..count {
            let packet = traffic.next_packet();
            let arrival = packet.arrival();
            let mut content = arrival.bytes.to_vec();
            if let Some(bytes) = bytes {
                content.resize(bytes, 0);
            }
            packets.push((content, arrival.ingress_ifindex, arrival.rx_queue_index));
        }
        let arrivals = packets.iter().map(|(bytes, ingress_ifindex, rx_queue_index)| {
            let (ingress_ifindex, rx_queue_index) = (*ingress_ifindex, *rx_queue_index);
            Arrival { bytes, ingress_ifindex, rx_queue_index }
        });
        let arrivals: Vec<_> = arrivals.collect();
        let names = ["rows", "memory_wait_cycles", "helper_wait_cycles", "long_wait_cycles"];
        let read = |sim: &mut Sim| names.map(|name| sim.nic_mut().counter(name).unwrap_or(0));
        let before = read(&mut sim);
        let stamps = sim.run_stream(scenario.program, &arrivals)?;
        let after = read(&mut sim);
        let (Some(first), Some(last)) = (stamps.first(), stamps.last()) else { continue };
        let cycles = (last.done - first.done) as f64 / (stamps.len() - 1) as f64;
        let latency: u64 = stamps.iter().map(|stamp| stamp.done - stamp.began).sum();
        let each = |number: u64| number as f64 / stamps.len() as f64;
        print!("{:24} {cycles:8.1} {:8.2}", scenario.name, HERTZ / cycles / 1e6);
        for (after, before) in after.into_iter().zip(before) {
            print!(" {:8.1}", each(after - before));
        }
        println!(" {:8.1}", each(latency));
        cycles_all += sim.nic_mut().cycles();
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{cycles_all} cycles in {seconds:.1} s");
    Ok(())
}
