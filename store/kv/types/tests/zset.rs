// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sorted sets of both forms against a sorted vector, with the same operations.

use freeport_kv_types::zset::{
    AddOptions, Compare, Existing, LexRange, NotANumber, Outcome, ScoreBound, ScoreRange, ZSet,
    ZSetRef, limit,
};
use freeport_kv_types::{Entry, Limits};
use freeport_testbed::{seed, usual_or_long};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

type Element = (Vec<u8>, f64);

/// A sorted vector.
#[derive(Default)]
struct Model(Vec<Element>);

impl Model {
    fn score(&self, member: &[u8]) -> Option<f64> {
        self.0.iter().find(|(other, _)| other == member).map(|&(_, score)| score)
    }

    fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let at = self.0.iter().position(|(other, _)| other == member)?;
        Some(self.0.remove(at).1)
    }

    fn set(&mut self, member: &[u8], score: f64) {
        self.remove(member);
        let at =
            self.0.partition_point(|(other, low)| compare((other, *low), (member, score)).is_lt());
        self.0.insert(at, (member.to_vec(), score));
    }

    fn add(
        &mut self,
        member: &[u8],
        score: f64,
        options: AddOptions,
    ) -> Result<Outcome, NotANumber> {
        let present = self.score(member);
        match (present, options.existing) {
            (None, Existing::OnlyExisting) | (Some(_), Existing::OnlyNew) => {
                return Ok(Outcome::Refused);
            }
            _ => {}
        }
        let Some(present) = present else {
            self.set(member, score);
            return Ok(Outcome::Added(score));
        };
        let score = if options.is_increment { present + score } else { score };
        match (score.partial_cmp(&present), options.compare) {
            (None, _) => Err(NotANumber),
            (Some(Ordering::Greater), Compare::Less) => Ok(Outcome::Refused),
            (Some(Ordering::Less), Compare::Greater) => Ok(Outcome::Refused),
            (Some(Ordering::Equal), Compare::Less | Compare::Greater) => Ok(Outcome::Refused),
            (Some(Ordering::Equal), Compare::Any) => Ok(Outcome::Same(score)),
            _ => {
                self.set(member, score);
                Ok(Outcome::Updated(score))
            }
        }
    }
}

fn compare((one, score): (&[u8], f64), (other, other_score): (&[u8], f64)) -> Ordering {
    score.partial_cmp(&other_score).unwrap().then_with(|| one.cmp(other))
}

fn element((member, score): (Entry<'_>, f64)) -> Element {
    (member.to_vec(), score)
}

fn elements(set: ZSetRef<'_>, ranks: Range<usize>) -> Vec<Element> {
    set.range(ranks).map(element).collect()
}

fn random_member(random: &mut fastrand::Rng, kinds: u32) -> Vec<u8> {
    let number = random.u32(..kinds);
    match number % 4 {
        0 => number.to_string().into_bytes(),
        1 => format!("member:{number}").into_bytes(),
        2 => number.to_le_bytes().to_vec(),
        _ => vec![number as u8; number as usize % 90],
    }
}

fn random_score(random: &mut fastrand::Rng) -> f64 {
    match random.u8(..20) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => -0.0,
        3 => random.f64() * 1e300,
        4..8 => random.f64(),
        _ => f64::from(random.i8(..)),
    }
}

fn limits(entries: usize, value_bytes: usize) -> Limits {
    Limits {
        zset_entries: entries,
        zset_value_bytes: value_bytes,
        hash_seed: 5,
        ..Limits::default()
    }
}

