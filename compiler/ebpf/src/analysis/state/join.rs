// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Joins states where paths meet: the result holds on both paths.
//!
//! Marks and bases are names local to a state. Two values are equal in the joined state if they are
//! equal on both sides; two addresses share a base in it if they have the same distance on both
//! sides.

use super::{Base, Frame, LENGTH_MAX, METADATA, PACKET, State, UNPROVEN};
use crate::analysis::scalar::{Scalar, step_above, step_below};
use crate::analysis::unknown::{Place, Unknown, Why};
use crate::analysis::value::{Kind, Region, Value, is_near};

/// Two states during their join.
struct Joining<'s> {
    one: &'s State,
    other: &'s State,
    slot: usize,
    /// Steps to which moving bounds are widened, so that loops terminate.
    steps: Option<&'s [u64]>,
    /// For each base of the joined state, its pair of bases and their distance.
    pairs: Vec<BasePair>,
    bases: Vec<Base>,
    /// For each mark, its pair of values.
    marks: Vec<(Same, Same)>,
}

/// A base on either side; `None` where the value is 0. The distance is that of the offsets.
type BasePair = (Option<usize>, Option<usize>, i64);

/// Identity by which values are equal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Same {
    Mark(u32),
    Number(u64),
}

impl Same {
    fn of(value: &Value) -> Option<Self> {
        match value.constant() {
            Some(number) => Some(Self::Number(number)),
            None => (value.mark != 0).then_some(Self::Mark(value.mark)),
        }
    }
}

impl State {
    /// Joins two states that meet at `slot` with the same active functions. With `steps`, bounds of
    /// the first that move are widened to the next step.
    pub fn join(&self, other: &Self, slot: usize, steps: Option<&[u64]>) -> Self {
        let mut joining =
            Joining { one: self, other, slot, steps, pairs: vec![], bases: vec![], marks: vec![] };
        for start in [PACKET, METADATA] {
            joining.base_of((Some(start), Some(start), 0));
        }
        let mut registers = self.registers;
        joining.values(&mut registers, &other.registers, 0);
        let pairs = self.frames.iter().zip(&other.frames).enumerate();
        let frames =
            pairs.map(|(depth, (one, other))| joining.frame(one, other, depth as u8)).collect();
        let marks = joining.marks.len() as u32;
        let mut joined = Self { registers, frames, bases: joining.bases, marks };
        joined.tidy(u16::MAX);
        joined
    }
}

