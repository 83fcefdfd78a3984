// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of batches, independent of any port.

pub(super) mod far_end;

use super::*;

fn frame(start: usize, length: usize) -> Frame {
    Frame { start, length, ..Frame::default() }
}

#[test]
fn a_batch_is_split_into_what_each_frame_has_for_itself() {
    let mut memory: Vec<u8> = (0..2_000).map(|at| (at % 251) as u8).collect();
    let expected = memory.clone();
    let sorted = [frame(300, 60), frame(700, 100), frame(1_056, 64)];
    let mixed = [sorted[2], sorted[0], sorted[1]];
    for (frames, order) in [(sorted, [0, 1, 2]), (mixed, [2, 0, 1])] {
        let mut made = vec![];
        let mut batch = Batch::new(&mut memory, &frames);
        batch.split(0, &mut made, |memory, range| (memory, range));
        let tails = [84, 0, 0];
        for ((memory, range), at) in made.iter().zip(order) {
            let frame = sorted[at];
            assert_eq!(range.clone(), HEADROOM..HEADROOM + frame.length);
            let tail = memory.len() - range.end;
            assert_eq!(tail, tails[at]);
            let end = frame.start + frame.length + tail;
            assert_eq!(**memory, expected[frame.start - HEADROOM..end]);
        }
        let mut rest = vec![];
        batch.split(2, &mut rest, |_, range| range.len());
        assert_eq!(rest, [frames[2].length]);
    }
}

#[test]
#[should_panic(expected = "share no memory")]
fn a_port_that_lends_the_same_bytes_twice_is_noticed() {
    let mut memory = vec![0; 1_000];
    let frames = [frame(300, 60), frame(500, 60)];
    Batch::new(&mut memory, &frames).split(0, &mut vec![], |memory, _| memory.len());
}
