// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random packets on few keys of all types, and the commands that they stand for on another store:
//! replies, counts and data are the same, whatever watches, and while images are written.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fastrand::Rng;
use freeport_kv_commands::{EvictionOptions, Policy};
use freeport_kv_functions::{Element, Filter, Reduce, Scalar, Update};
use freeport_kv_keyspace::{ImageEntry, ImageStep};
use freeport_kv_protocol::batch::{Opcode, Operation, Status};
use freeport_kv_protocol::resp::Value;
use freeport_kv_types::Limits;
use freeport_testbed::{seed, usual_or_long};

use super::packet::{Answer, Packet, words};
use crate::harness::{Local, fill, parsed, shown};
use crate::random_commands::{Commands, digest, local};

const KEYS: [&str; 16] = [
    "a",
    "b",
    "c",
    "d",
    "k0",
    "k1",
    "k2",
    "k3",
    "set",
    "list",
    "hll1",
    "s1",
    "n1",
    "n2",
    "n3",
    "a key that is longer than those which are kept in the index",
];
const START_MS: u64 = 1_000_000;

/// An operation with its bytes.
struct Drawn {
    opcode: Opcode,
    no_return: bool,
    function: u8,
    element: u8,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Drawn {
    fn operation(&self) -> Operation<'_> {
        let Self { opcode, no_return, function, element, .. } = *self;
        Operation { opcode, no_return, function, element, key: &self.key, value: &self.value }
    }
}

fn bytes(random: &mut Rng, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.u8(..)).collect()
}

/// Sizes around those at which a value changes its place.
fn value(random: &mut Rng) -> Vec<u8> {
    let lengths = [0, 1, 2, 4, 8, 8, 8, 16, 17, 24, 40, 64, 120, 256, 520, 1_024, 3_000, 20_000];
    let length = lengths[random.usize(..lengths.len())];
    bytes(random, length)
}

fn draw(random: &mut Rng) -> Drawn {
    let key = KEYS[random.usize(..KEYS.len())].as_bytes().to_vec();
    let no_return = random.u8(..4) == 0;
    let element = Element::ALL[random.usize(..Element::ALL.len())];
    let parts = |count: usize| count * element.width();
    let (opcode, function, value) = match random.u8(..20) {
        0..6 => (Opcode::Get, 0, vec![]),
        6..11 => (Opcode::Put, 0, value(random)),
        11..13 => (Opcode::Delete, 0, vec![]),
        13..17 => {
            let update = Update::ALL[random.usize(..Update::ALL.len())];
            let opcodes = [Opcode::Update, Opcode::UpdateSame, Opcode::UpdateVector];
            let opcode = opcodes[random.usize(..3)];
            let count = if opcode == Opcode::UpdateVector { random.usize(..9) } else { 1 };
            (opcode, update.id(), bytes(random, parts(count * update.operands().len())))
        }
        17..18 => {
            let reduce = Reduce::ALL[random.usize(..Reduce::ALL.len())];
            (Opcode::Reduce, reduce.id(), bytes(random, 8))
        }
        18..19 => {
            let filter = Filter::ALL[random.usize(..Filter::ALL.len())];
            (Opcode::Filter, filter.id(), bytes(random, parts(filter.operands().len())))
        }
        // Most of these are not the id of a function of this kind.
        _ => (Opcode::Reduce, random.u8(..), bytes(random, 8)),
    };
    let has_function = opcode.has_function();
    let (function, element) = if has_function { (function, element.code()) } else { (0, 0) };
    Drawn { opcode, no_return, function, element, key, value }
}

/// The answer that the reply of the command stands for.
fn answer(operation: &Operation<'_>, reply: &[u8]) -> Answer {
    let done = |value: Vec<u8>| match operation.no_return {
        true => (Status::Done, None),
        false => (Status::Done, Some(value)),
    };
    match (parsed(reply), operation.opcode) {
        (Value::Error(text), _) => {
            let text = String::from_utf8(text).expect("a text");
            let status = match text.split(' ').next() {
                Some("OOM") => Status::OutOfMemory,
                Some("WRONGTYPE") => Status::WrongType,
                _ if text.starts_with("ERR no function") => Status::Failed,
                _ if text.contains(", not of kind") => Status::Failed,
                _ => Status::Refused,
            };
            (status, Some(text.into_bytes()))
        }
        (Value::Null, _) | (Value::Integer(0), Opcode::Delete) => (Status::NotFound, None),
        (_, Opcode::Put | Opcode::Delete) => (Status::Done, None),
        (Value::Bulk(text), Opcode::Update) => {
            let element = Element::from_code(operation.element).expect("it was drawn");
            done(number(element, &text)[..element.width()].to_vec())
        }
        (Value::Bulk(text), Opcode::Reduce) => {
            let element = Element::from_code(operation.element).expect("it was drawn");
            let reduce = Reduce::ALL.into_iter().find(|it| it.id() == operation.function);
            let sigma = reduce.expect("it was found").sigma(element);
            done(number(sigma, &text))
        }
        (Value::Bulk(value), _) => done(value),
        (Value::Status(_), _) => (Status::Done, None),
        (other, _) => panic!("{other:?} in reply to {:?}", operation.opcode),
    }
}

