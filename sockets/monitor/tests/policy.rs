// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pairing by users, rules and namespaces, and the answers to users.

use crate::harness::{
    self, Member, NOBODY, Running, connection, eventually, is_root, outcome, patient,
};
use freeport_monitor::{Control, Event, Options, Policy, socket, why};
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::message::{Reply, Request};
use freeport_sockets_proto::slab::{self, Side, flag, word};
use freeport_testbed::skip;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[test]
fn rules_keep_users_apart() {
    if !is_root() {
        return skip("only root has processes of two users");
    }
    let running = Running::new(patient());
    let (root, nobody) = (running.member(), running.member_of(Some(NOBODY)));
    let other = running.member_of(Some(NOBODY));
    assert_eq!(outcome(&root, &nobody), None);
    let control = running.control();
    control.put_rule("deny other-user").unwrap();
    assert_eq!(outcome(&root, &nobody), Some(Reason::Policy));
    assert_eq!(outcome(&other, &nobody), None);
    control.put_rule("allow user 0 with user 65534").unwrap();
    assert_eq!(outcome(&root, &nobody), None);
    control.put_rule("deny address 127.0.0.0/8").unwrap();
    assert_eq!(outcome(&other, &nobody), Some(Reason::Policy));
    let rules = control.remove_rule(1).unwrap();
    let left = ["allow user 0 with user 65534", "deny other-user"];
    assert_eq!(rules["rules"], serde_json::json!(left));
    assert_eq!(outcome(&other, &nobody), None);
    assert!(control.remove_rule(3).is_err());
}

#[test]
fn a_monitor_begins_with_rules() {
    let policy = Policy::parse("# None may.\ndeny any\n").unwrap();
    let running = Running::new(Options { policy, ..patient() });
    assert_eq!(outcome(&running.member(), &running.member()), Some(Reason::Policy));
    assert_eq!(running.control().rules().unwrap()["rules"][0], "deny any");
}

#[test]
fn users_see_their_own_and_change_no_rules() {
    if !is_root() {
        return skip("only root has processes of two users");
    }
    let running = Running::new(patient());
    let members = [running.member(), running.member()];
    let ends = connection("127.0.0.1:0");
    members[0].claim(1, ends.0.as_fd());
    members[1].claim(2, ends.1.as_fd());
    members.iter().for_each(|member| _ = member.hear().place());
    let ask = |user, question: &str| {
        let asker = Member::silent(running.location.path(), user);
        socket::send(asker.socket.as_fd(), question.as_bytes(), &[]).unwrap();
        harness::await_readable(asker.socket.as_fd());
        let mut answer = [0; 65536];
        let length = socket::receive(asker.socket.as_fd(), &mut answer).unwrap().length;
        serde_json::from_slice::<serde_json::Value>(&answer[..length]).unwrap()
    };
    let list = |user| ask(user, r#"{"do": "list"}"#)["connections"].as_array().unwrap().len();
    assert_eq!((list(None), list(Some(NOBODY))), (1, 0));
    let reported = ask(Some(NOBODY), r#"{"do": "put rule", "rule": "allow any"}"#);
    assert!(reported["error"].as_str().unwrap().contains("only root"), "{reported}");
}

/// The same addresses in two network namespaces are two connections.
#[test]
fn namespaces_are_kept_apart() {
    if !is_root() {
        return skip("only root makes namespaces");
    }
    let running = Running::new(Options::default());
    let (one, other) = (running.member(), running.member());
    let [here, there] = [(); 2].map(|()| in_a_namespace(|| fixed_connection(20_111, 20_112)));
    assert_eq!(here.0.local_addr().unwrap(), there.0.local_addr().unwrap());
    one.claim(1, here.0.as_fd());
    other.claim(2, there.1.as_fd());
    let plain = |token| Reply::Refused { token, reason: Reason::PeerPlain };
    assert_eq!([one.hear().reply, other.hear().reply], [plain(1), plain(2)]);
    // Within one namespace they are paired, wherever the monitor is.
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    one.claim(3, there.0.as_fd());
    other.claim(4, there.1.as_fd());
    assert_eq!(one.hear().place(), other.hear().place());
    // The monitor knows only the Unix sockets of its own namespace.
    let (local, _) = in_a_namespace(|| UnixStream::pair().unwrap());
    one.claim(5, local.as_fd());
    assert_eq!(one.hear().reply, Reply::Refused { token: 5, reason: Reason::Namespace });
}

/// Returns what `make` creates in a new network namespace.
fn in_a_namespace<T: Send>(make: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            // SAFETY: affects only this thread, which ends here.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
            bring_up_loopback();
            make()
        });
        inside.join().unwrap()
    })
}

