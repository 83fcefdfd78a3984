// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of the kinds that users commonly write.

use super::{DROP, FIRST, PASS, REDIRECT, Scenario, TX, bytes, plain};
use crate::traffic::{Kind, hosts};
use crate::{Error, Target};

const TCP: &[Kind] = &[Kind::Tcp, Kind::Tcp, Kind::Tcp, Kind::Udp];
const IP: &[Kind] = &[Kind::Tcp, Kind::Udp, Kind::TcpIpv6, Kind::UdpIpv6, Kind::Icmp, Kind::Other];
const ALL: &[Kind] = &[
    Kind::Tcp,
    Kind::TcpIpv6,
    Kind::Udp,
    Kind::UdpIpv6,
    Kind::Icmp,
    Kind::IcmpIpv6,
    Kind::Dns,
    Kind::Tunnelled,
    Kind::Extended,
    Kind::Other,
];

pub fn scenarios() -> Vec<Scenario> {
    let counted = &[Kind::Tcp, Kind::Udp, Kind::Icmp, Kind::Question, Kind::Other];
    vec![
        Scenario { set_up: vlans, ..plain("vlan", "translate", IP, &[DROP, PASS, TX]) },
        Scenario {
            set_up: bucket,
            unsteady: &[("buckets", 16..24)],
            ..plain("rate_limiter", "limit", IP, &[DROP, PASS])
        },
        Scenario { set_up: secrets, ..plain("syn_cookie", "check", COOKIES, &[DROP, PASS, TX]) },
        plain("port_knocking", "guard", KNOCKING, &[DROP, PASS]),
        Scenario { set_up: names, ..plain("dns_filter", "filter", NAMES, &[DROP, PASS]) },
        Scenario { set_up: ends, ..plain("decapsulate", "decapsulate", TUNNELS, &[DROP, PASS]) },
        Scenario { set_up: addresses, ..plain("nat64", "translate", NAT64, &[DROP, PASS, TX]) },
        plain("conntrack", "follow", TCP, &[DROP, PASS]),
        plain("heavy_hitters", "watch", IP, &[PASS]),
        plain("parser_chain", "parse_ethernet", ALL, &[DROP, PASS]),
        plain("metadata", "annotate", ALL, &[PASS]),
        plain("counters", "account", counted, &[DROP, PASS, TX]),
        Scenario {
            unsteady: &[(".data.chance", 0..16)],
            ..plain("sampler", "watch", ALL, &[PASS])
        },
        Scenario { set_up: prefixes, ..plain("acl", "filter", IP, &[DROP, PASS]) },
        Scenario { set_up: tenants, ..plain("tenants", "isolate", IP, &[DROP, PASS]) },
        Scenario { set_up: bridge, ..plain("spread", "spread", ALL, &[DROP, REDIRECT]) },
        plain("checksum", "verify", &[Kind::Udp, Kind::Udp, Kind::Dns, Kind::Tcp], &[DROP, PASS]),
        plain("fib_forward", "forward", IP, &[DROP, PASS, REDIRECT]),
        plain(
            "request_filter",
            "filter",
            &[Kind::Request, Kind::Request, Kind::Tcp],
            &[DROP, PASS],
        ),
        plain("length_histogram", "measure", ALL, &[PASS]),
        Scenario { set_up: ports, ..plain("port_pool", "pool", TCP, &[DROP, PASS]) },
        plain("deliver", "deliver", IP, &[DROP, PASS]),
    ]
}

const COOKIES: &[Kind] = &[Kind::Tcp, Kind::Reply, Kind::Reply, Kind::Udp];
const KNOCKING: &[Kind] = &[Kind::Knock, Kind::Knock, Kind::Knock, Kind::Tcp];
const NAMES: &[Kind] = &[Kind::Dns, Kind::Dns, Kind::Dns, Kind::Udp];
const TUNNELS: &[Kind] = &[Kind::Tunnelled, Kind::Tunnelled, Kind::Udp];
const NAT64: &[Kind] = &[Kind::Translated, Kind::Translated, Kind::Other];

