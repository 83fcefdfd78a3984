// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ids of functions, and functions of users.

use crate::model::{any_bits, any_operand, bytes};
use fastrand::Rng;
use freeport_kv_functions::{
    Deltas, Element, Error, Kind, RefusedFunction, Registry, Scalar, Signature, User, UserFunction,
};
use freeport_testbed::seed;
use std::sync::Arc;

/// Ids, kinds, names and parts of operands, which protocols and stored data rely on: add lines, but
/// change none.
const TABLE: &str = "
1 update exchange new
2 update compare_exchange expected new
3 update add amount
4 update subtract amount
5 update multiply factor
6 update add_saturating amount
7 update subtract_saturating amount
8 update minimum other
9 update maximum other
10 update clamp low high
11 update and mask
12 update or mask
13 update xor mask
14 update shift_left distance
15 update shift_right distance
16 update add_wrapping_at amount threshold
17 update add_if_at_most amount limit
18 update subtract_if_at_least amount lowest
19 update subtract_refilling amount lowest refill
32 reduction sum sigma
33 reduction product sigma
34 reduction minimum sigma
35 reduction maximum sigma
36 reduction and sigma
37 reduction or sigma
38 reduction xor sigma
39 reduction count_nonzero sigma
40 reduction sum_of_squares sigma
41 reduction sum_of_magnitudes sigma
64 filter equal other
65 filter not_equal other
66 filter less bound
67 filter at_most bound
68 filter greater bound
69 filter at_least bound
70 filter nonzero
71 filter within low high
72 filter any_bit mask
73 filter masked_equal mask pattern
";

#[test]
fn ids_and_names_stay_the_same() {
    let registry = Registry::built_in();
    let line = |Signature { id, kind, name, operands, elements }: Signature<'_>| {
        assert_eq!(elements, Element::ALL);
        let operands = operands.to_string().replace(',', "");
        format!("{id} {kind} {name} {operands}").trim_end().to_owned()
    };
    let lines: Vec<String> = registry.signatures().map(line).collect();
    assert_eq!(lines.join("\n"), TABLE.trim());
    for signature in registry.signatures() {
        let Signature { id, kind, name, .. } = signature;
        assert_eq!(registry.signature(id), Ok(signature));
        assert_eq!(registry.named(kind, name), Some(signature));
        assert_eq!(registry.named(kind, &name.to_uppercase()), Some(signature));
        assert_eq!(registry.update(id).is_ok(), kind == Kind::Update);
        assert_eq!(registry.reduce(id).is_ok(), kind == Kind::Reduce);
        assert_eq!(registry.filter(id).is_ok(), kind == Kind::Filter);
    }
}