#[test]
fn operations_give_what_a_sorted_vector_gives() {
    let forms = [limits(0, 0), limits(128, 64), limits(usize::MAX, usize::MAX)];
    let first = seed();
    for seed in first..first + usual_or_long(6, 200) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sets = forms.each_ref().map(|_| ZSet::default());
        let mut model = Model::default();
        let kinds = [30, 200, 800][seed as usize % 3];
        for step in 0..1500 {
            let choice = random.u64(..);
            let expected = change(&mut fastrand::Rng::with_seed(choice), kinds, &mut model);
            for (set, limits) in sets.iter_mut().zip(&forms) {
                let found = change_set(&mut fastrand::Rng::with_seed(choice), kinds, set, limits);
                assert_eq!(found, expected, "seed {seed}, step {step}");
                assert_eq!(set.len(), model.0.len(), "seed {seed}, step {step}");
            }
            if step % 50 == 0 {
                for set in &sets {
                    assert_queries(set.view(), &model, kinds, choice);
                    assert_snapshot(set, &forms);
                }
            }
        }
        assert!(matches!(sets[0], ZSet::Large(_)), "seed {seed}");
        assert!(matches!(sets[2], ZSet::Packed(_)), "seed {seed}");
    }
}

/// A change of the model, and its result as text.
fn change(random: &mut fastrand::Rng, kinds: u32, model: &mut Model) -> String {
    let len = model.0.len();
    match random.u8(..20) {
        0..12 => {
            let (member, score, options) = random_add(random, kinds);
            format!("{:?}", model.add(&member, score, options))
        }
        12..17 => format!("{:?}", model.remove(&random_member(random, kinds))),
        17 => {
            let first = (len > 0).then(|| model.0.remove(0));
            format!("{first:?}")
        }
        18 => format!("{:?}", model.0.pop()),
        _ => {
            let ranks = random_ranks(random, len);
            format!("{}", model.0.drain(ranks).count())
        }
    }
}

/// The same change of a set.
fn change_set(random: &mut fastrand::Rng, kinds: u32, set: &mut ZSet, limits: &Limits) -> String {
    match random.u8(..20) {
        0..12 => {
            let (member, score, options) = random_add(random, kinds);
            format!("{:?}", set.add(limits, &member, score, options))
        }
        12..17 => format!("{:?}", set.remove(&random_member(random, kinds))),
        17 => format!("{:?}", set.pop_min()),
        18 => format!("{:?}", set.pop_max()),
        _ => {
            let ranks = random_ranks(random, set.len());
            format!("{}", set.remove_ranks(ranks))
        }
    }
}

fn random_add(random: &mut fastrand::Rng, kinds: u32) -> (Vec<u8>, f64, AddOptions) {
    let existing = [Existing::Any, Existing::Any, Existing::OnlyNew, Existing::OnlyExisting];
    let compare = [Compare::Any, Compare::Any, Compare::Greater, Compare::Less];
    let options = AddOptions {
        existing: existing[random.usize(..4)],
        compare: compare[random.usize(..4)],
        is_increment: random.bool(),
    };
    (random_member(random, kinds), random_score(random), options)
}

fn random_ranks(random: &mut fastrand::Rng, len: usize) -> Range<usize> {
    let start = random.usize(..=len);
    start..(start + random.usize(..4)).min(len)
}

fn assert_queries(set: ZSetRef<'_>, model: &Model, kinds: u32, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let len = model.0.len();
    assert_eq!(elements(set, 0..len), model.0);
    let backwards: Vec<_> = set.iter().rev().map(element).collect();
    assert!(backwards.iter().eq(model.0.iter().rev()));
    for _ in 0..10 {
        let member = random_member(&mut random, kinds);
        let rank = model.0.iter().position(|(other, _)| *other == member);
        assert_eq!(set.score(&member), model.score(&member));
        assert_eq!(set.rank(&member), rank.map(|rank| (rank, model.0[rank].1)));

        let ranks = random_ranks(&mut random, len);
        assert_eq!(elements(set, ranks.clone()), model.0[ranks.clone()]);
        let mut both = set.range(ranks.clone());
        let ends = (both.next().map(element), both.next_back().map(element));
        let inner = model.0[ranks].to_vec();
        assert_eq!(ends.0.as_ref(), inner.first());
        assert_eq!(ends.1.as_ref(), inner[inner.len().min(1)..].last());

        let mut bound = || {
            let bounds = [ScoreBound::Inclusive, ScoreBound::Exclusive];
            bounds[random.usize(..2)](random_score(&mut random))
        };
        let range = ScoreRange { min: bound(), max: bound() };
        let expected: Vec<_> = model
            .0
            .iter()
            .filter(|(_, score)| !range.starts_after(*score) && range.ends_after(*score))
            .cloned()
            .collect();
        assert_eq!(elements(set, set.ranks_by_score(&range)), expected, "{range:?}");
    }
}

