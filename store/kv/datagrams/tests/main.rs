// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams over the loopback interface.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use freeport_kv_datagrams::{BATCH, Inbox, Outbox, Sent, Socket};

const BUFFER_BYTES: usize = 1 << 20;

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn socket() -> Socket {
    Socket::bind(loopback(), false, BUFFER_BYTES).expect("a port is free")
}

fn plain() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(loopback()).expect("a port is free");
    let address = socket.local_addr().expect("it is bound");
    (socket, address)
}

/// On the loopback interface, a datagram has arrived when it was sent.
fn receive_all(inbox: &mut Inbox, socket: &Socket) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut all = vec![];
    while inbox.receive(socket).is_ok() {
        all.extend(inbox.iter().map(|datagram| (datagram.sender, datagram.bytes.to_vec())));
    }
    all
}

#[test]
fn datagrams_keep_their_order_sender_and_size() {
    let (receiver, mut inbox, mut outbox) = (socket(), Inbox::default(), Outbox::default());
    let target = receiver.address().expect("it is bound");
    let senders = [socket(), socket()];
    let sizes = [0, 1, 1_472, 9_000, 60_000];
    for (size, sender) in sizes.into_iter().zip(senders.iter().cycle()) {
        outbox.push(target, &vec![size as u8; size]);
        let sent = outbox.send(sender);
        assert_eq!(sent, Sent { sent: 1, bytes: size as u64, dropped: 0 });
    }
    let received = receive_all(&mut inbox, &receiver);
    let addresses = senders.each_ref().map(|sender| sender.address().expect("it is bound"));
    let expected = sizes.into_iter().zip(addresses.into_iter().cycle());
    let expected: Vec<_> =
        expected.map(|(size, sender)| (sender, vec![size as u8; size])).collect();
    assert_eq!(received, expected);
    assert!(inbox.receive(&receiver).is_err() && inbox.get(0).is_none(), "nothing is left");
}

#[test]
fn many_datagrams_take_few_calls() {
    let (sender, receiver, mut inbox) = (socket(), socket(), Inbox::default());
    let target = receiver.address().expect("it is bound");
    let mut outbox = Outbox::default();
    let count = 2 * BATCH + 3;
    (0..count).for_each(|number| outbox.push(target, &[number as u8; 10]));
    assert_eq!(outbox.len(), count);
    let sent = outbox.send(&sender);
    assert_eq!(sent, Sent { sent: count as u64, bytes: 10 * count as u64, dropped: 0 });
    assert!(outbox.is_empty());
    assert_eq!(inbox.receive(&receiver).expect("datagrams have come"), BATCH);
    assert_eq!(inbox.get(BATCH - 1).expect("it is full").bytes, [BATCH as u8 - 1; 10]);
    assert_eq!(receive_all(&mut inbox, &receiver).len(), count - BATCH);
}

#[test]
fn a_datagram_that_cannot_be_sent_is_dropped_alone() {
    let (sender, mut outbox) = (socket(), Outbox::default());
    let (receiver, target) = plain();
    outbox.push(target, b"first");
    outbox.push((Ipv6Addr::LOCALHOST, 9).into(), b"of another family");
    outbox.push(target, &[0; 70_000]);
    outbox.push(target, b"last");
    assert_eq!(outbox.send(&sender), Sent { sent: 2, bytes: 9, dropped: 2 });
    let mut buffer = [0; 100];
    for expected in ["first", "last"] {
        let bytes = receiver.recv(&mut buffer).expect("it was sent");
        assert_eq!(&buffer[..bytes], expected.as_bytes());
    }
}

#[test]
fn an_address_may_be_shared() {
    let first = Socket::bind(loopback(), true, BUFFER_BYTES).expect("a port is free");
    let address = first.address().expect("it is bound");
    Socket::bind(address, true, BUFFER_BYTES).expect("both share it");
    let error = Socket::bind(address, false, BUFFER_BYTES).expect_err("it does not share");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}
