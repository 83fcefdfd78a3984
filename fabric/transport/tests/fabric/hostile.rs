// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lying peers: every false message or descriptor leads to an error that names it.

use fastrand::Rng;
use freeport_fabric::shm::segment::{SEALS, Segment};
use freeport_fabric::shm::{Connection, Doorbell, Options};
use freeport_fabric::socket;
use freeport_fabric::wait::Waiting;
use freeport_fabric::{Error, HelloError};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The words of an honest hello after its mark, and its descriptors.
struct Offer {
    words: [u64; 5],
    segment: OwnedFd,
    doorbell: Doorbell,
}

/// Version and purpose (a stream), flags, sizes.
const WORDS: [u64; 5] = [1 | 1 << 32, 1, 4096, 4096, 4096 + 2 * 4096];

fn offer() -> Offer {
    let (_, segment) = Segment::create(WORDS[4] as usize).expect("a segment");
    Offer { words: WORDS, segment, doorbell: Doorbell::new().expect("a doorbell") }
}

impl Offer {
    fn bytes(&self) -> Vec<u8> {
        let words = self.words.iter().flat_map(|word| word.to_le_bytes());
        b"FREEPORT".iter().copied().chain(words).collect()
    }

    fn descriptors(&self) -> [RawFd; 2] {
        [self.segment.as_raw_fd(), self.doorbell.as_fd().as_raw_fd()]
    }
}

/// Accepts these bytes and descriptors as an offer.
fn accept(bytes: &[u8], descriptors: &[RawFd]) -> Result<Connection, Error> {
    let (here, there) = UnixStream::pair().expect("a pair");
    socket::send(&there, bytes, descriptors).expect("it is sent");
    let patience = Duration::from_millis(20);
    Connection::accept(here, &Options { patience, ..Options::default() })
}

fn refusal(bytes: &[u8], descriptors: &[RawFd]) -> HelloError {
    match accept(bytes, descriptors) {
        Err(Error::Hello(error)) => error,
        other => panic!("not refused as a hello: {other:?}"),
    }
}

/// Creates a memfd with this size and these seals.
fn memfd(bytes: u64, seals: i32) -> OwnedFd {
    memfd_of(libc::MFD_ALLOW_SEALING, bytes, seals)
}

fn memfd_of(flags: u32, bytes: u64, seals: i32) -> OwnedFd {
    // SAFETY: the name ends with zero.
    let descriptor = unsafe { libc::memfd_create(c"hostile".as_ptr(), flags | libc::MFD_CLOEXEC) };
    assert!(descriptor >= 0, "a memfd");
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.set_len(bytes).expect("a size");
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
    file.into()
}

#[test]
fn an_honest_offer_is_accepted() {
    let offer = offer();
    accept(&offer.bytes(), &offer.descriptors()).expect("nothing is wrong with it");
}

#[test]
fn absurd_sizes_are_refused() {
    let offer = offer();
    for (capacity, capacity_max) in [
        (0, 0),
        (4096, 0),
        (4097, 8192),
        (4096, 2048),
        (1 << 62, 1 << 62),
        (u64::MAX, u64::MAX),
        (64, 1 << 63),
        (1 << 25, 1 << 25),
    ] {
        let words = [WORDS[0], WORDS[1], capacity, capacity_max, WORDS[4]];
        let lie = Offer { words, ..self::offer() };
        let refused = refusal(&lie.bytes(), &offer.descriptors());
        let most = Options::default().largest;
        assert_eq!(refused, HelloError::Capacity { capacity, capacity_max, most });
    }
    let words = [WORDS[0], WORDS[1], 4096, 4096, u64::MAX];
    let refused = refusal(&Offer { words, ..self::offer() }.bytes(), &offer.descriptors());
    assert_eq!(refused, HelloError::SegmentBytes { expected: WORDS[4], found: u64::MAX });
}

#[test]
fn memory_that_could_kill_is_refused() {
    let good = offer();
    let with = |segment: OwnedFd| {
        refusal(&good.bytes(), &[segment.as_raw_fd(), good.doorbell.as_fd().as_raw_fd()])
    };
    for seals in [0, libc::F_SEAL_SHRINK, SEALS & !libc::F_SEAL_SHRINK] {
        let refused = with(memfd(WORDS[4], seals));
        assert_eq!(refused, HelloError::Seals { expected: SEALS, found: seals });
    }
    for found in [0, 1, 4096, WORDS[4] - 1, WORDS[4] + 1] {
        let refused = with(memfd(found, SEALS));
        assert_eq!(refused, HelloError::SegmentBytes { expected: WORDS[4], found });
    }
    assert_eq!(with(File::open("/dev/null").expect("null").into()), HelloError::NotMemory);
    assert_eq!(with(File::open("/proc/self/exe").expect("a file").into()), HelloError::NotMemory);
    assert_eq!(with(UnixStream::pair().expect("a pair").0.into()), HelloError::NotMemory);
    let huge = memfd_of(libc::MFD_ALLOW_SEALING | libc::MFD_HUGETLB, 1 << 21, SEALS);
    assert_eq!(with(huge), HelloError::NotMemory);
    let unwritable = memfd(WORDS[4], SEALS | libc::F_SEAL_WRITE);
    let refused = accept(&good.bytes(), &[unwritable.as_raw_fd(), good.descriptors()[1]]);
    assert!(matches!(refused, Err(Error::System { .. })), "{refused:?}");
    let ordinary = tempfile::tempfile().expect("a file");
    ordinary.set_len(WORDS[4]).expect("a size");
    assert!(matches!(with(ordinary.into()), HelloError::NotMemory | HelloError::Seals { .. }));
}

