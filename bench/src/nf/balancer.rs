// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case `balancer`: 1,048,576 flows to one virtual address. A new flow gets the next of 256
//! backends and keeps it; its frames go there in an NVGRE tunnel (RFC 7637).

use super::case::{Case, ClickJob, KernelJob, Model, Ours, call, written};
use super::flows::{SEED, Tuple, different_tuples};
use anyhow::{Result, ensure};
use freeport_ir::Bits;
use freeport_port::packet::{checksum, ethernet, ipv4};
use freeport_runtime::device::Device;
use std::collections::HashMap;
use std::path::PathBuf;

/// Default number of flows.
pub const FLOWS: usize = 1 << 20;
/// Number of backends.
pub const BACKENDS: u32 = 256;

/// The measured graph: the balancer of `examples/balancer.cnp`.
fn configuration(flow_bits: u32) -> String {
    format!(
        "Balancer<FLOW_BITS = {flow_bits}> :: balancer\n\
         from_tor -> balancer -> to_tor\n"
    )
}

/// Logarithm of the number of buckets for the default number of flows: four times as many buckets
/// as flows, so that every flow finds a slot.
const FLOW_BITS: u32 = 22;
/// The same for the maximum number of flows, which takes a gigabyte. With 32 M flows, one in a
/// hundred finds no slot.
const MOST_FLOW_BITS: u32 = 24;

const VIRTUAL_ADDRESS: u32 = 0x0a0a_0a0a;
const VIRTUAL_PORT: u16 = 80;
const GRE: u8 = 47;
/// Bytes of the Ethernet, IPv4 and GRE headers, with a key.
const TUNNEL_BYTES: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES + 8;

/// Source address of the tunnels.
pub const OWN_ADDRESS: u32 = 0x0a01_0001;
/// Source Ethernet address of the tunnels.
pub const OWN_LINK: [u8; 6] = [2, 0, 3, 0, 0, 1];

/// A backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backend {
    /// Destination address of its tunnel.
    pub address: u32,
    /// Its virtual subnet ID, 24 bits.
    pub subnet: u32,
    /// The Ethernet address of the next hop.
    pub link: [u8; 6],
}

/// Returns the backend with this number.
pub fn backend(number: u32) -> Backend {
    Backend {
        address: 0x0a02_0000 + number,
        subnet: 0x0064_0000 + number,
        link: [2, 0, 2, 0, 0, number as u8],
    }
}

/// The flows of the case.
pub struct Balancer {
    tuples: Vec<Tuple>,
    flow_bits: u32,
}

/// Number of flows in each bucket of the flow table. As in `FlowTable`, a bucket holds up to three;
/// a flow is stored in its first bucket while that has two free slots, then in the one with fewer
/// flows.
struct Places {
    counts: Vec<u8>,
    flow_bits: u32,
}

impl Places {
    fn new(flow_bits: u32) -> Self {
        Self { counts: vec![0; 1 << flow_bits], flow_bits }
    }

    /// Reserves a slot for a flow with this hash; returns whether there was one.
    fn take(&mut self, hash: u64) -> bool {
        let first = (hash & ((1 << self.flow_bits) - 1)) as usize;
        let second = (hash >> (64 - self.flow_bits)) as usize;
        let prefers_second = self.counts[first] >= 2 && self.counts[second] < self.counts[first];
        let count = &mut self.counts[if prefers_second { second } else { first }];
        let has_room = *count < 3;
        *count += u8::from(has_room);
        has_room
    }
}

/// Returns the hash of a flow, as `elements/balance/flows.cnp` defines it.
fn hash_of(tuple: &Tuple) -> u64 {
    let addresses = u64::from(tuple.target) << 32 | u64::from(tuple.source);
    let ports = u64::from(tuple.target_port) << 16 | u64::from(tuple.source_port);
    let mut hash = addresses.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 32 ^ (ports << 8 | u64::from(tuple.protocol));
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 29
}

impl Balancer {
    /// Draws the flows.
    pub fn new(flows: Option<usize>) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut tuples = different_tuples(flows.unwrap_or(FLOWS), &mut random);
        for tuple in &mut tuples {
            tuple.target = VIRTUAL_ADDRESS;
            (tuple.target_port, tuple.protocol) = (VIRTUAL_PORT, ipv4::UDP);
        }
        let wanted = tuples.len().next_power_of_two().ilog2() + 2;
        Self { tuples, flow_bits: wanted.clamp(FLOW_BITS, MOST_FLOW_BITS) }
    }
}

/// Returns the flow ID of the tunnel key: 8 bits by which switches spread flows over paths.
fn path_of(tuple: &Tuple) -> u32 {
    let ports = u32::from(tuple.target_port) << 16 | u32::from(tuple.source_port);
    let mixed = tuple.source ^ tuple.target ^ ports;
    let mixed = mixed ^ mixed >> 16;
    (mixed ^ mixed >> 8) & 0xff
}