fn vlans(target: &mut dyn Target) -> Result<(), Error> {
    let mut treat = |vlan: u16, action: u32, new: u16| {
        let value = bytes(&[&action.to_ne_bytes(), &new.to_ne_bytes(), &[0; 2]]);
        target.update("treatments", &vlan.to_ne_bytes(), &value)
    };
    treat(0, 2, 33)?;
    treat(hosts::VLANS[0], 1, 0)?;
    treat(hosts::VLANS[1], 3, 44)?;
    treat(hosts::VLANS[2], 0, 0)?;
    // There is no such action.
    treat(hosts::VLANS[3], 9, 0)
}

/// Sets a rate of 0, so that buckets are never refilled and the time does not matter.
fn bucket(target: &mut dyn Target) -> Result<(), Error> {
    target.update("settings", &FIRST, &bytes(&[&0u64.to_ne_bytes(), &6_000u64.to_ne_bytes()]))
}

fn secrets(target: &mut dyn Target) -> Result<(), Error> {
    target.update("secrets", &FIRST, &[7, 1, 2, 3, 99, 5, 6, 7])
}

fn names(target: &mut dyn Target) -> Result<(), Error> {
    for name in [&b"\x07blocked"[..], b"\x07example\x03org", b"\x01a\x01a"] {
        let mut key = name.to_vec();
        key.resize(64, 0);
        target.update("listed", &key, &[0; 8])?;
    }
    Ok(())
}

fn ends(target: &mut dyn Target) -> Result<(), Error> {
    for host in 0..hosts::HOSTS - 3 {
        for key in hosts::TUNNELS {
            // GRE keys, and VXLAN network identifiers, which are shifted by one byte.
            for key in [key, key << 8] {
                let key = bytes(&[&hosts::ipv4(host), &key.to_be_bytes()]);
                target.update("tunnels", &key, &[0; 8])?;
            }
        }
    }
    Ok(())
}

fn addresses(target: &mut dyn Target) -> Result<(), Error> {
    for host in 0..hosts::HOSTS - 3 {
        target.update("outward", &hosts::ipv6(host), &hosts::ipv4(host))?;
        target.update("inward", &hosts::ipv4(host), &hosts::ipv6(host))?;
    }
    Ok(())
}

fn prefixes(target: &mut dyn Target) -> Result<(), Error> {
    let rule =
        |denied: u32, number: u32| bytes(&[&denied.to_ne_bytes(), &number.to_ne_bytes(), &[0; 8]]);
    let rules = [(0u32, [0; 4], 0), (8, [10, 0, 0, 0], 1), (24, [10, 0, 1, 0], 2)];
    for (at, (length, address, denied)) in rules.into_iter().enumerate() {
        let key = bytes(&[&length.to_ne_bytes(), &address]);
        target.update("rules_ipv4", &key, &rule(denied, at as u32))?;
    }
    let key = bytes(&[&32u32.to_ne_bytes(), &hosts::ipv4(4)]);
    target.update("rules_ipv4", &key, &rule(7, 4))?;
    for (at, host) in (0..hosts::HOSTS).enumerate() {
        let length = [128u32, 48, 64, 127][at % 4];
        let key = bytes(&[&length.to_ne_bytes(), &hosts::ipv6(host)]);
        target.update("rules_ipv6", &key, &rule(at as u32 % 8, at as u32))?;
    }
    target.delete("rules_ipv6", &bytes(&[&128u32.to_ne_bytes(), &hosts::ipv6(8)]))
}

fn tenants(target: &mut dyn Target) -> Result<(), Error> {
    for vlan in [hosts::VLANS[0], hosts::VLANS[1], hosts::VLANS[2]] {
        target.put_inside("targets", &u32::from(vlan).to_ne_bytes(), "targets_of_first")?;
    }
    for host in 0..hosts::HOSTS / 2 {
        target.update("targets_of_first", &hosts::ipv4(host), &[0; 8])?;
    }
    Ok(())
}

fn bridge(target: &mut dyn Target) -> Result<(), Error> {
    for device in [1u32, 2, 3] {
        let value = bytes(&[&device.to_ne_bytes(), &[0; 4]]);
        target.update("devices", &device.to_ne_bytes(), &value)?;
    }
    target.update("cpus", &FIRST, &bytes(&[&192u32.to_ne_bytes(), &[0; 4]]))
}

fn ports(target: &mut dyn Target) -> Result<(), Error> {
    (0..40u32).try_for_each(|port| target.push("free_ports", &(50_000 + port).to_ne_bytes()))
}