#[test]
fn missing_and_spare_descriptors_are_refused_and_closed() {
    let offer = offer();
    let [segment, doorbell] = offer.descriptors();
    for descriptors in [vec![], vec![segment], vec![segment, doorbell, doorbell]] {
        let refused = refusal(&offer.bytes(), &descriptors);
        let found = descriptors.len();
        assert_eq!(refused, HelloError::Descriptors { expected: 2, found });
    }
    assert_eq!(refusal(&offer.bytes(), &[segment, segment]), HelloError::NotDoorbell);
}

#[test]
fn garbage_silence_and_hanging_up_are_refused() {
    let offer = offer();
    let honest = offer.bytes();
    for length in 1..honest.len() {
        let (expected, found) = (honest.len(), length);
        let refused = refusal(&honest[..length], &offer.descriptors());
        assert_eq!(refused, HelloError::Length { expected, found });
    }
    let longer = [&honest[..], b"x"].concat();
    assert!(matches!(refusal(&longer, &[]), HelloError::Length { .. }));
    let mut random = Rng::with_seed(5);
    for _ in 0..500 {
        let mut bytes = honest.clone();
        for _ in 0..random.usize(1..6) {
            bytes[random.usize(..honest.len())] = random.u8(..);
        }
        // Changed flags and unchanged bytes are no reason to refuse.
        match accept(&bytes, &offer.descriptors()) {
            Ok(_) => assert_eq!((&bytes[..16], &bytes[24..]), (&honest[..16], &honest[24..])),
            Err(Error::Hello(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let options = Options { patience: Duration::from_millis(5), ..Options::default() };
    let (here, there) = UnixStream::pair().expect("a pair");
    let silent = Connection::accept(here, &options);
    assert!(matches!(silent, Err(Error::Hello(HelloError::Silent(_)))), "{silent:?}");
    drop(there);
    let (here, there) = UnixStream::pair().expect("a pair");
    drop(there);
    let gone = Connection::accept(here, &options);
    assert!(matches!(gone, Err(Error::Hello(HelloError::HungUp))), "{gone:?}");
}

#[test]
fn an_answer_is_checked_as_well() {
    let answer = |bytes: Vec<u8>, descriptors: Vec<RawFd>| {
        let (here, there) = UnixStream::pair().expect("a pair");
        let second = std::thread::spawn(move || {
            let mut hello = [0; 48];
            let offer = socket::receive(&there, &mut hello).expect("an offer");
            assert_eq!((offer.length, offer.descriptors.len()), (48, 2));
            socket::send(&there, &bytes, &descriptors).expect("it is sent");
        });
        let connection = Connection::connect(here, &Options::with_capacity(4096));
        second.join().expect("no panic");
        connection
    };
    let good = offer();
    let doorbell = good.doorbell.as_fd().as_raw_fd();
    answer(good.bytes(), vec![doorbell]).expect("nothing is wrong with it");
    let refused = answer(good.bytes(), vec![]);
    assert!(matches!(refused, Err(Error::Hello(HelloError::Descriptors { .. }))), "{refused:?}");
    let refused = answer(good.bytes(), vec![good.segment.as_raw_fd()]);
    assert!(matches!(refused, Err(Error::Hello(HelloError::NotDoorbell))), "{refused:?}");
    let words = [WORDS[0], WORDS[1], 64, 64, WORDS[4]];
    let refused = answer(Offer { words, ..offer() }.bytes(), vec![doorbell]);
    assert!(matches!(refused, Err(Error::Hello(HelloError::Capacity { .. }))), "{refused:?}");
}

/// Accepts an offer, and reads from it while its segment is overwritten.
fn scribbled(random: &mut Rng, scribble: impl Fn(&mut Rng, &mut File)) -> Result<usize, Error> {
    let offer = offer();
    let (here, there) = UnixStream::pair().expect("a pair");
    socket::send(&there, &offer.bytes(), &offer.descriptors()).expect("it is sent");
    let mut connection = Connection::accept(here, &Options::default())?;
    connection.write_all(&[1; 100])?;
    let mut file = File::from(offer.segment);
    scribble(random, &mut file);
    let mut buffer = [0; 5000];
    let mut got = 0;
    for _ in 0..50 {
        match connection.try_read(&mut buffer) {
            Ok(0) => return Ok(got),
            Ok(count) => got += count,
            Err(Error::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        match connection.try_write(&[2; 300]) {
            Ok(_) | Err(Error::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        connection.peer_is_alive()?;
    }
    Ok(got)
}

#[test]
fn rings_that_are_scribbled_over_are_faults() {
    let mut random = Rng::with_seed(23);
    let mut faults = 0;
    for _ in 0..300 {
        let outcome = scribbled(&mut random, |random, file| {
            let mut bytes: Vec<u8> = vec![0; WORDS[4] as usize];
            // Rarely all of it: the first fault would hide the rest.
            for _ in 0..random.usize(1..200) {
                let at = random.usize(..bytes.len() / 8) * 8;
                bytes[at..at + 8].copy_from_slice(&random.u64(..).to_ne_bytes());
            }
            if random.bool() {
                // A header that is valid as far as it can be checked alone.
                let header = random.u64(..6000) | random.u64(..13) << 32 | 1 << 40;
                bytes[8192..8200].copy_from_slice(&header.to_ne_bytes());
                bytes[4096..4104].copy_from_slice(&header.to_ne_bytes());
            }
            file.write_all(&bytes).expect("it may be written");
        });
        match outcome {
            Ok(_) | Err(Error::Closed { .. }) => {}
            Err(Error::Fault(_) | Error::Moved { .. }) => faults += 1,
            Err(other) => panic!("not a fault of the protocol: {other}"),
        }
    }
    assert!(faults > 100, "only {faults} of 300 were noticed");
}

/// Accepts an offer of this size; returns the connection and what a hostile first side keeps.
fn accepted(capacity_max: u64, areas: u64) -> (Connection, File, UnixStream) {
    let bytes = 4096 + 2 * 4096 * areas;
    let (_, segment) = Segment::create(bytes as usize).expect("a segment");
    let words = [WORDS[0], WORDS[1], 4096, capacity_max, bytes];
    let offer = Offer { words, segment, ..offer() };
    let (here, there) = UnixStream::pair().expect("a pair");
    socket::send(&there, &offer.bytes(), &offer.descriptors()).expect("it is sent");
    let connection = Connection::accept(here, &Options::default()).expect("an honest offer");
    (connection, File::from(offer.segment), there)
}

#[test]
fn moves_to_where_no_area_is_are_refused() {
    // Areas of 4, 8 and 16 KiB for each direction: the first side's ring begins after the notes.
    for area in [0, 3, 4, 1 << 32, u64::MAX] {
        let (mut connection, file, _socket) = accepted(1 << 14, 7);
        let entry = [8 | 11 << 32 | 1 << 40, area].map(u64::to_ne_bytes).concat();
        file.write_all_at(&entry, 4096).expect("it may be written");
        let refused = connection.try_read(&mut [0; 8]);
        let as_it_should = matches!(
            refused,
            Err(Error::Moved { area: said, current: 0, areas: 3 }) if said == area
        );
        assert!(as_it_should, "area {area}: {refused:?}");
    }
    let (mut connection, file, _socket) = accepted(1 << 14, 7);
    let entry = [8 | 11 << 32 | 1 << 40, 2].map(u64::to_ne_bytes).concat();
    file.write_all_at(&entry, 4096).expect("it may be written");
    let behind = [3 | 1 << 32 | 1 << 40 | 1 << 48, 0x00aa_bbcc].map(u64::to_le_bytes).concat();
    file.write_all_at(&behind, 4096 + 4096 + 8192).expect("it may be written");
    let mut buffer = [0; 8];
    assert_eq!(connection.try_read(&mut buffer).expect("that area is there"), 3);
    assert_eq!(buffer[..3], [0xcc, 0xbb, 0xaa]);
}

#[test]
fn ringing_for_nothing_does_not_stop_the_clock() {
    let (mut connection, _file, socket) = accepted(4096, 1);
    let answer = socket::receive(&socket, &mut [0; 48]).expect("the answer");
    let [doorbell] = <[_; 1]>::try_from(answer.descriptors).expect("its doorbell");
    let doorbell = Doorbell::import(doorbell).expect("a doorbell");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let ringer = thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            doorbell.ring().expect("it can be rung");
        }
    });
    let timeout = Some(Duration::from_millis(20));
    connection.set_waiting(Waiting { timeout, ..Waiting::SLEEP });
    assert!(matches!(connection.read(&mut [0; 8]), Err(Error::TimedOut(_))));
    stop.store(true, Ordering::Relaxed);
    ringer.join().expect("no panic");
}
