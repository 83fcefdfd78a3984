// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case `route`: the longest matching of 16,384 prefixes decides the next hop. The time to live
//! is decremented, the checksum updated, and the next hop's addresses are written.

use super::case::{Case, ClickJob, KernelJob, Model, NetworkJob, Ours, call, insert, written};
use super::flows::{SEED, Tuple, different_tuples, is_header_sum_right};
use super::traffic::Likeness;
use anyhow::Result;
use freeport_ir::Bits;
use freeport_port::packet::checksum;
use freeport_runtime::device::Device;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Number of routes.
pub const PREFIXES: usize = 16_384;
/// Default number of flows.
pub const FLOWS: usize = 65_536;

const NEXT_HOPS: u32 = 250;
/// One flow in this many has no route.
const FLOWS_TO_A_LOST: usize = 64;
/// Prefix lengths with their shares in thousandths, similar to the Internet's routing table of
/// recent years, in which three of five prefixes are /24.
const LENGTHS: [(u32, u32); 12] = [
    (8, 1),
    (12, 2),
    (14, 4),
    (16, 14),
    (17, 8),
    (18, 14),
    (19, 26),
    (20, 45),
    (21, 52),
    (22, 115),
    (23, 105),
    (24, 614),
];

/// The routes and the flows.
pub struct Route {
    routes: BTreeMap<(u32, u32), u32>,
    tuples: Vec<Tuple>,
}

impl Route {
    /// Draws the routes, and flows to hosts in them.
    pub fn new(flows: Option<usize>) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED);
        let routes = draw_routes(PREFIXES, &mut random);
        let mut tuples = different_tuples(flows.unwrap_or(FLOWS), &mut random);
        let prefixes: Vec<(u32, u32)> = routes.keys().copied().collect();
        let find = finder(&routes);
        for (at, tuple) in tuples.iter_mut().enumerate() {
            tuple.target = if at % FLOWS_TO_A_LOST == FLOWS_TO_A_LOST - 1 {
                let mut drawn = || draw_address(&mut random);
                loop {
                    let target = drawn();
                    if find(target).is_none() {
                        break target;
                    }
                }
            } else {
                let (length, address) = prefixes[random.usize(..prefixes.len())];
                address | random.u32(..) & !mask(length)
            };
        }
        drop(find);
        Self { routes, tuples }
    }

    /// Iterates over the routes: length and first address of the prefix, and number of the next
    /// hop.
    pub fn routes(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.routes.iter().map(|((length, address), hop)| (*length, *address, *hop))
    }
}

/// The measured graph; packets that cannot be forwarded leave at unconnected outputs.
const CONFIGURATION: &str = "
    ParseIpv4 :: parse
    LpmTree :: routes
    NextHop :: hops
    Forward :: forward
    from_tor -> parse [out] ->{depth = 64} [in] forward [out] -> to_tor
    parse [match] -> routes -> hops -> [route] forward
    parse [bad] -> to_host
    forward [bad] -> to_nic
";

/// Returns the Ethernet address of a next hop.
pub fn hop_address(hop: u32) -> [u8; 6] {
    [2, 0, 2, 0, 0, hop as u8]
}

/// The router's own Ethernet address on the side of the next hops.
pub const OWN_ADDRESS: [u8; 6] = [2, 0, 3, 0, 0, 1];

fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

/// Draws a public address.
fn draw_address(random: &mut fastrand::Rng) -> u32 {
    loop {
        let address = random.u32(0x0100_0000..0xe000_0000);
        if ![10, 11, 127].contains(&(address >> 24)) {
            return address;
        }
    }
}

fn draw_routes(count: usize, random: &mut fastrand::Rng) -> BTreeMap<(u32, u32), u32> {
    let mut routes = BTreeMap::new();
    while routes.len() < count {
        let mut draw = random.u32(..1_000);
        let length = LENGTHS.iter().find(|(_, share)| match draw.checked_sub(*share) {
            Some(left) => {
                draw = left;
                false
            }
            None => true,
        });
        let length = length.map_or(24, |(length, _)| *length);
        let address = draw_address(random) & mask(length);
        // 11.0.0.0/8 would cover the senders.
        if [10, 11, 127].iter().any(|net| net << 24 & mask(length) == address) {
            continue;
        }
        routes.entry((length, address)).or_insert_with(|| random.u32(1..=NEXT_HOPS));
    }
    routes
}

/// Returns a lookup of next hops that tries every prefix length, the longest first.
fn finder(routes: &BTreeMap<(u32, u32), u32>) -> impl Fn(u32) -> Option<u32> + use<> {
    let routes: HashMap<(u32, u32), u32> = routes.iter().map(|(key, hop)| (*key, *hop)).collect();
    move |target| {
        (0..=32).rev().find_map(|length| routes.get(&(length, target & mask(length)))).copied()
    }
}

