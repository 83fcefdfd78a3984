// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts with an independent stack, connected to a program by wires that carry whole frames. They
//! know only each other's IP addresses, and find the rest by ARP and neighbour discovery.

use freeport_golden::run::Machine;
use freeport_tests::both::Both;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::udp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, IpEndpoint, Ipv4Address};
use std::collections::VecDeque;

const PORT: u16 = 7;
/// Longer than the second within which the stack repeats no query.
const ROUND: Duration = Duration::from_millis(1_500);

/// Frames in flight to a host, and those from it.
#[derive(Default)]
struct Wire {
    arriving: VecDeque<Vec<u8>>,
    leaving: Vec<Vec<u8>>,
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Leaving<'w>(&'w mut Vec<Vec<u8>>);

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Wire {
    type RxToken<'w> = Arrived;
    type TxToken<'w> = Leaving<'w>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaving<'_>)> {
        Some((Arrived(self.arriving.pop_front()?), Leaving(&mut self.leaving)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

/// A host with one UDP socket.
struct Host {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Host {
    fn new(mac: EthernetAddress, address: IpCidr, gateway: Option<Ipv4Address>) -> Self {
        let mut wire = Wire::default();
        let mut interface = Interface::new(Config::new(mac.into()), &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| addresses.push(address).unwrap());
        if let Some(gateway) = gateway {
            interface.routes_mut().add_default_ipv4_route(gateway).unwrap();
        }
        let buffer =
            || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 8], vec![0; 8 * 1024]);
        let mut socket = udp::Socket::new(buffer(), buffer());
        socket.bind(PORT).unwrap();
        let mut sockets = SocketSet::new(vec![]);
        let socket = sockets.add(socket);
        Self { wire, interface, sockets, socket }
    }

    fn udp(&mut self) -> &mut udp::Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn send(&mut self, text: &[u8], to: IpAddress) {
        self.udp().send_slice(text, IpEndpoint::new(to, PORT)).unwrap();
    }

    fn receive(&mut self) -> Option<(Vec<u8>, IpAddress)> {
        let received = self.udp().recv().ok();
        received.map(|(text, from)| (text.to_vec(), from.endpoint.addr))
    }

    fn poll(&mut self, time: Instant) {
        self.interface.poll(time, &mut self.wire, &mut self.sockets);
    }
}

/// Moves frames between hosts, by their outer ends, and a program until no frame is left. The
/// second host echoes what it receives. Returns the frames that left the program.
fn settle(hosts: &mut [(&str, &str, Host)], dut: &mut dyn Machine, time: Instant) -> Vec<Vec<u8>> {
    let mut seen = vec![];
    for _ in 0..50 {
        let mut has_moved = false;
        for (at, (into, _, host)) in hosts.iter_mut().enumerate() {
            host.poll(time);
            while let Some((text, from)) = (at == 1).then(|| host.receive()).flatten() {
                host.send(&text, from);
                host.poll(time);
            }
            for frame in host.wire.leaving.drain(..) {
                has_moved = true;
                dut.feed(into, &frame).unwrap();
            }
        }
        dut.settle().unwrap();
        for (_, out_of, host) in hosts.iter_mut() {
            let frames = dut.take(out_of).unwrap();
            has_moved |= !frames.is_empty();
            seen.extend(frames.iter().cloned());
            host.wire.arriving.extend(frames);
        }
        if !has_moved {
            return seen;
        }
    }
    panic!("the hosts do not come to rest");
}

/// Two networks, 10.0.1.0/24 and 10.0.2.0/24, whose hosts resolve the program between them, and
/// which resolves the hosts.
const BETWEEN: &str = "
TypeDemux :: types1
TypeDemux :: types2
ArpResponder<4> :: own1
ArpResponder<4> :: own2
ArpQuerier<4> :: next1
ArpQuerier<4> :: next2
SetMacs :: macs1
SetMacs :: macs2
Mux<3> :: end1
Mux<3> :: end2
Mux<4> :: rest
Discard :: unused
from_tor -> types1
types1 [ipv4] -> macs1 -> [in] next2 [out] -> [in[0]] end2
types1 [arp] -> own1 [reply] -> [in[1]] end1
own1 [out] -> [arp] next1 [request] -> [in[2]] end1 -> to_tor
from_nic -> types2
types2 [ipv4] -> macs2 -> [in] next1 [out] -> [in[0]] end1
types2 [arp] -> own2 [reply] -> [in[1]] end2
own2 [out] -> [arp] next2 [request] -> [in[2]] end2 -> to_nic
types1 [ipv6] -> [in[0]] rest
types1 [others] -> [in[1]] rest
types2 [ipv6] -> [in[2]] rest
types2 [others] -> [in[3]] rest -> unused
.manager {
    .init {
        own1.add(10.0.1.1, 32, 02:00:00:00:00:01);
        own2.add(10.0.2.1, 32, 02:00:00:00:00:02);
        next1.configure(10.0.1.1, 24, 02:00:00:00:00:01, 0);
        next2.configure(10.0.2.1, 24, 02:00:00:00:00:02, 0);
        macs1.set_target(0);
        macs2.set_target(0);
    }
}
";

#[test]
fn hosts_of_two_networks_find_each_other_by_arp() {
    let both = Both::new(BETWEEN);
    for mut dut in both.machines() {
        let host = |network: u8| {
            let address = IpCidr::new(IpAddress::v4(10, 0, network, 9), 24);
            let mac = EthernetAddress([2, 0, 0, 0, 9, network]);
            Host::new(mac, address, Some(Ipv4Address::new(10, 0, network, 1)))
        };
        let mut hosts = [("from_tor", "to_tor", host(1)), ("from_nic", "to_nic", host(2))];
        let mut time = Instant::ZERO;
        let mut answered = vec![];
        for round in 0..8u8 {
            time += ROUND;
            hosts[0].2.send(&[round], IpAddress::v4(10, 0, 2, 9));
            let seen = settle(&mut hosts, dut.as_mut(), time);
            let requests =
                seen.iter().filter(|it| it[12..14] == [8, 6] && it[20..22] == [0, 1]).count();
            while let Some((text, from)) = hosts[0].2.receive() {
                assert_eq!(from, IpAddress::v4(10, 0, 2, 9));
                answered.push(text[0]);
            }
            // Resolving the way there costs one packet, and so does the way back.
            let (wanted, asks): (&[u8], usize) = match round {
                0 | 1 => (&[], 1),
                _ => (&[2, 3, 4, 5, 6, 7][..usize::from(round) - 1], 0),
            };
            assert_eq!((&answered[..], requests), (wanted, asks), "round {round}");
        }
    }
}

#[test]
fn a_host_finds_an_own_address_of_ipv6() {
    let text = "NeighbourResponder :: dut\nfrom_tor -> dut\ndut [reply] -> to_tor
        dut [out] -> to_nic";
    let both = Both::new(text);
    for mut dut in both.machines() {
        let own: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0002;
        let mac = EthernetAddress([2, 0, 0, 0, 0, 2]);
        let arguments = [own.to_le_bytes().to_vec(), vec![2, 0, 0, 0, 0, 2]];
        assert!(dut.call("add", &arguments).unwrap().unwrap().bit(0));
        let address = IpAddress::v6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let host = Host::new(EthernetAddress([2, 0, 0, 0, 9, 1]), IpCidr::new(address, 64), None);
        let mut hosts = [("from_tor", "to_tor", host)];
        hosts[0].2.send(b"hello", IpAddress::v6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));
        let mut passed = vec![];
        for round in 1..4 {
            settle(&mut hosts, dut.as_mut(), Instant::ZERO + ROUND * round);
            passed.extend(dut.take("to_nic").unwrap());
        }
        let frame = passed.iter().find(|it| it.ends_with(b"hello")).expect("a datagram");
        assert_eq!(frame[..6], *mac.as_bytes());
    }
}