impl Joining<'_> {
    fn frame(&mut self, one: &Frame, other: &Frame, depth: u8) -> Frame {
        let mut saved = one.saved;
        self.values(&mut saved, &other.saved, 6);
        let arguments = one.arguments.zip(other.arguments).map(|(mut one, other)| {
            self.values(&mut one, &other, 1);
            one
        });
        let join = &mut |one: &Value, other: &Value, place| self.value(one, other, place);
        let content = one.content.join(&other.content, depth, join);
        Frame { saved, arguments, content }
    }

    /// Joins registers from `first` on with others.
    fn values(&mut self, values: &mut [Value], others: &[Value], first: u8) {
        for (register, (value, other)) in (first..).zip(values.iter_mut().zip(others)) {
            *value = self.value(value, other, Place::Register(register));
        }
    }

    fn value(&mut self, one: &Value, other: &Value, place: Place) -> Value {
        let kind = match (one.kind, other.kind) {
            (Kind::Nothing, _) | (_, Kind::Nothing) => Kind::Nothing,
            (Kind::Unknown(unknown), _) | (_, Kind::Unknown(unknown)) => Kind::Unknown(unknown),
            (Kind::Number(one), Kind::Number(other)) => Kind::Number(self.number(one, other)),
            _ => self
                .address(one, other)
                .unwrap_or_else(|why| Kind::Unknown(Unknown { slot: self.slot, place, why })),
        };
        let mut joined = Value::new(kind);
        joined.may_be_null = joined.is_pointer()
            && (one.may_be_null || other.may_be_null || is_null(one) || is_null(other));
        joined.mark = self.mark(one, other);
        joined
    }

    fn number(&self, one: Scalar, other: Scalar) -> Scalar {
        match self.steps {
            Some(steps) => one.widened(&other, steps),
            None => one.join(&other),
        }
    }

    /// Returns the mark of a pair of values.
    fn mark(&mut self, one: &Value, other: &Value) -> u32 {
        let (Some(one), Some(other)) = (Same::of(one), Same::of(other)) else { return 0 };
        let found = self.marks.iter().position(|pair| *pair == (one, other));
        let at = found.unwrap_or_else(|| {
            self.marks.push((one, other));
            self.marks.len() - 1
        });
        at as u32 + 1
    }

    /// Joins two values of which at least one is an address or a reference.
    fn address(&mut self, one: &Value, other: &Value) -> Result<Kind, Why> {
        match (one.kind, other.kind) {
            (Kind::Packet { base: left, offset }, Kind::Packet { base: right, offset: to }) => {
                self.packet((Some(left), Some(right), offset - to), offset)
            }
            (
                Kind::Half { base: Some(left), offset },
                Kind::Half { base: Some(right), offset: to },
            ) => match self.packet((Some(left), Some(right), offset - to), offset)? {
                Kind::Packet { base, offset } => Ok(Kind::Half { base: Some(base), offset }),
                other => Ok(other),
            },
            (Kind::Packet { base, offset }, _) if is_null(other) => {
                self.packet((Some(base), None, 0), offset)
            }
            (_, Kind::Packet { base, offset }) if is_null(one) => {
                self.packet((None, Some(base), 0), offset)
            }
            (
                Kind::Address { region: left, offset: from },
                Kind::Address { region: right, offset: to },
            ) => {
                let region = joined_region(left, right).ok_or(Why::PathsDiffer)?;
                let offset = self.range(from, to);
                is_near(offset).then_some(Kind::Address { region, offset }).ok_or(Why::TooFar)
            }
            (left, right) if left == right => Ok(left),
            (left, _) if is_null(other) && one.is_pointer() => Ok(left),
            (_, right) if is_null(one) && other.is_pointer() => Ok(right),
            _ => Err(Why::PathsDiffer),
        }
    }

    fn packet(&mut self, pair: BasePair, offset: i64) -> Result<Kind, Why> {
        let one = pair.0.map(|base| self.one.bases[base].is_metadata);
        let other = pair.1.map(|base| self.other.bases[base].is_metadata);
        if one.is_some() && other.is_some() && one != other {
            return Err(Why::PathsDiffer);
        }
        let base = self.base_of(pair);
        let place = self.bases[base].place;
        is_near(place).then_some(Kind::Packet { base, offset }).ok_or(Why::TooFar)
    }

    /// Returns the base of a pair, the second one moved by their distance.
    fn base_of(&mut self, pair: BasePair) -> usize {
        if let Some(found) = self.pairs.iter().position(|known| *known == pair) {
            return found;
        }
        let one = pair.0.map(|base| known(self.one, base));
        let other = pair.1.map(|base| {
            let found = known(self.other, base);
            let place = (found.place.0 - pair.2, found.place.1 - pair.2);
            Base { place, proven: found.proven + pair.2, most: found.most + pair.2, ..found }
        });
        let joined = match (one, other) {
            (Some(one), Some(other)) => Base {
                is_metadata: one.is_metadata,
                place: self.range(one.place, other.place),
                proven: self.proven(one.proven, other.proven),
                most: self.most(one.most, other.most),
            },
            (Some(found), None) | (None, Some(found)) => found,
            (None, None) => {
                Base { is_metadata: false, place: (0, 0), proven: UNPROVEN, most: LENGTH_MAX }
            }
        };
        self.pairs.push(pair);
        self.bases.push(joined);
        self.bases.len() - 1
    }

    fn proven(&self, one: i64, other: i64) -> i64 {
        match self.steps {
            _ if other >= one => one,
            Some(steps) if other >= 0 => step_below(steps, other as u64) as i64,
            Some(_) => UNPROVEN,
            None => other,
        }
    }

    fn most(&self, one: i64, other: i64) -> i64 {
        match self.steps {
            _ if other <= one => one,
            Some(_) => LENGTH_MAX.max(other),
            None => other,
        }
    }

    /// Returns the hull of two ranges; a bound that moves is widened to the next step.
    fn range(&self, one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
        let Some(steps) = self.steps else { return (one.0.min(other.0), one.1.max(other.1)) };
        let beyond = |value: i64| step_above(steps, value.unsigned_abs()).min(1 << 40) as i64;
        let least = match other.0 {
            least if least >= one.0 => one.0,
            least if least >= 0 => step_below(steps, least as u64) as i64,
            least => -beyond(least),
        };
        let most = match other.1 {
            most if most <= one.1 => one.1,
            most if most >= 0 => beyond(most),
            _ => 0,
        };
        (least, most)
    }
}

fn is_null(value: &Value) -> bool {
    value.constant() == Some(0)
}

/// Returns a base with all that is proven of it.
fn known(state: &State, base: usize) -> Base {
    Base { proven: state.proven(base), most: state.most(base), ..state.bases[base] }
}

