// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs that the hXDP publication measures (its table of programs), reimplemented.

use super::{DROP, FIRST, PASS, REDIRECT, Scenario, TX, bytes, plain};
use crate::traffic::{Kind, hosts};
use crate::{Error, Target};

const IP: &[Kind] = &[Kind::Tcp, Kind::Udp, Kind::TcpIpv6, Kind::UdpIpv6, Kind::Icmp, Kind::Other];
const BALANCED: &[Kind] = &[
    Kind::Tcp,
    Kind::Tcp,
    Kind::Udp,
    Kind::TcpIpv6,
    Kind::UdpIpv6,
    Kind::Icmp,
    Kind::IcmpIpv6,
    Kind::Quic,
    Kind::Other,
];
const IPV4: [u8; 2] = [8, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Devices that maps of devices may contain here.
const DEVICES: [u32; 3] = [1, 2, 3];

pub fn scenarios() -> Vec<Scenario> {
    vec![
        plain("xdp1", "drop", IP, &[DROP]),
        plain("xdp2", "send_back", IP, &[DROP, TX]),
        plain("adjust_tail", "too_big", IP, &[PASS, TX]),
        Scenario { set_up: router, ..plain("router_ipv4", "route", IP, &[PASS, REDIRECT]) },
        Scenario {
            name: "rxq_info (drop)",
            set_up: |target| queues(target, DROP, 1),
            ..plain("rxq_info", "count_queues", IP, &[super::ABORTED, DROP])
        },
        Scenario {
            name: "rxq_info (tx)",
            set_up: |target| queues(target, TX, 3),
            ..plain("rxq_info", "count_queues", IP, &[super::ABORTED, TX])
        },
        Scenario { set_up: tunnels, ..plain("tx_ip_tunnel", "encapsulate", IP, &[DROP, PASS, TX]) },
        Scenario { set_up: one_device, ..plain("redirect_map", "by_map", IP, &[REDIRECT]) },
        Scenario {
            name: "redirect_map (by number)",
            ..plain("redirect_map", "by_number", IP, &[REDIRECT])
        },
        Scenario {
            set_up: firewall,
            ..plain(
                "simple_firewall",
                "filter",
                &[Kind::Tcp, Kind::Udp, Kind::Other],
                &[DROP, REDIRECT],
            )
        },
        Scenario {
            set_up: |target| ways(target, &[(1, 2), (2, 1)]),
            ..plain(
                "stateful_firewall",
                "firewall",
                &[Kind::Tcp, Kind::Udp, Kind::Other],
                &[DROP, REDIRECT],
            )
        },
        Scenario { name: "drop", ..plain("minimal", "drop", IP, &[DROP]) },
        Scenario { name: "transmit", ..plain("minimal", "transmit", IP, &[TX]) },
        Scenario { name: "redirect", ..plain("minimal", "redirect", IP, &[REDIRECT]) },
        Scenario {
            set_up: balancer,
            unsteady: &[("flows", 8..16), ("rates", 0..16)],
            ..plain("load_balancer", "balancer", BALANCED, &[DROP, PASS, TX])
        },
    ]
}

/// Routes with several prefix lengths, some without a neighbour, some through a gateway.
fn router(target: &mut dyn Target) -> Result<(), Error> {
    for (place, device) in DEVICES.iter().enumerate() {
        target.update("ports", &(place as u32).to_ne_bytes(), &device.to_ne_bytes())?;
    }
    let mut route = |length: u32, prefix: [u8; 4], gateway: [u8; 4], port: u32| {
        let key = bytes(&[&length.to_ne_bytes(), &prefix]);
        target.update("routes", &key, &bytes(&[&gateway, &port.to_ne_bytes()]))
    };
    route(8, [10, 0, 0, 0], [10, 0, 0, 1], 0)?;
    route(24, [10, 0, 1, 0], [0; 4], 1)?;
    route(32, hosts::ipv4(4), [10, 9, 9, 9], 2)?;
    // The port of this route has no device.
    route(32, hosts::ipv4(2), [0; 4], 7)?;
    route(30, [192, 0, 2, 8], [10, 0, 0, 1], 2)?;
    for host in 0..3 {
        let addresses = [hosts::ethernet(host), [2, 0, 0, 0, 9, 9]].concat();
        target.update("neighbours", &hosts::ipv4(host), &addresses)?;
    }
    Ok(())
}

fn queues(target: &mut dyn Target, action: u32, options: u32) -> Result<(), Error> {
    let settings = [action, 2, options].map(u32::to_ne_bytes).concat();
    target.update("settings", &FIRST, &settings)
}

fn widened(address: [u8; 4]) -> [u8; 16] {
    let mut wide = [0; 16];
    wide[..4].copy_from_slice(&address);
    wide
}

fn tunnels(target: &mut dyn Target) -> Result<(), Error> {
    for host in 0..hosts::HOSTS {
        for port in hosts::SERVICES {
            for protocol in [6u32, 17] {
                let families = [(widened(hosts::ipv4(host)), IPV4), (hosts::ipv6(host), IPV6)];
                for (address, family) in families {
                    if (u16::from(host) + port) % 3 == 0 {
                        continue;
                    }
                    let key =
                        bytes(&[&address, &port.to_be_bytes(), &family, &protocol.to_ne_bytes()]);
                    let link = hosts::ethernet(host);
                    let value = bytes(&[&hosts::ipv6(1), &hosts::ipv6(host), &link, &family]);
                    // The map has room for 256 entries.
                    if port != 8080 {
                        target.update("tunnels", &key, &value)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn one_device(target: &mut dyn Target) -> Result<(), Error> {
    target.update("devices", &FIRST, &bytes(&[&2u32.to_ne_bytes(), &[0; 4]]))
}

fn firewall(target: &mut dyn Target) -> Result<(), Error> {
    target.update("inside", &FIRST, &2u32.to_ne_bytes())?;
    ways(target, &[(0, 1), (1, 2)])
}

fn ways(target: &mut dyn Target, ways: &[(u32, u32)]) -> Result<(), Error> {
    for (place, device) in ways {
        target.update("ways", &place.to_ne_bytes(), &device.to_ne_bytes())?;
    }
    Ok(())
}

/// Services of both address families on virtual addresses, with all flags, and servers of both
/// families.
fn balancer(target: &mut dyn Target) -> Result<(), Error> {
    const RING: u32 = 1021;
    const SERVERS: u32 = 10;
    let mut number = 0u32;
    let mut service =
        |target: &mut dyn Target, address: &[u8; 16], port: u16, protocol: u32, flags: u32| {
            let key = bytes(&[address, &port.to_be_bytes(), &[0; 2], &protocol.to_ne_bytes()]);
            let value = bytes(&[&flags.to_ne_bytes(), &number.to_ne_bytes()]);
            target.update("services", &key, &value)?;
            for place in 0..RING {
                let key = (number * RING + place).to_ne_bytes();
                // A few slots have no server.
                let server = (place * 7 + number) % (SERVERS + 1);
                target.update("rings", &key, &server.to_ne_bytes())?;
            }
            number += 1;
            Ok::<_, Error>(())
        };
    let (one, other) = (widened(hosts::ipv4(8)), widened(hosts::ipv4(9)));
    let (one_ipv6, other_ipv6) = (hosts::ipv6(8), hosts::ipv6(9));
    // Flags: 1 ignore source port, 2 bypass flow table, 4 QUIC, 8 by target port, 16 timed.
    for (address, port, protocol, flags) in [
        (&one, 80, 6, 0),
        (&one, 443, 17, 4),
        (&one, 22, 6, 2),
        (&other, 0, 6, 1),
        (&other, 0, 17, 8 | 2),
        (&one_ipv6, 80, 6, 1),
        (&one_ipv6, 443, 17, 4 | 16),
        (&other_ipv6, 0, 17, 16),
        // Targets of echo requests.
        (&one, 0, 0, 0),
        (&one_ipv6, 0, 0, 0),
    ] {
        service(target, address, port, protocol, flags)?;
    }
    for server in 1..=SERVERS {
        let is_ipv6 = server % 2;
        let address = if is_ipv6 == 1 { hosts::ipv6(5) } else { widened(hosts::ipv4(5)) };
        let value = bytes(&[&address, &is_ipv6.to_ne_bytes()]);
        target.update("servers", &server.to_ne_bytes(), &value)?;
        target.update("quic_servers", &server.to_ne_bytes(), &server.to_ne_bytes())?;
    }
    target.update("settings", &FIRST, &1_000_000_000u64.to_ne_bytes())?;
    target.update("gateways", &FIRST, &[hosts::ethernet(3), hosts::ethernet(4)].concat())
}
