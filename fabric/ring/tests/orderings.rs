// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory orderings of a ring suffice, in every execution that the memory model of the language
//! allows (as far as loom explores them), and none can be weaker.
//!
//! Words are atomics with the orderings of [`Mapped`](freeport_ring::Mapped). Bytes that are copied
//! there are relaxed words here, and loom treats each as an access without any synchronization, so
//! that it detects unordered ones.

use freeport_ring::layout::NOTES_BYTES;
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use freeport_ring::{Claimed, Full, Local, Receiver, Remote, Sender};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

const CAPACITY: usize = 64;
/// Positions of the receiver's notes, the sender's, and the ring, in words.
const PARTS: [usize; 3] = [0, 2, 4];

/// Memory shared by both sides, and the orderings of its words.
struct Memory {
    words: Vec<AtomicU64>,
    accesses: Vec<UnsafeCell<()>>,
    orderings: Orderings,
}

// SAFETY: loom fails the test if two threads make conflicting accesses at once.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

#[derive(Clone, Copy)]
struct Orderings {
    load: Ordering,
    store: Ordering,
    has_barrier: bool,
    has_fence: bool,
}

/// The orderings of the crate.
const RIGHT: Orderings = Orderings {
    load: Ordering::Acquire,
    store: Ordering::Release,
    has_barrier: true,
    has_fence: true,
};

/// Without the barriers that sleepers need: in loom, the barriers of a sender and a receiver impose
/// more order than they have to.
const UNFENCED: Orderings = Orderings { has_barrier: false, ..RIGHT };

#[derive(Clone)]
struct Window {
    memory: Arc<Memory>,
    start: usize,
}

impl Window {
    fn word(&self, offset: usize) -> &AtomicU64 {
        &self.memory.words[self.start + offset / 8]
    }

    fn access(&self, offset: usize) -> &UnsafeCell<()> {
        &self.memory.accesses[self.start + offset / 8]
    }
}

impl Local for Window {
    unsafe fn load(&self, offset: usize) -> Claimed {
        Claimed::new(self.word(offset).load(self.memory.orderings.load))
    }

    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        for (place, bytes) in into.chunks_mut(8).enumerate() {
            let offset = offset + 8 * place;
            self.access(offset).with(|_| ());
            let word = self.word(offset).load(Ordering::Relaxed).to_ne_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }
}

impl Remote for Window {
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        for (place, bytes) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            // SAFETY: the caller guarantees that it is inside the memory.
            unsafe { self.set(offset + 8 * place, u64::from_ne_bytes(word)) };
        }
    }

    unsafe fn store(&mut self, offset: usize, word: u64) {
        self.word(offset).store(word, self.memory.orderings.store);
    }

    unsafe fn set(&mut self, offset: usize, word: u64) {
        self.access(offset).with_mut(|_| ());
        self.word(offset).store(word, Ordering::Relaxed);
    }

    fn barrier(&self) {
        if self.memory.orderings.has_barrier {
            fence(Ordering::SeqCst);
        }
    }

    fn fence(&self) {
        if self.memory.orderings.has_fence {
            fence(Ordering::SeqCst);
        }
    }
}

type Ends = (MessageSender<Window, Window>, MessageReceiver<Window, Window>);

/// Creates a ring that this number of empty messages has passed, so that its end is near.
fn ring(orderings: Orderings, before: usize) -> Ends {
    let words = PARTS[2] + CAPACITY / 8;
    let memory = Arc::new(Memory {
        words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        accesses: (0..words).map(|_| UnsafeCell::new(())).collect(),
        orderings,
    });
    assert!(words * 8 < 2 * NOTES_BYTES + CAPACITY, "of the notes, two words are used");
    let [to_sender, to_receiver, ring] =
        PARTS.map(|start| Window { memory: memory.clone(), start });
    let (notes, sender_notes, receiver_notes) = (ring, to_receiver, to_sender);
    let (sender, receiver) = (Default::default(), Default::default());
    // SAFETY: the memory is as large as the used parts, and zero.
    let sender = unsafe {
        let (sender_notes, receiver_notes) = (sender_notes.clone(), receiver_notes.clone());
        Sender::new(notes.clone(), sender_notes, receiver_notes, CAPACITY, sender)
    };
    // SAFETY: as above; the sender has written nothing yet.
    let receiver =
        unsafe { Receiver::new(notes, receiver_notes, sender_notes, CAPACITY, receiver) };
    let mut sender = MessageSender::new(sender.expect("a capacity"));
    let mut receiver = MessageReceiver::new(receiver.expect("a capacity"));
    for _ in 0..before {
        assert_eq!(sender.send(&[]), Ok(false));
        assert_eq!(receive(&mut receiver), Some(vec![]));
    }
    (sender, receiver)
}

fn receive(receiver: &mut MessageReceiver<Window, Window>) -> Option<Vec<u8>> {
    let mut into = [0; 8];
    match receiver.receive(&mut into).expect("an honest sender").outcome {
        Received::Message(length) => Some(into[..length].to_vec()),
        Received::Nothing => None,
        other => panic!("{other:?}"),
    }
}