/// Returns a frame encapsulated for a backend.
fn tunnelled(frame: &[u8], to: Backend, path: u32) -> Vec<u8> {
    let mut made = vec![0; TUNNEL_BYTES];
    let link = ethernet::Header {
        target: ethernet::Address(to.link),
        source: ethernet::Address(OWN_LINK),
        ether_type: ethernet::IPV4,
    };
    link.emit(&mut made);
    let network = ipv4::Header {
        source: OWN_ADDRESS,
        target: to.address,
        protocol: GRE,
        time_to_live: 64,
        payload_length: 8 + frame.len(),
        ..ipv4::Header::default()
    };
    let packet = &mut made[ethernet::HEADER_BYTES..][..ipv4::HEADER_BYTES];
    network.emit(packet);
    // Tunnel packets are not fragmented.
    packet[ipv4::field::FRAGMENT.start] = 0x40;
    packet[ipv4::field::CHECKSUM].fill(0);
    let sum = checksum::of(packet);
    packet[ipv4::field::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    let gre = &mut made[ethernet::HEADER_BYTES + ipv4::HEADER_BYTES..];
    // The header has a key, and the payload is a bridged Ethernet frame.
    gre[..4].copy_from_slice(&[0x20, 0, 0x65, 0x58]);
    gre[4..].copy_from_slice(&(to.subnet << 8 | path).to_be_bytes());
    made.extend(frame);
    made
}

impl Case for Balancer {
    fn name(&self) -> &'static str {
        "balancer"
    }

    fn about(&self) -> String {
        format!(
            "balancer: {} flows in turn to one address, each with the backend it got when it was \
             new, {BACKENDS} backends, NVGRE with {TUNNEL_BYTES} bytes in front, seed {SEED}; room \
             for {} flows",
            self.tuples.len(),
            3_u64 << self.flow_bits
        )
    }

    fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }

    fn model(&self) -> Model<'_> {
        let mut flows: HashMap<Tuple, u8> = HashMap::with_capacity(self.tuples.len());
        let mut places = Places::new(self.flow_bits);
        let mut turn = 0_u8; // wraps around after 256 backends
        Box::new(move |frame| {
            let tuple = Tuple::of(frame)?;
            let number = *flows.entry(tuple).or_insert_with(|| {
                let hash = hash_of(&tuple);
                if !places.take(hash) {
                    return (((hash >> 32) * u64::from(BACKENDS)) >> 32) as u8;
                }
                turn = turn.wrapping_add(1);
                turn.wrapping_sub(1)
            });
            Some(tunnelled(frame, backend(number.into()), path_of(&tuple)))
        })
    }

    fn ours(&self, library: &[PathBuf]) -> Result<Option<Ours<'_>>> {
        let number = |value: u32| Bits::from_u64(32, value.into());
        let set_up = move |device: &mut dyn Device| {
            let manager = "balancer.manager";
            call(device, manager, "set_own", &[number(OWN_ADDRESS), written(OWN_LINK)])?;
            for at in 0..BACKENDS {
                let it = backend(at);
                let ends = [number(it.address), written(it.link), number(it.subnet), number(1)];
                let given = call(device, manager, "add", &ends)?;
                let is_next = given.is_some_and(|given| given.to_u64() == u64::from(at));
                ensure!(is_next, "the manager does not count backends from 0");
            }
            Ok(())
        };
        let text = configuration(self.flow_bits);
        Ours::compile("balancer", &text, library, Box::new(set_up)).map(Some)
    }

    fn kernel(&self) -> KernelJob {
        let mut own = [OWN_ADDRESS.to_be_bytes(), BACKENDS.to_le_bytes(), [0; 4]].concat();
        own.extend([&OWN_LINK[..], &[0, 0]].concat());
        let mut contents = vec![("settings", vec![0; 4], own)];
        for number in 0..BACKENDS {
            let it = backend(number);
            let mut value = [it.address.to_be_bytes(), (it.subnet << 8).to_be_bytes()].concat();
            value.extend([&it.link[..], &[0, 0]].concat());
            contents.push(("backends", number.to_le_bytes().to_vec(), value));
        }
        KernelJob {
            source: include_str!("../../../programs/balancer.bpf.c"),
            entries: vec![("flows", self.tuples.len())],
            contents,
            growth: TUNNEL_BYTES,
        }
    }

    fn click(&self) -> Result<ClickJob, &'static str> {
        Err("no element of Click makes NVGRE")
    }

    fn published(&self, frame_bytes: usize) -> Option<f64> {
        // For more flows, only the rate at 32 M was published.
        (frame_bytes == 64 && self.tuples.len() < 8 << 10).then_some(51.2e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nf::flows::Flows;
    use crate::nf::ours::DeviceSubject;
    use freeport_runtime::cpu::CpuDevice;

    #[test]
    fn a_flow_keeps_its_backend_and_the_frame_is_whole_in_the_tunnel() {
        let case = Balancer::new(Some(300));
        let flows = Flows::new(case.tuples(), 64);
        let mut model = case.model();
        let made: Vec<Vec<u8>> = flows.frames().take(600).filter_map(|it| model(&it)).collect();
        for (at, (made, frame)) in made.iter().zip(flows.frames()).enumerate() {
            let link = ethernet::View::new(made).expect("an Ethernet frame");
            let network = ipv4::View::new(link.payload()).expect("an IPv4 packet");
            assert!(network.is_checksum_right());
            assert_eq!(network.target(), backend(at as u32 % 300 % 256).address);
            assert_eq!((network.protocol(), &network.payload()[8..]), (GRE, &frame[..]));
        }
        assert_eq!(made.len(), 600);
    }

    #[test]
    fn flows_without_a_place_get_what_their_hash_chooses() {
        let library = [std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../elements")];
        let case = Balancer { flow_bits: 12, ..Balancer::new(Some(10_000)) };
        let mut places = Places::new(case.flow_bits);
        let stored = case.tuples.iter().filter(|tuple| places.take(hash_of(tuple))).count();
        assert!((9_000..9_900).contains(&stored), "{stored}");
        let ours = case.ours(&library).expect("it compiles").expect("there is one");
        let options = freeport_native::Options::default();
        let device = CpuDevice::load(&ours.program, &options).expect("native code");
        let flows = Flows::new(case.tuples(), 64);
        let subject = DeviceSubject::new("x", device, &ours, &flows, case.model(), 2);
        let _: DeviceSubject<_> = subject.expect("it does what the model does");
    }
}
