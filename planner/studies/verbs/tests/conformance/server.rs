// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of other places: servers that do what a case asks them, and writers.

use freeport_study_verbs::{Address, Call, Memory, Place, Stable, Verbs, Way};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Part of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Carries out requests.
    Server,
    /// Writes blocks of this byte to the start of the host's memory, forever.
    Writer(u8),
}

impl Role {
    /// Returns it as a number, for another process.
    pub fn number(self) -> u32 {
        match self {
            Self::Server => 256,
            Self::Writer(byte) => byte.into(),
        }
    }

    /// Returns the role with a number.
    pub fn of(number: u32) -> Self {
        u8::try_from(number).map_or(Self::Server, Self::Writer)
    }
}

/// Length of the blocks of writers in bytes.
pub const BLOCK_BYTES: usize = 1024;
/// Length and number of the appends of [`Request::AppendPattern`].
pub const APPEND_BYTES: usize = 1 << 20;
const APPENDS: usize = 8;

/// A request to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Answers with the reverse of these bytes.
    Reverse(Vec<u8>),
    /// Answers with bytes of its memory.
    Load(u64, u64),
    /// Stores bytes at the start of its memory.
    Store(Vec<u8>),
    /// Does not answer until it is released.
    Hold,
    /// Answers all calls that are held, the last one first.
    Release,
    /// Drops the call.
    Drop,
    /// Calls the caller, and answers with its answer.
    CallBack(Vec<u8>),
    /// Appends bytes.
    Append(Vec<u8>),
    /// Continues the stream of [`pattern`] in its file, and answers before that.
    AppendPattern,
    /// Answers with its file.
    File,
    /// Answers with the length of its file.
    FileBytes,
    /// Cuts its file.
    Truncate(u64),
}

impl Request {
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (kind, rest): (u8, Vec<u8>) = match self {
            Self::Reverse(data) => (0, data.clone()),
            Self::Load(at, bytes) => (1, words(&[*at, *bytes])),
            Self::Store(data) => (2, data.clone()),
            Self::Hold => (3, vec![]),
            Self::Release => (4, vec![]),
            Self::Drop => (5, vec![]),
            Self::CallBack(data) => (6, data.clone()),
            Self::Append(data) => (7, data.clone()),
            Self::AppendPattern => (8, vec![]),
            Self::File => (9, vec![]),
            Self::FileBytes => (10, vec![]),
            Self::Truncate(bytes) => (11, words(&[*bytes])),
        };
        [vec![kind], rest].concat()
    }

    fn of(bytes: &[u8]) -> Self {
        let (kind, rest) = bytes.split_first().expect("a request");
        let word = |number: usize| {
            let word = rest[number * 8..][..8].try_into().expect("8 bytes");
            u64::from_le_bytes(word)
        };
        match kind {
            0 => Self::Reverse(rest.to_vec()),
            1 => Self::Load(word(0), word(1)),
            2 => Self::Store(rest.to_vec()),
            3 => Self::Hold,
            4 => Self::Release,
            5 => Self::Drop,
            6 => Self::CallBack(rest.to_vec()),
            7 => Self::Append(rest.to_vec()),
            8 => Self::AppendPattern,
            9 => Self::File,
            10 => Self::FileBytes,
            11 => Self::Truncate(word(0)),
            _ => panic!("request {kind}"),
        }
    }
}

/// Returns bytes of an endless stream, from a position on.
pub fn pattern(at: usize, bytes: usize) -> Vec<u8> {
    let byte = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7];
    (at..at + bytes).map(byte).collect()
}

/// Plays a part, until the place dies.
pub async fn play<V: Verbs>(here: V, role: Role) {
    match role {
        Role::Server => serve(here).await,
        Role::Writer(byte) => loop {
            let to = Place::Host.at(0);
            here.write(to, vec![byte; BLOCK_BYTES], Way::Nic).await.expect("the host is alive");
        },
    }
}

/// Carries out requests.
pub async fn serve<V: Verbs>(here: V) {
    let held: Rc<RefCell<Vec<Call>>> = Rc::default();
    loop {
        let call = here.receive().await;
        let request = Request::of(&call.message);
        match request {
            Request::Hold => held.borrow_mut().push(call),
            Request::Release => {
                while let Some(held) = { held.borrow_mut().pop() } {
                    held.answer(vec![]);
                }
                call.answer(vec![]);
            }
            Request::Drop => drop(call),
            Request::CallBack(data) => {
                let here = here.clone();
                here.clone().spawn(async move {
                    let message = Request::Reverse(data).to_bytes();
                    let answer = here.call(call.from, message).await.expect("it waits");
                    call.answer(answer);
                });
            }
            Request::AppendPattern => {
                call.answer(vec![]);
                here.spawn(append_pattern(here.clone()));
            }
            other => {
                let answer = carry_out(&here, other).await;
                call.answer(answer);
            }
        }
    }
}

async fn carry_out<V: Verbs>(here: &V, request: Request) -> Vec<u8> {
    match request {
        Request::Reverse(data) => data.into_iter().rev().collect(),
        Request::Load(at, bytes) => here.memory().load(at, bytes as usize),
        Request::Store(data) => {
            here.memory().store(0, &data);
            vec![]
        }
        Request::Append(data) => {
            here.stable().append(data).await.expect("the file works");
            vec![]
        }
        Request::File => here.stable().read().expect("the file works"),
        Request::FileBytes => {
            let file = here.stable().read().expect("the file works");
            (file.len() as u64).to_le_bytes().to_vec()
        }
        Request::Truncate(bytes) => {
            here.stable().truncate(bytes).expect("the file works");
            vec![]
        }
        other => panic!("{other:?} is not answered at once"),
    }
}

async fn append_pattern<V: Verbs>(here: V) {
    let begin = here.stable().read().expect("the file works").len();
    for number in 0..APPENDS {
        let data = pattern(begin + number * APPEND_BYTES, APPEND_BYTES);
        here.stable().append(data).await.expect("the file works");
        here.sleep(Duration::from_micros(10)).await;
    }
}

/// Returns an address in the host's memory.
pub fn host(at: u64) -> Address {
    Place::Host.at(at)
}