/// Sends two messages, the second of them at the start of the ring or before its end, while the
/// receiver checks twice.
fn messages_arrive(orderings: Orderings, before: usize) {
    loom::model(move || {
        let (mut sender, mut receiver) = ring(orderings, before);
        let thread = thread::spawn(move || {
            for number in 1..3_u64 {
                assert_eq!(sender.send(&[&number.to_ne_bytes()]), Ok(false));
            }
        });
        let looked: Vec<_> = (0..2).filter_map(|_| receive(&mut receiver)).collect();
        thread.join().expect("it ends");
        let found = looked.into_iter().chain(std::iter::from_fn(|| receive(&mut receiver)));
        let expected = (1..3_u64).map(|number| number.to_ne_bytes().to_vec());
        assert!(found.eq(expected), "both, whole and in order");
    });
}

#[test]
fn messages_arrive_whole() {
    for before in [0, 5, 6, 7] {
        messages_arrive(RIGHT, before);
        messages_arrive(UNFENCED, before);
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_header_has_to_be_stored_with_release() {
    messages_arrive(Orderings { store: Ordering::Relaxed, ..UNFENCED }, 0);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_header_has_to_be_loaded_with_acquire() {
    messages_arrive(Orderings { load: Ordering::Relaxed, ..UNFENCED }, 0);
}

/// A ring that is full of messages, and is filled again while the receiver reads them.
fn what_is_overwritten_was_read(orderings: Orderings) {
    loom::model(move || {
        let (mut sender, mut receiver) = ring(orderings, 0);
        for number in 0..3_u64 {
            assert_eq!(sender.send(&[&number.to_ne_bytes()]), Ok(false));
        }
        let thread = thread::spawn(move || {
            for number in 0..3_u64 {
                assert_eq!(receive(&mut receiver), Some(number.to_ne_bytes().to_vec()));
            }
            receiver
        });
        // The first lies in unused memory, the second over entries that the receiver reads.
        let sent = [7, 8_u64].map(|number| sender.send(&[&number.to_ne_bytes()]).is_ok());
        let mut receiver = thread.join().expect("it ends");
        let came = [(); 2].map(|()| receive(&mut receiver).is_some());
        assert_eq!(came[0] as u8 + came[1] as u8, sent[0] as u8 + sent[1] as u8);
    });
}

#[test]
fn nothing_is_overwritten_before_it_is_read() {
    what_is_overwritten_was_read(RIGHT);
    what_is_overwritten_was_read(UNFENCED);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn credits_have_to_be_stored_with_release() {
    what_is_overwritten_was_read(Orderings { store: Ordering::Relaxed, ..UNFENCED });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn credits_have_to_be_loaded_with_acquire() {
    what_is_overwritten_was_read(Orderings { load: Ordering::Relaxed, ..UNFENCED });
}

fn a_receiver_is_woken(orderings: Orderings) {
    loom::model(move || {
        let (mut sender, mut receiver) = ring(orderings, 0);
        let sleeper = thread::spawn(move || {
            assert!(!receiver.ring().announce_sleep());
            receive(&mut receiver).is_none()
        });
        let wakes = sender.send(&[&[1; 8]]).expect("there is room");
        let sleeps = sleeper.join().expect("it ends");
        assert!(wakes || !sleeps, "it sleeps and is never woken");
    });
}

/// The sleeper has slept lightly before, so that the sender knows.
fn a_light_sleeper_is_woken(orderings: Orderings) {
    loom::model(move || {
        let (mut sender, mut receiver) = ring(orderings, 0);
        let announced = receiver.ring().announce_light_sleep(1);
        assert!(announced.is_new && !announced.wake);
        receiver.ring().announce_awake();
        let sleeper = thread::spawn(move || {
            let announced = receiver.ring().announce_light_sleep(1);
            assert!(!announced.is_new && !announced.wake);
            receive(&mut receiver).is_none()
        });
        let wakes = sender.send(&[&[1; 8]]).expect("there is room");
        let sleeps = sleeper.join().expect("it ends");
        assert!(wakes || !sleeps, "it sleeps and is never woken");
    });
}

fn a_sender_is_woken(orderings: Orderings) {
    loom::model(move || {
        let (mut sender, mut receiver) = ring(orderings, 0);
        while sender.send(&[&[1; 8]]).is_ok() {}
        let sleeper = thread::spawn(move || {
            sender.ring().announce_sleep();
            sender.send(&[&[1; 8]]) == Err(Full::NoCredit)
        });
        let mut wakes = false;
        for _ in 0..3 {
            wakes |= receiver.receive(&mut [0; 8]).expect("an honest sender").wake;
        }
        let sleeps = sleeper.join().expect("it ends");
        assert!(wakes || !sleeps, "it sleeps and is never woken");
    });
}

#[test]
fn who_sleeps_is_woken() {
    a_receiver_is_woken(RIGHT);
    a_sender_is_woken(RIGHT);
    a_light_sleeper_is_woken(UNFENCED);
}

#[test]
#[should_panic(expected = "is never woken")]
fn a_light_sleeper_is_not_woken_without_fences() {
    a_light_sleeper_is_woken(Orderings { has_fence: false, ..UNFENCED });
}

#[test]
#[should_panic(expected = "is never woken")]
fn a_receiver_is_not_woken_without_barriers() {
    a_receiver_is_woken(UNFENCED);
}

#[test]
#[should_panic(expected = "is never woken")]
fn a_sender_is_not_woken_without_barriers() {
    a_sender_is_woken(UNFENCED);
}