/// Joins two regions, if one region covers both.
fn joined_region(one: Region, other: Region) -> Option<Region> {
    match (one, other) {
        (Region::Record { map, slot, size }, Region::Record { map: m, slot: s, size: least })
            if (map, slot) == (m, s) =>
        {
            Some(Region::Record { map, slot, size: size.min(least) })
        }
        _ => (one == other).then_some(one),
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::{LOOKUP, PACKET, before, joined, touched};

    /// Looks up `r7` and `r8` in the array separately.
    fn two_values() -> String {
        format!("{LOOKUP}r7 = r0\nr2 = r10\nr2 += -4\nr1 = map[0]\ncall 0x1\nr8 = r0\n")
    }

    #[test]
    fn values_that_are_equal_on_both_ways_are_equal_behind_them() {
        let text = format!(
            "{LOOKUP}r7 = r0\nr1 = *(u32 *)(r6 + 12)\nif r1 == 0 goto other\nr8 = r7\n\
             goto join\nother:\nr9 = r7\nr8 = r9\njoin:\nif r7 == 0 goto out\n\
             r0 = *(u64 *)(r8 + 0)\nout:\nexit"
        );
        let analysis = joined(&text);
        assert_eq!(touched(&analysis, 15), ["Read value of map 0 0..=0 for 8"]);
    }

    #[test]
    fn values_that_are_equal_on_one_way_alone_are_not() {
        // On the other path each equals something else, so that neither is unnamed.
        let (same, apart) = ("r8 = r7\nr9 = r7\nr5 = r7", "r9 = r7\nr5 = r8\nr5 = r8");
        for (one, other) in [(same, apart), (apart, same)] {
            let text = format!(
                "{}r1 = *(u32 *)(r6 + 12)\nif r1 == 0 goto other\n{one}\ngoto join\nother:\n\
                 {other}\njoin:\nif r7 == 0 goto out\nr0 = *(u64 *)(r8 + 0)\n\
                 r0 = *(u64 *)(r7 + 0)\nr0 = r9\nr0 = r5\nout:\nexit",
                two_values()
            );
            let analysis = joined(&text);
            let of_the_other = ["Read value of map 0 0..=0 for 8, not proven"];
            assert_eq!(touched(&analysis, 24), of_the_other, "{one}");
            assert_eq!(touched(&analysis, 25), ["Read value of map 0 0..=0 for 8"]);
        }
    }

    #[test]
    fn numbers_that_are_equal_on_one_way_alone_are_not() {
        let text = "r2 = *(u32 *)(r1 + 12)\nr3 = *(u32 *)(r1 + 16)\nr4 = *(u32 *)(r1 + 20)\n\
                    if r4 == 0 goto join\nr3 = r2\njoin:\nif r2 > 9 goto out\n\
                    r0 = r2\nr0 += r3\nout:\nexit";
        let analysis = joined(text);
        assert_eq!(before(&analysis, 6, 2), "0x0..=0x9");
        assert_eq!(before(&analysis, 6, 3), "0x0..=0xffffffff");
    }

    #[test]
    fn one_number_on_one_way_is_not_one_on_both() {
        let (same, apart) = ("r2 = 5\nr3 = 5", "r2 = 1\nr3 = 9");
        for (one, other) in [(same, apart), (apart, same)] {
            let text = format!(
                "r4 = *(u32 *)(r1 + 20)\nif r4 == 0 goto other\n{one}\ngoto join\nother:\n\
                 {other}\njoin:\nif r2 > 3 goto out\nr0 = r2\nr0 += r3\nout:\nexit"
            );
            let analysis = joined(&text);
            assert_eq!(before(&analysis, 8, 2), "0x1", "{one}");
            assert_eq!(before(&analysis, 8, 3), "0x5..=0x9", "{one}");
        }
    }

    #[test]
    fn addresses_that_keep_their_distance_on_one_way_alone_prove_nothing_of_each_other() {
        let of = |two: &str| {
            let text = format!(
                "{PACKET}r4 = *(u32 *)(r1 + 12)\nr5 = *(u32 *)(r1 + 16)\nr7 = *(u32 *)(r1 + 20)\n\
                 r4 &= 31\nr5 &= 31\nr4 += r2\nr5 += r2\nif r7 == 0 goto other\n\
                 r5 = r4\nr5 += 4\ngoto join\nother:\n{two}\njoin:\nr7 = r4\nr7 += 12\n\
                 if r7 > r3 goto out\nr0 = *(u64 *)(r5 + 0)\nr0 = *(u64 *)(r4 + 4)\nout:\nexit"
            );
            let analysis = joined(&text);
            let last = analysis.graph().slots() - 1;
            [last - 2, last - 1].map(|slot| analysis.accesses(slot)[0].is_proven)
        };
        assert_eq!(of("r5 = r5"), [false, true]);
        assert_eq!(of("r5 = r4\nr5 += 4"), [true, true]);
        assert_eq!(of("r5 = r4\nr5 += 5"), [false, true]);
    }

    #[test]
    fn less_is_there_of_what_was_proven_on_two_ways() {
        let text = format!(
            "{PACKET}r4 = r2\nr4 += 14\nif r4 > r3 goto out\nr4 += 20\nif r4 > r3 goto join\n\
             r0 = 1\njoin:\nr0 = *(u8 *)(r2 + 13)\nr0 = *(u8 *)(r2 + 14)\nout:\nexit"
        );
        let analysis = joined(&text);
        assert_eq!(before(&analysis, 8, 2), "packet+0 (14 bytes there)");
        assert!(analysis.accesses(8)[0].is_proven && !analysis.accesses(9)[0].is_proven);
    }

    #[test]
    fn an_address_on_one_way_and_0_on_the_other_may_be_0() {
        let text = "r2 = *(u32 *)(r1 + 12)\nr3 = 0\nif r2 == 0 goto join\nr3 = r10\nr3 += -8\n\
                    join:\nr0 = r3\nexit";
        assert_eq!(before(&joined(text), 5, 3), "stack-8 or 0");
        let text = text.replace("r3 = 0", "r3 = 1");
        assert!(before(&joined(&text), 5, 3).contains("not the same kind of value"));
    }
}
