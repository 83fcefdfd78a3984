// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Misbehaving members: they are dropped and counted, and other members are not affected.

use crate::harness::{self, Member, Running, connection, eventually, patient, send_until_it_fails};
use freeport_monitor::{Departure, Event, Options, socket};
use freeport_sockets_proto::message::{BYTES, CLAIMS_MAX, Reply, Request};
use freeport_sockets_proto::{Reason, VERSION};
use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Asserts that the monitor still serves two other members.
fn serves(running: &Running) {
    let (one, other) = (running.member(), running.member());
    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    other.claim(2, ends.1.as_fd());
    assert!(matches!(one.hear().reply, Reply::Paired { token: 1, .. }));
    assert!(matches!(other.hear().reply, Reply::Paired { token: 2, .. }));
}

/// Asserts that a member was dropped for that reason.
fn is_dropped(running: &Running, member: &Member, why: Departure) {
    member.hear_the_end();
    let is_it = |event: &Event| {
        matches!(event, Event::Dropped { pid, why: found, .. }
        if *pid == member.pid && *found == why)
    };
    eventually("it is told", || running.events().iter().any(is_it));
    let counted = &running.control().stats().unwrap()["members_dropped"][format!("{why:?}")];
    assert!(counted.as_u64().is_some_and(|count| count > 0), "{counted}");
}

#[test]
fn what_is_no_message_ends_that_member_only() {
    let running = Running::new(patient());
    let hello = Request::Hello { version: VERSION, membarrier: true }.encode();
    let mut unknown = hello;
    unknown[0] = 99;
    let messages: [&[u8]; 5] = [b"x", &hello[..BYTES - 1], &[0; BYTES], &unknown, &[1; 5000]];
    for message in messages {
        let member = Member::silent(running.location.path(), None);
        socket::send(member.socket.as_fd(), message, &[]).unwrap();
        is_dropped(&running, &member, Departure::Malformed);
        let member = running.member();
        socket::send(member.socket.as_fd(), message, &[]).unwrap();
        is_dropped(&running, &member, Departure::Malformed);
    }
    serves(&running);
}

#[test]
fn the_order_of_messages_is_kept() {
    let running = Running::new(patient());
    let member = running.member();
    member.say(&Request::Hello { version: VERSION, membarrier: true });
    is_dropped(&running, &member, Departure::Malformed);
    let member = Member::silent(running.location.path(), None);
    member.say(&Request::Release { slab: 0, slot: 0 });
    is_dropped(&running, &member, Departure::Malformed);
    // Another version: it receives this one's version, and nothing else is done for it.
    let member = Member::silent(running.location.path(), None);
    member.say(&Request::Hello { version: VERSION + 1, membarrier: true });
    assert_eq!(member.hear().reply, Reply::Welcome { version: VERSION });
    member.say(&Request::Release { slab: 0, slot: 0 });
    is_dropped(&running, &member, Departure::Malformed);
    serves(&running);
}

#[test]
fn descriptors_that_do_not_belong_to_a_message_are_closed() {
    let running = Running::new(patient());
    let (kept, shown) = std::os::unix::net::UnixStream::pair().unwrap();
    let release = Request::Release { slab: 0, slot: 0 };
    let many = [shown.as_fd(); 4];
    let claim = Request::Claim { token: 1, descriptor: 0, inherited: false };
    let pass = Request::Pass { token: 1, alone: true, inherited: false };
    for (message, count) in [(release, 1), (release, 4), (claim, 2), (pass, 2)] {
        let member = running.member();
        socket::send(member.socket.as_fd(), &message.encode(), &many[..count]).unwrap();
        is_dropped(&running, &member, Departure::Malformed);
    }
    drop(shown);
    harness::await_readable(kept.as_fd());
    serves(&running);
}

/// Closing a file that is no socket can take as long as its file system likes. A member that sends
/// one is dropped, and the monitor finally holds none of them.
#[test]
fn what_is_no_socket_ends_its_member_and_is_closed() {
    let running = Running::new(patient());
    let [null, memory] = [0, 64 << 20].map(memory_file);
    let claim = Request::Claim { token: 1, descriptor: 0, inherited: false }.encode();
    let member = running.member();
    socket::send(member.socket.as_fd(), &claim, &[null.as_fd()]).unwrap();
    is_dropped(&running, &member, Departure::Malformed);
    for shown in [&null, &memory].into_iter().cycle().take(40) {
        send_until_it_fails(&running.member(), &claim, &[shown.as_fd(); 4]);
    }
    // Two are the test's own. While many wait to be closed, the kernel drops further ones.
    eventually("the others are closed", || open_files("/memfd:shown by a member") == 2);
    // Questions cannot pass any either.
    let asker = running.location.connect().unwrap();
    socket::send(asker.as_fd(), b"{\"do\":\"stats\"}", &[null.as_fd()]).unwrap();
    harness::await_readable(asker.as_fd());
    assert_eq!(socket::receive(asker.as_fd(), &mut [0; 8]).unwrap().length, 0);
    drop((null, memory, asker));
    eventually("all are closed", || open_files("/memfd:shown by a member") == 0);
    serves(&running);
}

/// Makes a memory file of this size: the larger, the longer it takes to close.
fn memory_file(bytes: usize) -> File {
    // SAFETY: the name ends with a zero.
    let descriptor = unsafe { libc::memfd_create(c"shown by a member".as_ptr(), 0) };
    assert!(descriptor >= 0);
    // SAFETY: the descriptor is new and has no other owner.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    file.write_all(&vec![1; bytes]).unwrap();
    file
}

