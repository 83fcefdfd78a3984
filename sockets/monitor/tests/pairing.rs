// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Claims of real sockets, by members in processes of their own.

use crate::harness::{Heard, Member, Running, connection, eventually, patient};
use freeport_monitor::Options;
use freeport_sockets_proto::message::{Reply, Request};
use freeport_sockets_proto::slab::{self, SLAB_BYTES, SLOTS, Side};
use freeport_sockets_proto::{Reason, VERSION};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};

/// Claims both ends, and returns both replies.
fn paired<T: AsFd>(one: &Member, other: &Member, ends: &(T, T)) -> [Heard; 2] {
    one.claim(11, ends.0.as_fd());
    other.claim(22, ends.1.as_fd());
    [one.hear(), other.hear()]
}

/// Returns the cookie of a socket.
fn cookie_of(socket: &impl AsFd) -> u64 {
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    let (level, name) = (libc::SOL_SOCKET, libc::SO_COOKIE);
    let number = std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd());
    // SAFETY: there is room for the answer, and `length` is its size.
    let result =
        unsafe { libc::getsockopt(number, level, name, (&raw mut cookie).cast(), &mut length) };
    assert_eq!(result, 0);
    cookie
}

#[test]
fn two_ends_get_the_same_slot_and_each_its_side() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let ends = connection(address);
        let heard = paired(&one, &other, &ends);
        let [here, there] = heard.each_ref().map(|it| it.reply);
        let Reply::Paired { token: 11, slab, slot, side, fenced: false, peer, cookie } = here
        else {
            panic!("{here:?}");
        };
        assert_eq!((peer, cookie), (other.pid as u32, cookie_of(&ends.1)));
        let (side, peer, cookie) = (side.other(), one.pid as u32, cookie_of(&ends.0));
        let expected = Reply::Paired { token: 22, slab, slot, side, fenced: false, peer, cookie };
        assert_eq!(there, expected, "{address}");
        // Only the first pairing in a slab carries it.
        let is_first = address == "127.0.0.1:0";
        assert_eq!(heard.each_ref().map(|it| it.slab.is_some()), [is_first; 2]);
    }
}

#[test]
fn ends_of_unix_sockets_are_paired_as_well() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let path = tempfile::tempdir().unwrap().keep().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let named = (UnixStream::connect(&path).unwrap(), listener.accept().unwrap().0);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let mut slots = vec![];
    // Other connections at the same path are separate.
    for ends in [&UnixStream::pair().unwrap(), &named] {
        let heard = paired(&one, &other, ends);
        assert_eq!(heard[0].place(), heard[1].place());
        slots.push(heard[0].place());
    }
    assert_ne!(slots[0], slots[1]);
    let list = running.control().list().unwrap();
    let ends = |at: usize| &list["connections"][at]["ends"];
    assert_eq!([&ends(0)[0]["local"], &ends(0)[1]["local"]], ["unix", "unix"]);
    let path = path.to_str().unwrap();
    assert_eq!([&ends(1)[0]["local"], &ends(1)[1]["local"]], ["unix", path]);
    assert_eq!([&ends(1)[0]["remote"], &ends(1)[1]["remote"]], [path, "unix"]);
    one.claim(3, named.0.as_fd());
    assert_eq!(one.hear().reply, Reply::Refused { token: 3, reason: Reason::Shared });
}

#[test]
fn a_unix_socket_that_is_connected_to_another_one_waits() {
    let running = Running::new(Options::default());
    let (one, other) = (running.member(), running.member());
    let (here, there) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    one.claim(1, here.0.as_fd());
    other.claim(2, there.1.as_fd());
    let plain = |token| Reply::Refused { token, reason: Reason::PeerPlain };
    assert_eq!([one.hear().reply, other.hear().reply], [plain(1), plain(2)]);
    // The end is inspected again when the second one is claimed: by then only one is connected.
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    one.claim(3, here.0.as_fd());
    one.claim(9, one.socket.as_fd());
    assert_eq!(one.hear().reply, Reply::Refused { token: 9, reason: Reason::NotStream });
    here.0.shutdown(Shutdown::Write).unwrap();
    other.claim(4, here.1.as_fd());
    assert_eq!(other.hear().reply, Reply::Refused { token: 4, reason: Reason::NotConnected });
}

