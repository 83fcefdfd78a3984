// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A complete stack, smoltcp's, with a wire that the test controls.

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::AnySocket;
use smoltcp::socket::icmp::{Endpoint, PacketBuffer, PacketMetadata, Socket};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, HardwareAddress, Icmpv6Packet, Icmpv6Repr, IpAddress, IpCidr, IpProtocol,
    Ipv4Address, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
};
use std::collections::VecDeque;

const PEER: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);
const OURS: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 2]);

/// A wire whose far end the test controls.
#[derive(Default)]
pub struct Wire {
    pub to_stack: VecDeque<Vec<u8>>,
    from_stack: Vec<Vec<u8>>,
}

/// A frame that the stack receives.
pub struct Received(Vec<u8>);
/// Destination of frames that the stack sends.
pub struct Sending<'w>(&'w mut Vec<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Wire {
    type RxToken<'w> = Received;
    type TxToken<'w> = Sending<'w>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        let frame = self.to_stack.pop_front()?;
        Some((Received(frame), Sending(&mut self.from_stack)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.from_stack))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1_514;
        capabilities
    }
}

/// A stack with an ICMP socket, and a neighbour that it can resolve.
pub struct Host {
    pub wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    clock: i64,
}

impl Host {
    pub fn new(address: IpAddress) -> Self {
        let mut wire = Wire::default();
        let config = Config::new(HardwareAddress::Ethernet(PEER));
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        let bits = if matches!(address, IpAddress::Ipv4(_)) { 24 } else { 64 };
        interface.update_ip_addrs(|all| all.push(IpCidr::new(address, bits)).unwrap());
        let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; 64], vec![0; 60_000]);
        let mut sockets = SocketSet::new(vec![]);
        let socket = sockets.add(Socket::new(buffer(), buffer()));
        Self { wire, interface, sockets, socket, clock: 0 }
    }

    /// Adds another socket.
    pub fn add(&mut self, socket: impl AnySocket<'static>) {
        self.sockets.add(socket);
    }

    /// Routes everything on other links over this neighbour.
    pub fn route_over(&mut self, gateway: Ipv4Address) {
        self.interface.routes_mut().add_default_ipv4_route(gateway).unwrap();
    }

    /// Returns the ICMP socket.
    pub fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    /// Binds the ICMP socket.
    pub fn socket_bound_to(&mut self, endpoint: Endpoint) {
        self.socket().bind(endpoint).unwrap();
    }

    /// Returns what it sends now, except queries for neighbours, which are answered.
    pub fn turn(&mut self, neighbour: IpAddress) -> Vec<Vec<u8>> {
        let mut sent = vec![];
        for _ in 0..20 {
            self.clock += 100;
            let now = Instant::from_millis(self.clock);
            self.interface.poll(now, &mut self.wire, &mut self.sockets);
            for frame in std::mem::take(&mut self.wire.from_stack) {
                match neighbour_answer(&frame, neighbour) {
                    Some(answer) => self.wire.to_stack.push_back(answer),
                    None => sent.push(frame),
                }
            }
        }
        sent
    }
}

fn link(payload: usize, ethertype: EthernetProtocol) -> Vec<u8> {
    let repr = EthernetRepr { src_addr: OURS, dst_addr: PEER, ethertype };
    let mut frame = vec![0; 14 + payload];
    repr.emit(&mut EthernetFrame::new_unchecked(&mut frame));
    frame
}

/// Returns the answer to a neighbour query, if the frame is one.
fn neighbour_answer(frame: &[u8], neighbour: IpAddress) -> Option<Vec<u8>> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    match (ethernet.ethertype(), neighbour) {
        (EthernetProtocol::Arp, IpAddress::Ipv4(ours)) => {
            let packet = ArpPacket::new_checked(ethernet.payload()).ok()?;
            let ArpRepr::EthernetIpv4 { source_hardware_addr, source_protocol_addr, .. } =
                ArpRepr::parse(&packet).ok()?
            else {
                return None;
            };
            let answer = ArpRepr::EthernetIpv4 {
                operation: ArpOperation::Reply,
                source_hardware_addr: OURS,
                source_protocol_addr: ours,
                target_hardware_addr: source_hardware_addr,
                target_protocol_addr: source_protocol_addr,
            };
            let mut frame = link(answer.buffer_len(), EthernetProtocol::Arp);
            answer.emit(&mut ArpPacket::new_unchecked(&mut frame[14..]));
            Some(frame)
        }
        (EthernetProtocol::Ipv6, IpAddress::Ipv6(ours)) => {
            let packet = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
            if packet.payload()[0] != 135 {
                return None;
            }
            let answer = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
                flags: NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE,
                target_addr: ours,
                lladdr: Some(OURS.into()),
            });
            let ip = Ipv6Repr {
                src_addr: ours,
                dst_addr: packet.src_addr(),
                next_header: IpProtocol::Icmpv6,
                payload_len: answer.buffer_len(),
                hop_limit: 255,
            };
            let mut frame = link(40 + answer.buffer_len(), EthernetProtocol::Ipv6);
            ip.emit(&mut Ipv6Packet::new_unchecked(&mut frame[14..]));
            let mut message = Icmpv6Packet::new_unchecked(&mut frame[54..]);
            let checksums = ChecksumCapabilities::default();
            answer.emit(&ip.src_addr, &ip.dst_addr, &mut message, &checksums);
            Some(frame)
        }
        _ => None,
    }
}