fn bring_up_loopback() {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    // SAFETY: all zero is a value of this structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the call reads the request, which outlives the call.
    assert_eq!(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) }, 0);
}

/// Makes a connection from one port to another.
fn fixed_connection(from: u16, to: u16) -> (TcpStream, TcpStream) {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let listener = TcpListener::bind(address(to)).unwrap();
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    // SAFETY: the descriptor is new and has no other owner.
    let client: TcpStream = unsafe { std::os::fd::FromRawFd::from_raw_fd(socket) };
    let named = |port: u16| libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let (ours, theirs) = (named(from), named(to));
    // SAFETY: the address has that length, and outlives the call.
    assert_eq!(unsafe { libc::bind(socket, (&raw const ours).cast(), length) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::connect(socket, (&raw const theirs).cast(), length) }, 0);
    (client, listener.accept().unwrap().0)
}

#[test]
fn a_list_has_what_both_sides_say_in_their_slot() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    other.claim(2, ends.1.as_fd());
    let heard = one.hear();
    let Reply::Paired { slab: number, slot, side, .. } = heard.reply else { panic!("{heard:?}") };
    let file = heard.slab.unwrap();
    other.hear();
    let at = slab::page(slot).unwrap() + slab::state(side);
    for (offset, value) in [(word::SENT_BYTES, 1 << 30), (word::FLAGS, flag::SWITCHED)] {
        file.write_all_at(&u64::to_ne_bytes(value), (at + offset) as u64).unwrap();
    }
    let list = running.control().list().unwrap();
    let reported = &list["connections"][0];
    assert_eq!((&reported["slab"], &reported["slot"]), (&number.into(), &slot.into()));
    let end = &reported["ends"][side as usize];
    assert_eq!((&end["pid"], &end["descriptor"]), (&one.pid.into(), &7.into()));
    assert_eq!(end["local"], ends.0.local_addr().unwrap().to_string());
    assert_eq!((&end["sent_bytes"], &end["switched"]), (&(1_u64 << 30).into(), &true.into()));
    let other_end = &reported["ends"][side.other() as usize];
    assert_eq!((&other_end["sent_bytes"], &other_end["switched"]), (&0.into(), &false.into()));
    assert_ne!(side, Side::Second, "who joined first is first");
    // It is counted when it ends.
    one.say(&Request::Release { slab: number, slot });
    other.say(&Request::Release { slab: number, slot });
    let ended = || running.control().stats().unwrap()["ended"]["bytes"] == 1_u64 << 30;
    eventually("it has ended", ended);
}

#[test]
fn what_came_back_is_told_to_be_in_the_kernel() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    other.claim(2, ends.1.as_fd());
    let heard = one.hear();
    let ((slab, slot), file) = (heard.place(), heard.slab.unwrap());
    other.hear();
    let (control, pid) = (running.control(), std::process::id() as i32);
    let reported = |end: &TcpStream| why(&control, pid, end.as_raw_fd());
    assert_eq!(reported(&ends.1)["reason"], "Leaving");
    let at = slab::page(slot).unwrap() + slab::state(Side::First) + word::FLAGS;
    file.write_all_at(&flag::SWITCHED.to_ne_bytes(), at as u64).unwrap();
    assert_eq!(reported(&ends.1)["state"], "accelerated");
    let flags = flag::SWITCHED | flag::LEAVES;
    file.write_all_at(&flags.to_ne_bytes(), at as u64).unwrap();
    // Whichever side initiated it.
    for end in [&ends.0, &ends.1] {
        let reported = reported(end);
        assert_eq!(
            (&reported["state"], &reported["reason"]),
            (&"kernel".into(), &"HandedOn".into())
        );
    }
    let list = control.list().unwrap();
    let reported_there = &list["connections"][0];
    assert_eq!(reported_there["transport"], "kernel");
    assert_eq!([0, 1].map(|at| reported_there["ends"][at]["leaves"] == true), [true, false]);
    // And after both have released it.
    [&one, &other].iter().for_each(|member| member.say(&Request::Release { slab, slot }));
    let returned = || control.stats().unwrap()["ended"]["returned"] == 1;
    eventually("it has ended", returned);
    for end in [&ends.0, &ends.1] {
        let reported = reported(end);
        let reason = &reported["refusal"]["reason"];
        assert_eq!((&reported["state"], reason), (&"refused".into(), &"HandedOn".into()));
    }
    assert!(control.stats().unwrap()["refused"]["HandedOn"].is_null(), "nobody has asked for it");
}