#[test]
fn the_documentation_has_the_same_table() {
    let source = include_str!("../src/registry.rs");
    let is_row = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    let rows = source.lines().filter_map(|line| line.strip_prefix("/// | ")).filter(is_row);
    let words = |row: &str| {
        row.replace(['|', '`', ','], " ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let without_kind = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        [&words[..1], &words[2..]].concat().join(" ")
    };
    let documented: Vec<String> = rows.map(words).collect();
    let expected: Vec<String> = TABLE.trim().lines().map(without_kind).collect();
    assert_eq!(documented, expected);
}

#[test]
fn an_unknown_id_or_another_kind_is_an_error() {
    let registry = Registry::built_in();
    for id in [0, 20, 31, 42, 74, 127, 128, 255] {
        assert_eq!(registry.update(id).unwrap_err(), Error::UnknownFunction { id });
        assert_eq!(registry.reduce(id).unwrap_err(), Error::UnknownFunction { id });
        assert_eq!(registry.filter(id).unwrap_err(), Error::UnknownFunction { id });
    }
    let error = registry.update(32).unwrap_err();
    assert_eq!(error.to_string(), "function 32 is the reduction `sum`, not of kind update");
    assert_eq!(registry.signature(0), Err(Error::UnknownFunction { id: 0 }));
    assert_eq!(registry.named(Kind::Filter, "sum"), None);
    let minimum = |kind| registry.named(kind, "minimum").map(|signature| signature.id);
    assert_eq!((minimum(Kind::Update), minimum(Kind::Reduce)), (Some(8), Some(34)));
}

fn user(
    kind: Kind,
    name: &str,
    function: impl Fn(u64, &[u64]) -> u64 + Send + Sync + 'static,
) -> User {
    User::new(kind, name, Element::ALL, Arc::new(function))
}

#[test]
fn a_registration_is_refused_with_the_reason() {
    let mut builder = Registry::builder();
    let first = |v: u64, _: &[u64]| v;
    builder.register(200, user(Kind::Update, "keep_2", first)).unwrap();
    // The same name is free for another kind.
    builder.register(201, user(Kind::Filter, "keep_2", first)).unwrap();
    let mut refused = |id, kind, name: &str, elements: &[Element]| {
        let user = User::new(kind, name, elements, Arc::new(first));
        builder.register(id, user).unwrap_err().to_string()
    };
    let all = &Element::ALL;
    let reserved = "id 127 is reserved; user functions have ids from 128 to 255";
    assert_eq!(refused(127, Kind::Update, "f", all), reserved);
    assert_eq!(refused(0, Kind::Update, "f", all), reserved.replace("127", "0"));
    assert_eq!(
        refused(200, Kind::Reduce, "f", all),
        "id 200 belongs to `keep_2`; choose another id"
    );
    assert_eq!(
        refused(202, Kind::Update, "keep_2", all),
        "`keep_2` is the name of function 200; choose another name"
    );
    assert_eq!(
        refused(202, Kind::Reduce, "sum", all),
        "`sum` is the name of function 32; choose another name"
    );
    assert_eq!(
        refused(202, Kind::Update, "f", &[]),
        "`f` is for no element; name at least one type"
    );
    for name in ["", "2f", "F", "a b", "a\n", "é", &"f".repeat(65)] {
        let message = refused(202, Kind::Update, name, all);
        assert!(message.contains("` is no name; use 1 to 64 letters"), "{message}");
    }
    let name = "f".repeat(64);
    builder.register(255, user(Kind::Update, &name, first)).unwrap();
    let registry = builder.freeze();
    assert_eq!(registry.named(Kind::Update, &name).map(|signature| signature.id), Some(255));
    assert_eq!(registry.signatures().count(), TABLE.trim().lines().count() + 3);
    assert!(registry.update(201).is_err() && registry.filter(201).is_ok());
    assert_eq!((registry.user_functions(), Registry::built_in().user_functions()), (3, 0));
}

/// A function whose results depend on the order of the calls.
fn mix(v: u64, operand: u64) -> u64 {
    (v.rotate_left(7) ^ operand).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The same function with loops of its own.
struct Compiled;

impl UserFunction for Compiled {
    fn call(&self, _element: Element, value: u64, operands: &[u64]) -> u64 {
        mix(value, operands[0])
    }

    fn fold(&self, element: Element, values: &[u8], mut sigma: u64) -> u64 {
        for bytes in values.chunks(element.width()) {
            sigma = mix(Scalar::load(element, bytes).unwrap().bits(), sigma);
        }
        sigma
    }
}

#[test]
fn user_functions_see_elements_as_64_bits() {
    let mut builder = Registry::builder();
    let kinds = [Kind::Update, Kind::Reduce, Kind::Filter];
    for (id, kind) in (128..).zip(kinds) {
        builder.register(id, user(kind, "mix", |v, operands| mix(v, operands[0]))).unwrap();
        let compiled = User::new(kind, "compiled", Element::ALL, Arc::new(Compiled));
        builder.register(id + 8, compiled).unwrap();
    }
    // A filter that keeps about half.
    builder.register(144, user(Kind::Filter, "odd", |v, operands| (v ^ operands[0]) & 1)).unwrap();
    let registry = builder.freeze();
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    for element in Element::ALL {
        for count in [0, 1, 2, 100, 255, 256, 257, 1000] {
            let case = format!("{count} {element}, seed {seed}");
            let elements = any_operand(&mut rng, element, count);
            let deltas = any_operand(&mut rng, element, count);
            let delta = any_bits(&mut rng, element);
            let values = bytes(element, &elements);
            let one = bytes(element, &[delta]);
            let narrow = |bits: u64| Scalar::from_bits(element, bits).bits();

            for id in [128, 136] {
                let update = registry.update(id).unwrap();
                let (mut value, mut original) = (values.clone(), vec![]);
                update
                    .vector(element, &mut value, Deltas::Same(&one), Some(&mut original))
                    .unwrap();
                let same: Vec<u64> = elements.iter().map(|v| narrow(mix(*v, delta))).collect();
                assert_eq!(value, bytes(element, &same), "{case}");
                assert_eq!(original, values, "{case}");

                let mut value = values.clone();
                let own = bytes(element, &deltas);
                update.vector(element, &mut value, Deltas::Each(&own), None).unwrap();
                let each = elements.iter().zip(&deltas).map(|(v, delta)| narrow(mix(*v, *delta)));
                assert_eq!(value, bytes(element, &each.collect::<Vec<_>>()), "{case}");

                let reduce = registry.reduce(id + 1).unwrap();
                let sigma = rng.u64(..);
                let result = reduce.fold(element, &values, &sigma.to_le_bytes()).unwrap();
                let expected = elements.iter().fold(sigma, |sigma, v| mix(*v, sigma));
                assert_eq!(result, Scalar::from_bits(element.widest(), expected), "{case}");
                assert_eq!(reduce.sigma(element), element.widest());
                assert_eq!(reduce.initial(element), Scalar::from_bits(element.widest(), 0));
            }

            let mut kept = vec![3];
            registry.filter(144).unwrap().keep(element, &values, &one, &mut kept).unwrap();
            let odd = elements.iter().copied().filter(|v| (v ^ delta) & 1 != 0);
            let expected = [&[3], bytes(element, &odd.collect::<Vec<_>>()).as_slice()].concat();
            assert_eq!(kept, expected, "{case}");

            let mut value = one.clone();
            let update = registry.update(128).unwrap();
            let original = update.scalar(element, &mut value, &one).unwrap();
            assert_eq!(original.bits(), delta);
            assert_eq!(value, bytes(element, &[mix(delta, delta)]), "{case}");
        }
    }
}

#[test]
fn user_functions_refuse_other_elements_and_lengths() {
    let mut builder = Registry::builder();
    let double = |v: u64, operands: &[u64]| v.wrapping_mul(2).wrapping_add(operands[0]);
    for (id, kind) in [(130, Kind::Update), (131, Kind::Reduce), (132, Kind::Filter)] {
        let user = User::new(kind, "double", [Element::I16], Arc::new(double));
        builder.register(id, user).unwrap();
    }
    let registry = builder.freeze();
    let update = registry.update(130).unwrap();
    let reduce = registry.reduce(131).unwrap();
    let filter = registry.filter(132).unwrap();
    let (mut value, mut kept) = ([1, 0, 2, 0], vec![]);
    let message = "function `double` is not registered for u16";
    let error = update.scalar(Element::U16, &mut value[..2], &[0; 2]).unwrap_err();
    assert_eq!(error.to_string(), message);
    let error = update.vector(Element::U16, &mut value, Deltas::Same(&[0; 2]), None).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!(reduce.fold(Element::U16, &value, &[0; 8]).unwrap_err().to_string(), message);
    let error = filter.keep(Element::U16, &value, &[0; 2], &mut kept).unwrap_err();
    assert_eq!(error.to_string(), message);

    let element = Element::I16;
    let error = update.scalar(element, &mut value, &[0; 2]).unwrap_err();
    assert_eq!(error, Error::NotScalar { length: 4, element });
    assert!(update.scalar(element, &mut value[..2], &[0; 3]).is_err());
    assert!(update.vector(element, &mut value[..3], Deltas::Same(&[0; 2]), None).is_err());
    let error = update.vector(element, &mut value, Deltas::Each(&[0; 2]), None).unwrap_err();
    let message = "the operand of `double` (delta) has 2 bytes; 4 are needed";
    assert_eq!(error.to_string(), message);
    assert!(reduce.fold(element, &value, &[0; 2]).is_err());
    assert!(filter.keep(element, &value, &[0; 8], &mut kept).is_err());
    assert_eq!((value, kept), ([1, 0, 2, 0], vec![]));
    let refusal = RefusedFunction::ReservedId { id: 1 };
    assert_eq!(Registry::builder().register(1, user(Kind::Update, "x", double)), Err(refusal));
}
