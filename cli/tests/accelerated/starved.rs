// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that are woken and scheduled late: the event may have been consumed before they run.

use crate::harness::{Mode, Node, free_port, is_long, wait_until};
use crate::roles;
use freeport_testbed::process::sleeps;
use std::io::{ErrorKind, Read, Write};
use std::mem;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a thread is kept from the processor: far longer than the interval at which the library
/// polls the kernel again.
const HOLD: Duration = Duration::from_millis(2);
/// The answer to each request.
const ANSWER: &[u8] = b"+PONG\r\n";
/// Limit against hangs.
const PATIENCE_MILLISECONDS: i32 = 180_000;

#[test]
fn a_set_is_told_of_what_comes_while_another_thread_reads() {
    let (node, _monitor) = Node::new();
    let port = free_port().to_string();
    let server = node.role(Mode::Accelerated, "answers pings", &port);
    node.role(Mode::Accelerated, "starved set", &port).finish();
    server.finish();
}

/// Role: one thread waits in epoll, on a processor that another one occupies. A third thread reads
/// the data that woke it before it runs, and then other data arrives.
pub fn set(port: &str) {
    let mut stream = connect(port);
    stream.set_nonblocking(true).expect("it can be set");
    let set = edge_triggered_set(&stream);
    for round in 0..if is_long() { 2000 } else { 100 } {
        let (waiter, is_over) = (AtomicI32::new(0), AtomicBool::new(false));
        let mut taken = 0;
        thread::scope(|scope| {
            let woken = scope.spawn(|| {
                become_last_of_processor(0);
                // SAFETY: no memory is passed.
                waiter.store(unsafe { libc::gettid() }, Ordering::Relaxed);
                wait(set)
            });
            while !sleeps(waiter.load(Ordering::Relaxed)) && !woken.is_finished() {
                thread::sleep(Duration::from_millis(1));
            }
            scope.spawn(|| {
                stay_on(0);
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            ask(&mut stream);
            taken = take(&mut stream, HOLD);
            ask(&mut stream);
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(woken.join().expect("it is well"), 1, "round {round}: nobody was woken");
        });
        // No data remains that would wake the next waiter.
        while taken < 2 * ANSWER.len() {
            taken += take(&mut stream, Duration::ZERO);
        }
    }
}

/// An accelerated connection to a server that answers pings.
fn connect(port: &str) -> TcpStream {
    let port: u16 = port.parse().expect("a port");
    let mut connected = None;
    wait_until("it listens", || {
        connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        connected.is_some()
    });
    let mut stream = connected.expect("it is connected");
    let begun = Instant::now();
    while !roles::is_accelerated(&stream) {
        assert!(begun.elapsed().as_millis() < PATIENCE_MILLISECONDS as u128, "it never leaves");
        ask(&mut stream);
        stream.read_exact(&mut [0; ANSWER.len()]).expect("it is answered");
    }
    stream
}

fn ask(stream: &mut TcpStream) {
    stream.write_all(b"PING\r\n").expect("it can be sent");
}

fn edge_triggered_set(stream: &TcpStream) -> i32 {
    let mut event = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 7 };
    // SAFETY: no memory is passed.
    let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    let number = stream.as_raw_fd();
    // SAFETY: the event lives as long as the call, which reads it.
    assert_eq!(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, number, &mut event) }, 0);
    set
}

fn wait(set: i32) -> i32 {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
    // SAFETY: the buffer has room for this number of events.
    unsafe { libc::epoll_wait(set, events.as_mut_ptr(), 4, PATIENCE_MILLISECONDS) }
}

/// Reads available bytes repeatedly for an interval; returns their number.
fn take(stream: &mut TcpStream, time: Duration) -> usize {
    let (begun, mut taken) = (Instant::now(), 0);
    loop {
        match stream.read(&mut [0; 100]) {
            Ok(0) => panic!("the end"),
            Ok(count) => taken += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        if begun.elapsed() >= time {
            return taken;
        }
    }
}

/// Pins this thread to a processor, with the lowest priority.
fn become_last_of_processor(number: usize) {
    stay_on(number);
    // SAFETY: no memory is passed; 0 is this thread.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) }, 0);
}

/// Pins this thread to one of its allowed processors, if there are that many.
fn stay_on(number: usize) {
    // SAFETY: a set is plain memory, for which all zeros is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { mem::zeroed() };
    let bytes = size_of_val(&allowed);
    // SAFETY: the call writes the set within the size given.
    assert_eq!(unsafe { libc::sched_getaffinity(0, bytes, &mut allowed) }, 0);
    // SAFETY: a set is plain memory, for which all zeros is the empty set.
    let mut own: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: numbers below `CPU_SETSIZE` are inside the set.
    let is_allowed = |it: &usize| unsafe { libc::CPU_ISSET(*it, &allowed) };
    let mut all = (0..libc::CPU_SETSIZE as usize).filter(is_allowed);
    let Some(processor) = all.nth(number) else { return };
    // SAFETY: the number is below `CPU_SETSIZE`.
    unsafe { libc::CPU_SET(processor, &mut own) };
    // SAFETY: the call reads the set within the size given.
    assert_eq!(unsafe { libc::sched_setaffinity(0, bytes, &own) }, 0);
}