impl Case for Route {
    fn name(&self) -> &'static str {
        "route"
    }

    fn about(&self) -> String {
        format!(
            "route: {} prefixes of 8 to 24 bits, {} flows over all of them, one of \
             {FLOWS_TO_A_LOST} without a route, seed {SEED}; header and checksum are checked",
            self.routes.len(),
            self.tuples.len()
        )
    }

    fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }

    fn model(&self) -> Model<'_> {
        let find = finder(&self.routes);
        Box::new(move |frame| {
            let tuple = Tuple::of(frame)?;
            if !is_header_sum_right(frame) || frame[22] <= 1 {
                return None;
            }
            let hop = find(tuple.target)?;
            let mut made = [&hop_address(hop)[..], &OWN_ADDRESS, &frame[12..]].concat();
            made[22] -= 1;
            made[24..26].fill(0);
            let sum = checksum::of(&made[14..34]);
            made[24..26].copy_from_slice(&sum.to_be_bytes());
            Some(made)
        })
    }

    fn ours(&self, library: &[PathBuf]) -> Result<Option<Ours<'_>>> {
        let number = |width, value: u32| Bits::from_u64(width, value.into());
        let set_up = move |device: &mut dyn Device| {
            for (length, address, hop) in self.routes() {
                let place = [number(32, address), number(8, length)];
                let verdict = [number(32, hop), number(16, 1)];
                insert(device, "routes", "insert", &[place, verdict].concat())?;
            }
            for hop in 1..=NEXT_HOPS {
                let addresses = [hop_address(hop), OWN_ADDRESS].map(written);
                let [target, source] = addresses;
                call(device, "hops", "set", &[number(32, hop), target, source])?;
            }
            Ok(())
        };
        Ours::compile("route", CONFIGURATION, library, Box::new(set_up)).map(Some)
    }

    fn kernel(&self) -> KernelJob {
        let entry = |(length, address, hop): (u32, u32, u32)| {
            let key = [length.to_le_bytes(), address.to_be_bytes()].concat();
            ("routes", key, [hop_address(hop), OWN_ADDRESS].concat())
        };
        KernelJob {
            source: include_str!("../../../programs/route.bpf.c"),
            entries: vec![],
            contents: self.routes().map(entry).collect(),
            growth: 0,
        }
    }

    fn network(&self) -> Result<NetworkJob, &'static str> {
        let mut addresses = String::from("addr add 10.1.0.1/24 dev OUT\n");
        for hop in 1..=NEXT_HOPS + 3 {
            let [a, b, c, d, e, f] = hop_address(hop);
            let link = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
            let _ = writeln!(addresses, "neigh add 10.1.0.{} lladdr {link} dev OUT", hop + 1);
        }
        for (length, address, hop) in self.routes() {
            let prefix = Ipv4Addr::from(address);
            let _ = writeln!(addresses, "route add {prefix}/{length} via 10.1.0.{}", hop + 1);
        }
        // Without it, the kernel would answer each packet that has no route.
        addresses += "route add blackhole default\n";
        Ok(NetworkJob {
            name: "kernel IPv4 forwarding",
            addresses,
            rules: String::new(),
            likeness: Likeness::Whole,
            frames: 1_500_000,
        })
    }

    fn click(&self) -> Result<ClickJob, &'static str> {
        let routes = self
            .routes()
            .map(|(length, address, hop)| format!("{}/{length} {hop}", Ipv4Addr::from(address)));
        let routes: Vec<String> = routes.collect();
        // Each next hop has a separate output, as in Click's routers.
        let mut elements =
            format!("routes :: DirectIPLookup(0.0.0.0/0 0,\n{});\n", routes.join(",\n"));
        elements += "in -> CheckIPHeader(OFFSET 14) -> GetIPAddress(30) -> Strip(14) -> routes;\n";
        elements += "routes[0] -> Discard;\n";
        let address = |bytes: [u8; 6]| bytes.map(|byte| format!("{byte:02X}")).join("-");
        for hop in 1..=NEXT_HOPS {
            let (own, next) = (address(OWN_ADDRESS), address(hop_address(hop)));
            let _ = writeln!(
                elements,
                "routes[{hop}] -> DecIPTTL -> EtherEncap(0x0800, {own}, {next}) -> out;"
            );
        }
        Ok(ClickJob { elements, frames: 4_000_000 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nf::flows::Flows;

    #[test]
    fn the_model_takes_the_longest_prefix() {
        let routes = BTreeMap::from([((8, 0x1400_0000), 1), ((24, 0x1402_0300), 2)]);
        let find = finder(&routes);
        assert_eq!(find(0x1402_0304), Some(2));
        assert_eq!(find(0x1402_0404), Some(1));
        assert_eq!(find(0x1502_0304), None);
    }

    #[test]
    fn as_many_frames_are_lost_as_said() {
        let case = Route::new(Some(640));
        let flows = Flows::new(case.tuples(), 64);
        let mut model = case.model();
        let made: Vec<_> = flows.frames().take(640).map(|frame| (model(&frame), frame)).collect();
        assert_eq!(made.iter().filter(|(made, _)| made.is_none()).count(), 10);
        for (made, frame) in made {
            let Some(made) = made else { continue };
            assert!(is_header_sum_right(&made));
            assert_eq!(
                (made[22], &made[26..], &made[6..12]),
                (254, &frame[26..], &OWN_ADDRESS[..])
            );
        }
        assert_eq!(model(&[0; 60]), None, "it is no IPv4");
    }
}