#[test]
fn both_have_the_same_memory_which_cannot_be_cut() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let heard = paired(&one, &other, &connection("127.0.0.1:0"));
    let [here, there] = heard.map(|it| it.slab.expect("the first slot comes with its slab"));
    here.write_all_at(b"here", 5000).unwrap();
    let mut read = [0; 4];
    there.read_exact_at(&mut read, 5000).unwrap();
    assert_eq!(&read, b"here");
    assert_eq!(here.metadata().unwrap().size(), SLAB_BYTES as u64);
    assert!(here.set_len(4096).is_err());
    // SAFETY: no memory is passed.
    let flags = unsafe { libc::fcntl(here.as_raw_fd(), libc::F_GETFD) };
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC, "as the harness asks for");
}

#[test]
fn who_cannot_pass_a_barrier_makes_both_pass_fences() {
    let running = Running::new(patient());
    let one = running.member();
    let other = Member::silent(running.location.path(), None);
    other.say(&Request::Hello { version: VERSION, membarrier: false });
    other.hear();
    for heard in paired(&one, &other, &connection("127.0.0.1:0")) {
        assert!(matches!(heard.reply, Reply::Paired { fenced: true, .. }), "{heard:?}");
    }
}

#[test]
fn a_slot_that_both_have_released_is_zero_and_given_again() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let heard = paired(&one, &other, &connection("127.0.0.1:0"));
    let place = heard[0].place();
    let file = heard[0].slab.as_ref().unwrap();
    let area = |number| slab::Ring::to(Side::First).area(place.1, number).unwrap();
    let given_back = slab::refund(place.1, Side::Second).unwrap();
    for offset in [slab::page(place.1).unwrap(), area(0), area(1), area(3), given_back] {
        file.write_all_at(b"secret", offset as u64).unwrap();
    }
    let release = Request::Release { slab: place.0, slot: place.1 };
    one.say(&release);
    let second = paired(&one, &other, &connection("127.0.0.1:0"));
    assert_ne!(second[0].place(), place, "one of both still has it");
    other.say(&release);
    let third = paired(&one, &other, &connection("127.0.0.1:0"));
    assert_eq!(third[0].place(), place);
    assert!(third[0].slab.is_none());
    for (at, bytes) in slab::places(place.1).unwrap() {
        let mut all = vec![1; bytes];
        file.read_exact_at(&mut all, at as u64).unwrap();
        assert!(all.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_slab_that_is_full_is_followed_by_another() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let mut places = vec![];
    let mut kept = vec![];
    for number in 0..=SLOTS {
        let ends = connection("127.0.0.1:0");
        let heard = paired(&one, &other, &ends);
        assert_eq!(heard[0].slab.is_some(), number % SLOTS == 0, "{number}");
        places.push(heard[0].place());
        kept.push(ends);
    }
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), SLOTS as usize + 1);
}

#[test]
fn a_third_member_gets_a_slab_of_its_own() {
    let running = Running::new(patient());
    let (one, other, third) = (running.member(), running.member(), running.member());
    let first = paired(&one, &other, &connection("127.0.0.1:0"));
    let second = paired(&one, &third, &connection("127.0.0.1:0"));
    assert_ne!(first[0].place().0, second[0].place().0);
    let inode = |heard: &Heard| heard.slab.as_ref().unwrap().metadata().unwrap().ino();
    assert_ne!(inode(&first[0]), inode(&second[0]));
    assert_eq!(inode(&second[0]), inode(&second[1]));
}