fn assert_snapshot(set: &ZSet, forms: &[Limits; 3]) {
    let mut bytes = vec![];
    set.view().serialize(&mut bytes);
    let [small, _, huge] =
        forms.each_ref().map(|limits| ZSet::deserialize(&bytes, limits).unwrap());
    assert!(small.view().iter().eq(set.view().iter()));
    assert!(huge.view().iter().eq(set.view().iter()));
    assert_eq!(huge.view().encoding(), set.view().encoding());
    assert!(small.view().encoding() == "skiplist" || set.is_empty());
}

/// Sets of both forms with `len` members of score 0.
fn both_forms(len: u32) -> [ZSet; 2] {
    [limits(0, 0), limits(usize::MAX, usize::MAX)].map(|limits| {
        let mut set = ZSet::default();
        for number in 0..len {
            let member = format!("{:04}", number * 7 % len);
            set.add(&limits, member.as_bytes(), 0.0, AddOptions::default()).unwrap();
        }
        set
    })
}

#[test]
fn ranges_of_members_follow_their_bytes() {
    for set in both_forms(300) {
        let count = |min: &str, max: &str| {
            let range = LexRange::parse(min.as_bytes(), max.as_bytes()).unwrap();
            set.view().ranks_by_lex(&range)
        };
        assert_eq!(count("-", "+"), 0..300);
        assert_eq!(count("[0010", "[0020"), 10..21);
        assert_eq!(count("(0010", "(0020"), 11..20);
        assert_eq!(count("[00101", "+"), 11..300);
        assert_eq!(count("-", "(0000"), 0..0);
        assert!(count("+", "-").is_empty());
        assert!(count("[0020", "[0010").is_empty());
    }
}

#[test]
fn indexes_and_limits_count_from_either_end() {
    for set in both_forms(10) {
        let ranks = |start, stop| set.view().ranks_by_index(start, stop, false);
        assert_eq!(ranks(0, -1), 0..10);
        assert_eq!(ranks(-3, 100), 7..10);
        assert_eq!(ranks(2, 2), 2..3);
        for (start, stop) in [(3, 2), (10, 11), (0, -11), (i64::MAX, i64::MIN)] {
            assert!(ranks(start, stop).is_empty());
        }
        assert_eq!(ranks(i64::MIN, i64::MAX), 0..10);
        assert_eq!(set.view().ranks_by_index(0, 1, true), 8..10);
        assert_eq!(set.view().ranks_by_index(-1, -1, true), 0..1);
    }
    assert_eq!(limit(3..9, 1, 2, false), 4..6);
    assert_eq!(limit(3..9, 1, 2, true), 6..8);
    assert_eq!(limit(3..9, 4, -1, false), 7..9);
    assert!(limit(3..9, 7, 1, false).is_empty());
    assert!(limit(3..9, -1, -1, true).is_empty());
}

