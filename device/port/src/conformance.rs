// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conformance suite for ports, which each port and each stack of decorators runs.

use crate::memory::Captured;
use crate::port::{Frame, Frames, HEADROOM, MAX_FRAME, Receive, Transmit};
use crate::trace::TraceFrame;

/// Makes a trace of the given frames, a microsecond apart.
pub fn plain(frames: &[Vec<u8>]) -> Vec<TraceFrame> {
    let item = |(at, bytes): (u64, &Vec<u8>)| TraceFrame {
        original_length: bytes.len(),
        timestamp_ns: 1_700_000_000_000_000_000 + at * 1_001,
        ..TraceFrame::of(bytes.clone())
    };
    (0..).zip(frames).map(item).collect()
}

/// Makes frames of edge-case lengths from `shortest` on, each with different contents.
fn lengths(shortest: usize) -> Vec<Vec<u8>> {
    let lengths = [1, 13, 14, 59, 60, 64, 65, 1_500, 1_514, 2_048, 4_096, 9_000, MAX_FRAME];
    let lengths = lengths.iter().filter(|length| **length >= shortest);
    let frame = |(at, length): (usize, &usize)| (0..*length).map(|k| (k * 7 + at) as u8).collect();
    lengths.cycle().take(40).enumerate().map(frame).collect()
}

/// Receives until the end.
pub fn drain<P: Receive>(port: &mut P, batch: usize) -> Vec<Captured> {
    let mut all = vec![];
    while !port.is_ended() {
        let batch = port.receive(batch).expect("a good source");
        all.extend(batch.as_frames().iter().map(|(frame, bytes)| Captured {
            bytes: bytes.to_vec(),
            original_length: frame.original_length,
            timestamp_ns: frame.timestamp_ns,
        }));
    }
    all
}

fn captured(trace: &[TraceFrame]) -> Vec<Captured> {
    let item = |item: &TraceFrame| Captured {
        bytes: item.bytes.clone(),
        original_length: item.original_length,
        timestamp_ns: item.timestamp_ns,
    };
    trace.iter().map(item).collect()
}

/// Checks a receiver; `make` gets the frames to lend.
pub fn check_receiver<P: Receive>(make: impl Fn(&[TraceFrame]) -> P) {
    check_receiver_from(1, make);
}

/// The same for a peer that cannot send frames below `shortest` bytes.
pub fn check_receiver_from<P: Receive>(shortest: usize, make: impl Fn(&[TraceFrame]) -> P) {
    let trace = plain(&lengths(shortest));
    for batch in [1, 3, 256] {
        assert_eq!(drain(&mut make(&trace), batch), captured(&trace), "batches of {batch}");
    }
    no_more_than_asked_for(make(&trace), trace.len());
    the_borrower_may_write(make(&trace), &trace);
    silence_after_the_end(make(&trace));
}

fn no_more_than_asked_for<P: Receive>(mut port: P, total: usize) {
    assert!(port.receive(0).expect("a good source").is_empty());
    assert!(!port.is_ended(), "asking for nothing ends nothing");
    let mut count = 0;
    while !port.is_ended() {
        let got = port.receive(7).expect("a good source").len();
        assert!(got <= 7);
        count += got;
    }
    assert_eq!(count, total);
}

/// Head room and frames belong to the borrower: writing one changes no other, then or later.
fn the_borrower_may_write<P: Receive>(mut port: P, trace: &[TraceFrame]) {
    let mut next = 0;
    while !port.is_ended() {
        let mut batch = port.receive(5).expect("a good source");
        for at in 0..batch.len() {
            assert!(batch.frames()[at].start >= HEADROOM);
            assert_eq!(batch.bytes(at), trace[next].bytes, "frame {next} is whole");
            batch.headroom_mut(at).fill(0x5a);
            batch.bytes_mut(at).fill(0xa5);
            next += 1;
        }
        for at in 0..batch.len() {
            assert!(batch.headroom_mut(at).iter().all(|byte| *byte == 0x5a));
            assert!(batch.bytes(at).iter().all(|byte| *byte == 0xa5));
        }
    }
    assert_eq!(next, trace.len());
}

fn silence_after_the_end<P: Receive>(mut port: P) {
    drain(&mut port, 64);
    for _ in 0..2 {
        assert!(port.receive(64).expect("an end is no error").is_empty());
        assert!(port.is_ended());
    }
}

/// Checks a transmitter; `collect` returns what it has sent, after a flush.
pub fn check_transmitter<P: Transmit>(make: impl Fn() -> P, collect: impl Fn(&P) -> Vec<Captured>) {
    check_transmitter_from(1, make, collect);
}

/// The same for a peer that takes no frames below `shortest` bytes.
pub fn check_transmitter_from<P: Transmit>(
    shortest: usize,
    make: impl Fn() -> P,
    collect: impl Fn(&P) -> Vec<Captured>,
) {
    let trace = plain(&lengths(shortest));
    for batch in [1, 3, 256] {
        let mut port = make();
        send(&mut port, &trace, batch);
        assert!(port.flush().expect("a good target"), "there is room for everything");
        assert_eq!(collect(&port), captured(&trace), "batches of {batch}");
    }
    an_empty_batch_is_nothing(make(), collect);
    bad_lengths_are_refused();
}

/// Sends a trace from memory that is overwritten as soon as the port has returned.
fn send<P: Transmit>(port: &mut P, trace: &[TraceFrame], batch: usize) {
    for items in trace.chunks(batch) {
        let mut memory = vec![];
        let mut frames = vec![];
        for item in items {
            let start = memory.len();
            memory.extend_from_slice(&item.bytes);
            frames.push(Frame {
                start,
                length: item.bytes.len(),
                original_length: item.original_length,
                timestamp_ns: item.timestamp_ns,
            });
        }
        let mut sent = 0;
        while sent < frames.len() {
            let rest = Frames::new(&memory, &frames[sent..]).expect("good frames");
            let accepted = port.transmit(rest).expect("a good target");
            assert!(accepted <= frames.len() - sent);
            sent += accepted;
        }
        memory.fill(0xff);
    }
}

fn an_empty_batch_is_nothing<P: Transmit>(mut port: P, collect: impl Fn(&P) -> Vec<Captured>) {
    let none = Frames::new(&[], &[]).expect("nothing is wrong with nothing");
    assert_eq!(port.transmit(none).expect("a good target"), 0);
    assert!(port.flush().expect("a good target"));
    assert_eq!(collect(&port), []);
}

fn bad_lengths_are_refused() {
    let memory = vec![0; MAX_FRAME + 1];
    for (start, length) in [(0, 0), (0, MAX_FRAME + 1), (MAX_FRAME, 2), (usize::MAX, 1)] {
        let frame = Frame { start, length, ..Frame::default() };
        assert!(Frames::new(&memory, &[frame]).is_err(), "{length} bytes at {start}");
    }
}