#[test]
fn what_the_rules_allow_no_more_is_recalled_and_nothing_else() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let kept = connection("127.0.0.1:0");
    let ends = connection("127.0.0.1:0");
    one.claim(1, kept.0.as_fd());
    other.claim(2, kept.1.as_fd());
    let (first, heard) = (one.hear().place(), other.hear());
    let (file, notices) = (heard.slab.unwrap(), heard.notices.unwrap());
    one.claim(3, ends.0.as_fd());
    other.claim(4, ends.1.as_fd());
    let place = one.hear().place();
    let (control, pid) = (running.control(), std::process::id() as i32);
    let said = |(_, slot): (u32, u32)| {
        [Side::First, Side::Second].map(|side| {
            let (mut flags, at) = ([0; 8], slab::notice(slot, side).unwrap());
            notices.read_exact_at(&mut flags, at as u64).unwrap();
            u64::from_ne_bytes(flags)
        })
    };
    let recalled = || {
        let reported = control.recall().unwrap();
        [reported["pending"].as_u64().unwrap(), reported["returned"].as_u64().unwrap()]
    };
    assert_eq!((recalled(), said(place)), ([0, 0], [0, 0]));
    let port = ends.0.local_addr().unwrap().port();
    control.put_rule(&format!("deny port {port}")).unwrap();
    assert_eq!(said(place), [0, 0], "a rule alone is for what comes");
    assert_eq!(recalled(), [1, 0]);
    assert_eq!((said(place), said(first)), ([flag::RECALLED; 2], [0, 0]));
    // One of its sides has returned it to the kernel.
    let at = slab::page(place.1).unwrap() + slab::state(Side::Second);
    let flags = flag::SWITCHED | flag::LEAVES;
    file.write_all_at(&flags.to_ne_bytes(), (at + word::FLAGS) as u64).unwrap();
    let reason = Reason::Recalled as u64;
    file.write_all_at(&reason.to_ne_bytes(), (at + word::REASON) as u64).unwrap();
    assert_eq!(recalled(), [0, 1]);
    assert_eq!(why(&control, pid, ends.0.as_raw_fd())["reason"], "Recalled");
    assert_eq!(why(&control, pid, kept.0.as_raw_fd())["reason"], "Leaving");
}