fn as_slices(words: &[Vec<u8>]) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}

fn number(element: Element, text: &[u8]) -> Vec<u8> {
    let scalar = Scalar::parse(element, "reply", text).expect("a number");
    scalar.bits().to_le_bytes().to_vec()
}

/// Texts have one form for all that is no number, and bits have several.
fn normal(operation: &Operation<'_>, mut answer: Answer) -> Answer {
    if let Some(bytes) = &mut answer.1
        && matches!(operation.opcode, Opcode::Update | Opcode::Reduce)
        && answer.0 == Status::Done
    {
        let float = match bytes.len() {
            4 if operation.element == Element::F32.code() => {
                f64::from(f32::from_le_bytes(bytes[..].try_into().expect("four bytes")))
            }
            8 if operation.element >= Element::F32.code() => {
                f64::from_le_bytes(bytes[..].try_into().expect("eight bytes"))
            }
            _ => 0.0,
        };
        if float.is_nan() {
            *bytes = b"no number".to_vec();
        }
    }
    answer
}

/// What happens beside the batches.
#[derive(Clone, Copy, Default)]
struct Around {
    /// Keyspace events are listened to.
    listens: bool,
    /// Images are written.
    images: bool,
    /// Memory of each store, if there is little.
    memory_bytes: Option<usize>,
    policy: Option<&'static str>,
}

/// Two stores with the same data: one executes batches, the other commands.
struct Pair {
    batched: Local,
    single: Local,
    /// Entries of the image so far, the digest at its begin, and that time.
    image: Option<(Vec<u8>, String, Option<u64>)>,
    images: usize,
}

impl Pair {
    fn new(seed: u64, around: Around) -> Self {
        let memory_bytes = around.memory_bytes.unwrap_or(64 << 20);
        let mut pair = Self {
            batched: local(1, memory_bytes, seed),
            single: local(1, memory_bytes, seed),
            image: None,
            images: 0,
        };
        for local in [&mut pair.batched, &mut pair.single] {
            if !around.listens {
                local.effects.listened = 0;
            }
            if let Some(policy) = around.policy {
                let policy = Policy::of(policy);
                let options = EvictionOptions { policy, ..EvictionOptions::default() };
                local.store.set_eviction(0, options, START_MS);
            }
        }
        pair.set_time(START_MS);
        pair
    }

    fn set_time(&mut self, now_ms: u64) {
        self.batched.now_ms = Some(now_ms);
        self.single.now_ms = Some(now_ms);
    }

    /// A command on both stores. One that chooses at random has to choose the same.
    fn command(&mut self, words: &[Vec<u8>]) {
        self.single.effects.records = true;
        self.single.call(&as_slices(words));
        let logged = self.single.effects.logged.take().unwrap_or_else(|| words.to_vec());
        self.batched.call(&as_slices(&logged));
        self.single.effects.records = false;
        for local in [&mut self.batched, &mut self.single] {
            local.effects.block = None;
            local.effects.removed.clear();
            // The command in place of another one is not the same event.
            local.effects.events.clear();
        }
    }

    /// The operations of a packet on one store, and their commands on the other.
    fn packet(&mut self, drawn: &[Drawn]) {
        let operations: Vec<Operation<'_>> = drawn.iter().map(Drawn::operation).collect();
        let answers = Packet::of(&operations).run_all(&mut self.batched);
        for (operation, answer_here) in operations.iter().zip(answers) {
            let mut words = words(operation);
            if words[0] == b"KV.UPDATEV" && !operation.no_return {
                words.push(b"RETURN".to_vec());
            }
            let slices = as_slices(&words);
            let reply = self.single.call(&slices);
            let expected = normal(operation, answer(operation, &reply));
            let found = normal(operation, answer_here);
            let mut expected = expected;
            if operation.no_return && !expected.0.is_error() {
                expected.1 = None;
            }
            assert_eq!(found, expected, "{}", shown(&slices));
        }
        assert_eq!(self.batched.events(), self.single.events());
    }

