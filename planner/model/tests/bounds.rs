// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The study's analytic bounds and packet counts, with its numbers.

use freeport_plan_model::bounds::*;
use freeport_plan_model::profile::{Profile, built_in};
use freeport_plan_model::{Load, Operation, Path, Request, simulate};

pub fn bluefield2() -> Profile {
    built_in("bluefield2").expect("the default").expect("a profile")
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.005 * expected.abs(), "{found} is not {expected}");
}

#[test]
fn bounds_have_the_published_values() {
    let profile = bluefield2();
    near(path3_budget(&profile), 56.0);
    near(replicate_over_path3(&profile, 1.0), 128.0);
    near(replicate_over_path3(&profile, 0.5), 170.7);
    near(replicate_from_host(&profile), 200.0);
    near(ratio_for_path3(&profile), 0.28);
    near(bulk(&profile), 200.0);
    near(saving(0.0, 0.5), 0.5);
    assert_eq!(saving(1.0, 0.5), 0.0);
    // Below that ratio, A1 is better than A3.
    for ratio in [0.1, 0.2, 0.27, 0.29, 0.5, 1.0] {
        let is_better = replicate_over_path3(&profile, ratio) > replicate_from_host(&profile);
        assert_eq!(is_better, ratio < ratio_for_path3(&profile), "{ratio}");
    }
    for ratio in [0.2, 0.5, 1.0] {
        let best = 200.0 / ratio;
        assert!(replicate_over_dma(&profile, ratio) <= best.min(profile.dma.rate));
    }
}

#[test]
fn packets_are_amplified_as_published() {
    let profile = bluefield2();
    // Packets on both PCIe links, of paths 1, 2 and 3.
    near(packet_rate(&profile, &[512.0, 512.0]), 97.7);
    near(packet_rate(&profile, &[128.0]), 195.3);
    near(packet_rate(&profile, &[512.0, 128.0, 512.0]), 293.0);
    let packets = |path: Path, bytes| {
        let packets = path.packets(&profile, bytes);
        (packets.pcie1, packets.pcie0, packets.internal)
    };
    assert_eq!(packets(Path::Host, 4096), (8, 8, 0));
    assert_eq!(packets(Path::Soc, 4096), (32, 0, 32));
    assert_eq!(packets(Path::SocToHost, 4096), (40, 8, 32));
    assert_eq!(packets(Path::HostToSoc, 4096), (40, 8, 32));
    assert_eq!(packets(Path::DmaToHost, 4096), (0, 8, 32));
    assert_eq!(packets(Path::Rnic, 4096), (0, 8, 0));
    assert_eq!(packets(Path::Soc, 1), (1, 0, 1));
}

/// Counters of links in the simulation agree with the table of crossings and with the formula.
#[test]
fn links_count_what_paths_cross() {
    let profile = bluefield2();
    for path in Path::ALL {
        for operation in [Operation::Read, Operation::Write].into_iter().filter(|it| path.has(*it))
        {
            for bytes in [1, 128, 1000, 1025, 4097, 65_537, 1 << 20] {
                let request = Request::new(path, operation, bytes);
                let outcome = simulate(&profile, &[Load::single(request)], 1).expect("it has it");
                let on = |names: [&str; 2]| {
                    let links = outcome.links.iter().filter(|(name, _)| names.contains(name));
                    links.fold((0, 0), |(sum, packets), (_, count)| {
                        (sum + count.bytes, packets + count.packets)
                    })
                };
                let (completed, packets) =
                    (outcome.flows[0].completed, path.packets(&profile, bytes));
                let crossings = path.crossings();
                let expected = |times: u32, packets: u64| {
                    let bytes = completed * u64::from(times) * bytes;
                    (bytes, completed * packets)
                };
                let name = format!("{path} {operation} {bytes}");
                let pcie1 = on(["PCIe1 from the NIC cores", "PCIe1 to the NIC cores"]);
                assert_eq!(pcie1, expected(crossings.pcie1, packets.pcie1), "{name}");
                let pcie0 = on(["PCIe0 to the host", "PCIe0 from the host"]);
                assert_eq!(pcie0, expected(crossings.pcie0, packets.pcie0), "{name}");
                let internal = on(["internal link to the SoC", "internal link from the SoC"]);
                assert_eq!(internal, expected(crossings.internal, packets.internal), "{name}");
            }
        }
    }
}