#[test]
fn why_finds_the_reason_from_inside_or_outside() {
    let running = Running::new(Options::default());
    let (control, pid) = (running.control(), std::process::id() as i32);
    let text = |pid, number| {
        let reported = why(&control, pid, number);
        (reported["state"].as_str().unwrap().to_owned(), reported["text"].to_string())
    };
    let (state, reported) = text(pid, 987_654);
    assert!(state == "kernel" && reported.contains("has no descriptor 987654"), "{reported}");
    assert!(text(0x7fff_fff0, 1).1.contains("there is no process"));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(text(pid, file.as_raw_fd()).1.contains("not a socket: it is /dev/null"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(text(pid, listener.as_raw_fd()).1.contains("it is a listener"));
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(text(pid, datagrams.as_raw_fd()).1.contains("not a stream socket"));
    let (local, _other) = UnixStream::pair().unwrap();
    assert!(text(pid, local.as_raw_fd()).1.contains("is not preloaded: start it with"));
    let (local, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
    assert!(text(pid, local.as_raw_fd()).1.contains("not a stream socket"));
    let ends = connection("127.0.0.1:0");
    assert!(text(pid, ends.0.as_raw_fd()).1.contains("is not preloaded: start it with"));
    // Refused by the monitor, whatever number the process gave it.
    let one = running.member();
    one.claim(1, ends.0.as_fd());
    one.hear();
    let reported = why(&control, pid, ends.0.as_raw_fd());
    assert_eq!(
        (&reported["state"], &reported["refusal"]["reason"]),
        (&"refused".into(), &"PeerPlain".into())
    );
    assert_eq!(reported["refusal"]["descriptor"], 7);
    let inode = |stream: &TcpStream| {
        let stream = stream.as_fd().try_clone_to_owned().unwrap();
        std::fs::File::from(stream).metadata().unwrap().ino()
    };
    assert_eq!(reported["refusal"]["inode"], inode(&ends.0));
}

#[test]
fn why_knows_what_is_accelerated() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    other.claim(2, ends.1.as_fd());
    let heard = one.hear();
    other.hear();
    let (file, (_, slot)) = (heard.slab.as_ref().unwrap(), heard.place());
    let at = slab::page(slot).unwrap() + slab::state(Side::First) + word::FLAGS;
    file.write_all_at(&flag::SWITCHED.to_ne_bytes(), at as u64).unwrap();
    let control = Control::at(running.location.clone());
    for end in [&ends.0, &ends.1] {
        let reported = why(&control, std::process::id() as i32, end.as_raw_fd());
        assert_eq!(reported["state"], "accelerated", "{reported}");
        assert_eq!(reported["connection"]["ends"][0]["pid"], one.pid);
    }
    // By the number that the member reported, if the inode is unknown.
    let socket = freeport_monitor::Descriptor { pid: one.pid, number: 7, inode: None };
    assert_eq!(control.why(socket).unwrap()["state"], "accelerated");
    let socket = freeport_monitor::Descriptor { pid: one.pid, number: 8, inode: None };
    let unknown = control.why(socket).unwrap();
    assert_eq!((&unknown["state"], &unknown["member"]), (&"unknown".into(), &true.into()));
}

#[test]
fn why_knows_what_waits_and_what_a_member_keeps_of_its_own() {
    let running = Running::new(patient());
    let (one, ends) = (running.member(), connection("127.0.0.1:0"));
    let (control, pid) = (running.control(), std::process::id() as i32);
    let of = |end: &TcpStream| {
        let file = std::fs::File::from(end.as_fd().try_clone_to_owned().unwrap());
        file.metadata().unwrap().ino()
    };
    one.claim(1, ends.0.as_fd());
    let claimed = freeport_monitor::Descriptor { pid, number: 3, inode: Some(of(&ends.0)) };
    eventually("it waits", || control.why(claimed).unwrap()["reason"] == "Waiting");
    // The peer, this process, will not claim its end; the answer says so.
    let reported = why(&control, pid, ends.0.as_raw_fd());
    assert_eq!(reported["reason"], "PeerPlain", "{reported}");
    one.say(&Request::Keep { inode: of(&ends.1), reason: Reason::Urgent });
    // The member is a separate process, which holds it under an irrelevant number.
    let of_process = |pid| {
        let socket = freeport_monitor::Descriptor { pid, number: 3, inode: Some(of(&ends.1)) };
        control.why(socket).unwrap()
    };
    eventually("it is known", || of_process(one.pid)["reason"] == "Urgent");
    assert_eq!(control.stats().unwrap()["kept"]["Urgent"], 1);
    // Its report about another process's socket is ignored.
    assert_eq!(of_process(pid)["state"], "unknown");
}

#[test]
fn a_monitor_that_ended_is_followed_by_another() {
    let running = Running::new(patient());
    let (one, other) = (running.member(), running.member());
    assert_eq!(outcome(&one, &other), None);
    let running = running.restart();
    one.hear_the_end();
    let (one, other) = (running.member(), running.member());
    assert_eq!(outcome(&one, &other), None);
    assert!(running.control().stats().unwrap()["members"] == 2);
}

#[test]
fn an_idle_monitor_ends_once_the_last_member_is_gone() {
    let mut running = Running::new(Options { idle: Some(Duration::from_millis(50)), ..patient() });
    drop(running.member());
    running.wait();
    assert_eq!(running.events(), [Event::Idle]);
    assert!(!running.location.path().exists());
}

#[test]
fn a_monitor_stays_for_who_wants_that() {
    let mut running = Running::new(Options { idle: Some(Duration::from_millis(50)), ..patient() });
    let guest = Member::silent(running.location.path(), None);
    socket::send(guest.socket.as_fd(), br#"{"do":"stay"}"#, &[]).unwrap();
    harness::await_readable(guest.socket.as_fd());
    // No event shows that it keeps running: instead, one that is idle from now on ends first.
    let mut other = Running::new(Options { idle: Some(Duration::from_millis(100)), ..patient() });
    drop(other.member());
    other.wait();
    assert!(running.location.path().exists(), "the process lives, though its connection does not");
    drop(guest);
    running.wait();
    assert_eq!(running.events(), [Event::Idle]);
}