#[test]
fn what_a_dead_member_had_is_released() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let heard = paired(&one, &other, &connection("127.0.0.1:0"));
    let (slab, slot) = heard[0].place();
    let file = heard[0].slab.as_ref().unwrap();
    file.write_all_at(b"left", 0).unwrap();
    drop(other);
    eventually("one member is gone", || running.control().stats().unwrap()["members"] == 1);
    let stats = running.control().stats().unwrap();
    assert_eq!((&stats["connections"], &stats["slabs"]), (&1.into(), &1.into()));
    one.say(&Request::Release { slab, slot });
    eventually("nobody has it", || running.control().stats().unwrap()["slabs"] == 0);
    let mut read = [1; 4];
    file.read_exact_at(&mut read, 0).unwrap();
    assert_eq!(read, [0; 4]);
}

#[test]
fn an_end_whose_other_end_nobody_claims_stays_in_the_kernel() {
    let running = Running::new(Options::default());
    let one = running.member();
    let (client, mut server) = connection("127.0.0.1:0");
    one.claim(5, client.as_fd());
    let refused = |reason| Reply::Refused { token: 5, reason };
    assert_eq!(one.hear().reply, refused(Reason::PeerPlain));
    // The descriptor was closed: the peer sees the end as soon as the client closes.
    drop(client);
    assert_eq!(std::io::Read::read(&mut server, &mut [0]).unwrap(), 0);
}

#[test]
fn ends_of_one_process_and_what_is_no_connection_are_refused() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let refused = |token, reason| Reply::Refused { token, reason };
    let ends = connection("127.0.0.1:0");
    let heard = paired(&one, &one, &ends).map(|it| it.reply);
    assert_eq!(heard, [refused(11, Reason::SameProcess), refused(22, Reason::SameProcess)]);

    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    // Answered only after the previous claim was handled.
    one.claim(9, one.socket.as_fd());
    assert_eq!(one.hear().reply, refused(9, Reason::NotStream));
    ends.0.shutdown(Shutdown::Write).unwrap();
    other.claim(2, ends.1.as_fd());
    assert_eq!(other.hear().reply, refused(2, Reason::NotConnected));

    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    one.claim(3, datagrams.as_fd());
    assert_eq!(one.hear().reply, refused(3, Reason::NotStream));
    one.say(&Request::Claim { token: 6, descriptor: 0, inherited: false });
    assert_eq!(one.hear().reply, refused(6, Reason::Resources));
}

#[test]
fn an_end_is_claimed_once() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let ends = connection("127.0.0.1:0");
    let heard = paired(&one, &other, &ends);
    one.claim(3, ends.0.as_fd());
    let shared = |token| Reply::Refused { token, reason: Reason::Shared };
    assert_eq!(one.hear().reply, shared(3));
    let third = running.member();
    third.claim(4, ends.0.as_fd());
    assert_eq!(third.hear().reply, shared(4));
    // Once both have released it, it may be claimed again.
    let (slab, slot) = heard[0].place();
    one.say(&Request::Release { slab, slot });
    other.say(&Request::Release { slab, slot });
    eventually("nobody has it", || running.control().stats().unwrap()["connections"] == 0);
    assert_eq!(paired(&one, &other, &ends)[0].place(), (slab, slot));
}

/// A child has the slabs of its parent mapped, and must not see later connections.
#[test]
fn a_member_that_forks_gets_no_further_slots_in_its_slabs() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let before = connection("127.0.0.1:0");
    let (slab, slot) = paired(&one, &other, &before)[0].place();
    one.say(&Request::Fork);
    let after = connection("127.0.0.1:0");
    let heard = paired(&one, &other, &after);
    assert_ne!(heard[0].place().0, slab);
    assert!(heard.iter().all(|it| it.slab.is_some() && it.notices.is_some()));
    for member in [&one, &other] {
        member.say(&Request::Release { slab, slot });
    }
    for member in [&one, &other] {
        assert_eq!(member.hear().reply, Reply::Over { slab });
    }
}