/// Counts descriptors of this process, which is also the monitor's, for files whose name begins
/// with `name`.
fn open_files(name: &str) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let paths = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    paths.filter(|path| path.to_string_lossy().starts_with(name)).count()
}

#[test]
fn who_releases_what_it_does_not_have_is_dropped_in_the_end() {
    let running = Running::new(patient());
    let member = running.member();
    let release = Request::Release { slab: 7, slot: 3 }.encode();
    send_until_it_fails(&member, &release, &[]);
    is_dropped(&running, &member, Departure::Flood);
    serves(&running);
}

#[test]
fn nobody_releases_what_others_have() {
    let running = Running::new(patient());
    let (one, other, third) = (running.member(), running.member(), running.member());
    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    other.claim(2, ends.1.as_fd());
    let (slab, slot) = one.hear().place();
    other.hear();
    let release = Request::Release { slab, slot };
    // Released twice by one member, and once by a stranger: the other one still holds it.
    [&one, &one, &third].iter().for_each(|member| member.say(&release));
    third.claim(3, third.socket.as_fd());
    third.hear();
    assert_eq!(running.control().stats().unwrap()["connections"], 1);
    other.say(&release);
    eventually("nobody has it", || running.control().stats().unwrap()["connections"] == 0);
}

#[test]
fn who_does_not_read_is_dropped() {
    let running = Running::new(Options::default());
    let member = running.member();
    // Each of these is answered, until there is no room for answers.
    let ends = connection("127.0.0.1:0");
    let claim = Request::Claim { token: 1, descriptor: 3, inherited: false }.encode();
    send_until_it_fails(&member, &claim, &[ends.0.as_fd()]);
    let dropped = |why| {
        let stats = running.control().stats().unwrap();
        stats["members_dropped"][why].as_u64().unwrap_or_default()
    };
    // The claims are useless as well: either limit may be reached first.
    eventually("it is counted", || dropped("Unread") + dropped("Flood") == 1);
}

#[test]
fn claims_that_wait_are_bounded() {
    let running = Running::new(patient());
    let member = running.member();
    let mut kept = vec![];
    // One more than may wait: the last is refused immediately.
    for token in 0..=CLAIMS_MAX as u64 {
        let ends = connection("127.0.0.1:0");
        eventually("it is sent", || {
            let claim = Request::Claim { token, descriptor: 3, inherited: false }.encode();
            socket::send(member.socket.as_fd(), &claim, &[ends.0.as_fd()]).is_ok()
        });
        kept.push(ends);
    }
    let reply = member.hear().reply;
    let token = CLAIMS_MAX as u64;
    assert_eq!(reply, Reply::Refused { token, reason: Reason::Resources });
}

#[test]
fn sockets_that_linger_hold_up_nobody() {
    let running = Running::new(patient());
    let member = running.member();
    let forks = harness::without_forks();
    let mut kept = vec![];
    for token in 0..20 {
        let (client, server) = connection("127.0.0.1:0");
        client.set_nonblocking(true).unwrap();
        while (&client).write(&[7; 65536]).is_ok() {}
        linger(&client);
        // Unread, and no longer held here. In excess of the limit, so that it is closed
        // immediately.
        let claim = Request::Claim { token, descriptor: 3, inherited: false }.encode();
        let sent = socket::send(member.socket.as_fd(), &claim, &[client.as_fd()]);
        kept.push(server);
        if sent.is_err() {
            break;
        }
    }
    drop(member);
    eventually("it is gone", || running.control().stats().unwrap()["members"] == 0);
    drop(forks);
    serves(&running);
}

fn linger(client: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 1000 };
    // SAFETY: the structure outlives the call.
    let result = unsafe {
        let length = size_of::<libc::linger>() as libc::socklen_t;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_LINGER);
        libc::setsockopt(client.as_raw_fd(), level, name, (&raw const linger).cast(), length)
    };
    assert_eq!(result, 0);
}

#[test]
fn strangers_that_say_nothing_leave_room_for_others() {
    let running = Running::new(patient());
    let silent: Vec<_> = (0..200).filter_map(|_| running.location.connect().ok()).collect();
    assert!(silent.len() > 64);
    eventually("some are turned away", || {
        running.events().iter().any(|event| matches!(event, Event::TurnedAway { .. }))
    });
    drop(silent);
    eventually("there is room again", || running.control().stats().is_ok());
    serves(&running);
}

#[test]
fn a_question_that_is_none_is_answered_with_what_is_wrong() {
    let running = Running::new(patient());
    for (question, wrong) in [
        ("{", "is a JSON object"),
        (r#"{"do": "dance"}"#, "does not know the question"),
        (r#"{"do": "put rule", "rule": 5}"#, "begins with `allow`"),
        (r#"{"do": "put rule", "rule": "allow port 0x"}"#, "where a port"),
        (r#"{"do": "remove rule", "place": -1}"#, "no rule at that place"),
        (r#"{"do": "remove rule", "place": 18446744073709551615}"#, "no rule at that place"),
    ] {
        let connection = running.location.connect().unwrap();
        socket::send(connection.as_fd(), question.as_bytes(), &[]).unwrap();
        harness::await_readable(connection.as_fd());
        let mut answer = [0; 4096];
        let length = socket::receive(connection.as_fd(), &mut answer).unwrap().length;
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.contains(wrong), "{question}: {answer}");
    }
    serves(&running);
}