    fn compare(&mut self) {
        let (batched, single) = (&self.batched.effects, &self.single.effects);
        assert_eq!(batched.changes, single.changes, "changes");
        assert_eq!((batched.hits, batched.misses), (single.hits, single.misses), "lookups");
        assert_eq!(digest(&mut self.batched), digest(&mut self.single));
    }

    /// Continues with an image of the store of batches; it has the data of its begin.
    fn step_image(&mut self, random: &mut Rng) {
        let Some((mut bytes, expected, begin_ms)) = self.image.take() else {
            let expected = digest(&mut self.batched);
            self.batched.store.shards_mut().for_each(|shard| shard.begin_image());
            self.image = Some((vec![], expected, self.batched.now_ms));
            return;
        };
        let shard = self.batched.store.shard_mut(0);
        match shard.image_some(random.usize(0..10), &mut bytes) {
            ImageStep::More => self.image = Some((bytes, expected, begin_ms)),
            ImageStep::Broken => shard.end_image(),
            ImageStep::Done => {
                let mut loaded = local(1, 64 << 20, random.u64(..));
                loaded.now_ms = begin_ms;
                let (mut rest, limits) = (&bytes[..], Limits::default());
                while let Some(entry) = ImageEntry::read(&mut rest, &limits).expect("sound") {
                    loaded.store.shard_mut(0).load(entry).expect("there is memory");
                }
                assert_eq!(digest(&mut loaded), expected, "the image");
                self.images += 1;
            }
        }
    }
}

fn try_once(seed: u64, steps: usize, around: Around) -> usize {
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut pair = Pair::new(seed, around);
    let (mut commands, mut now_ms) = (Commands::new(), START_MS);
    for step in 0..steps {
        now_ms += random.u64(0..3);
        pair.set_time(now_ms);
        match random.u8(..8) {
            0 => pair.command(&commands.draw(&mut random)),
            1 => {
                let key = KEYS[random.usize(..KEYS.len())];
                let expiry = random.u32(1..40).to_string();
                pair.command(&["PEXPIRE", key, &expiry].map(|word| word.as_bytes().to_vec()));
            }
            _ => {
                let count = [1, 2, 5, 30, 100][random.usize(..5)];
                let drawn: Vec<Drawn> = (0..count).map(|_| draw(&mut random)).collect();
                pair.packet(&drawn);
            }
        }
        if around.images {
            pair.step_image(&mut random);
        }
        if around.memory_bytes.is_some() && step % 50 == 20 {
            fill(&mut pair.batched);
            fill(&mut pair.single);
        }
        if step % 20 == 0 {
            pair.compare();
        }
    }
    pair.compare();
    pair.images
}

fn try_seeds(seeds: u64, steps: usize, around: Around) -> usize {
    let first = seed();
    (first..first + seeds).map(|seed| try_once(seed, steps, around)).sum()
}

#[test]
fn unobserved_batches_do_what_commands_do() {
    try_seeds(usual_or_long(4, 300), 1_500, Around::default());
}

#[test]
fn observed_batches_do_what_commands_do() {
    try_seeds(usual_or_long(3, 300), 800, Around { listens: true, ..Around::default() });
}

#[test]
fn images_have_the_data_of_their_begin() {
    let around = Around { images: true, ..Around::default() };
    let images = try_seeds(usual_or_long(3, 100), 1_000, around);
    assert!(images > 10, "{images} images");
}

#[test]
fn uses_are_tracked_meanwhile() {
    let around = Around { policy: Some("allkeys-lfu"), images: true, ..Around::default() };
    try_seeds(usual_or_long(2, 50), 500, around);
}

#[test]
fn a_full_store_refuses_the_same_operations() {
    let around = Around { memory_bytes: Some(1 << 20), ..Around::default() };
    try_seeds(usual_or_long(2, 50), 200, around);
}

/// A watched key makes batches observed; the data are the same.
#[test]
fn watched_batches_do_what_commands_do() {
    let mut random = Rng::with_seed(seed());
    let mut pair = Pair::new(7, Around::default());
    let flag = Arc::new(AtomicBool::new(false));
    pair.batched.store.shard_mut(0).watch(0, b"never used", &flag);
    for _ in 0..300 {
        let drawn: Vec<Drawn> = (0..20).map(|_| draw(&mut random)).collect();
        pair.packet(&drawn);
    }
    pair.compare();
}