#[test]
fn scans_return_every_member_that_stays() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let [mut set, _] = both_forms(500);
        // Members below 100 stay; others come and leave during the scan.
        let mut seen = HashSet::new();
        let mut cursor = 0;
        loop {
            cursor = set.view().scan(cursor, 7, |member, _| _ = seen.insert(member.to_vec()));
            if cursor == 0 {
                break;
            }
            for _ in 0..random.u8(..20) {
                let member = format!("{:04}", random.u32(100..1000));
                if random.u8(..5) < 4 {
                    set.remove(member.as_bytes());
                } else {
                    set.add(&limits(0, 0), member.as_bytes(), 1.0, AddOptions::default()).unwrap();
                }
            }
        }
        for number in 0..100 {
            assert!(seen.contains(format!("{number:04}").as_bytes()), "seed {seed}, {number}");
        }
    }
}

#[test]
fn random_members_are_different_and_all_possible() {
    for mut set in both_forms(55) {
        assert_eq!(set.remove_ranks(10..25), 15);
        let mut random = fastrand::Rng::with_seed(8);
        let mut pick = |count| random.usize(..count);
        let mut ever = HashSet::new();
        for count in [0, 1, 5, 39, 40, 50].repeat(30) {
            let mut found = vec![];
            set.view().random_distinct(count, &mut pick, |member, _| found.push(member.to_vec()));
            assert_eq!(found.len(), count.min(40));
            assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
        }
        for _ in 0..400 {
            ever.extend(set.view().random(&mut pick).map(|(member, _)| member.to_vec()));
        }
        assert_eq!(ever.len(), 40);
        assert!(ZSet::default().view().random(&mut pick).is_none());
    }
}

#[test]
fn damaged_snapshots_are_refused() {
    for set in both_forms(30) {
        let mut bytes = vec![];
        set.view().serialize(&mut bytes);
        for end in 0..bytes.len() {
            assert!(
                ZSet::deserialize(&bytes[..end], &limits(0, 0)).is_err() || end == 1,
                "{end} bytes"
            );
        }
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..2000 {
            let mut damaged = bytes.clone();
            let at = random.usize(..bytes.len());
            damaged[at] ^= 1 << random.u8(..8);
            // Damage of a member or score may give another set, which is then in order.
            if let Ok(read) = ZSet::deserialize(&damaged, &limits(0, 0)) {
                let elements: Vec<_> = read.view().iter().map(element).collect();
                assert!(elements.is_sorted_by(|one, other| {
                    compare((&one.0, one.1), (&other.0, other.1)).is_lt()
                }));
            }
        }
    }
    // A huge count of elements takes no memory.
    let error = ZSet::deserialize(&[1, 0xff, 0xff, 0xff, 0xff, 0x0f], &limits(0, 0)).err();
    assert_eq!(error.map(|error| error.offset), Some(6));
}

#[test]
fn sorted_elements_become_a_set_at_once() {
    let elements: [(&[u8], f64); 3] = [(b"b", 1.0), (b"a", 2.0), (b"c", 2.0)];
    for limits in [limits(0, 0), limits(9, 9)] {
        let set = ZSet::from_sorted(&limits, &elements).unwrap();
        assert!(
            set.view()
                .iter()
                .map(element)
                .eq(elements.map(|(member, score)| (member.to_vec(), score)))
        );
        let at = |elements: &[(&[u8], f64)]| ZSet::from_sorted(&limits, elements).err();
        assert_eq!(at(&[elements[0], elements[2], elements[1]]), Some(2));
        assert_eq!(at(&[elements[0], (b"b", 3.0)]), Some(1));
        assert_eq!(at(&[(b"a", f64::NAN)]), Some(0));
    }
}

#[test]
fn memory_is_that_of_the_elements() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut set, limits) = (ZSet::default(), limits(128, 64));
    let count = 20_000;
    for number in 0..count {
        let member = format!("member:{number:06}");
        set.add(&limits, member.as_bytes(), random.f64(), AddOptions::default()).unwrap();
    }
    let bytes = set.view().memory_bytes() / count;
    assert!((40..60).contains(&bytes), "{bytes} bytes each");
    set.remove_ranks(100..count);
    let left = set.view().memory_bytes() / 100;
    assert!(left < 180, "{left} bytes each");
}
