// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of users with several operands.

use freeport_kv_functions::{Deltas, Element, Kind, RefusedFunction, Registry, User};
use std::sync::Arc;

/// Registers functions from id 128 on.
fn registry(functions: impl IntoIterator<Item = User>) -> Registry {
    let mut builder = Registry::builder();
    for (id, user) in (128..).zip(functions) {
        builder.register(id, user).unwrap();
    }
    builder.freeze()
}

#[test]
fn operands_come_in_their_order() {
    let scale = |v: u64, operands: &[u64]| v * operands[0] + operands[1];
    let next = |v: u64, operands: &[u64]| v + 1 + operands.len() as u64;
    let between = |v: u64, operands: &[u64]| u64::from((operands[0]..operands[1]).contains(&v));
    let registry = registry([
        User::new(Kind::Update, "scale", [Element::U16], Arc::new(scale))
            .with_operands(["factor", "offset"]),
        User::new(Kind::Update, "next", [Element::U16], Arc::new(next)).with_operands([""; 0]),
        User::new(Kind::Filter, "between", [Element::U16], Arc::new(between))
            .with_operands(["low", "high"]),
    ]);
    let bytes = |numbers: &[u16]| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    };
    let element = Element::U16;
    let update = |id, values: &[u16], deltas: Deltas<'_>| {
        let mut values = bytes(values);
        registry.update(id).unwrap().vector(element, &mut values, deltas, None).map(|()| values)
    };
    let same = bytes(&[10, 1]);
    assert_eq!(update(128, &[1, 2, 3], Deltas::Same(&same)), Ok(bytes(&[11, 21, 31])));
    let own = bytes(&[10, 1, 20, 2, 30, 3]);
    assert_eq!(update(128, &[1, 2, 3], Deltas::Each(&own)), Ok(bytes(&[11, 42, 93])));
    assert_eq!(update(128, &[], Deltas::Each(&[])), Ok(vec![]));
    let message = "the operand of `scale` (factor, offset) has 2 bytes; 4 are needed";
    assert_eq!(update(128, &[1], Deltas::Same(&own[..2])).unwrap_err().to_string(), message);
    assert!(update(128, &[1, 2], Deltas::Each(&own)).is_err());

    assert_eq!(update(129, &[1, 7], Deltas::Same(&[])), Ok(bytes(&[2, 8])));
    assert_eq!(update(129, &[1, 7], Deltas::Each(&[])), Ok(bytes(&[2, 8])));
    let message = "the operand of `next` has 2 bytes; 0 are needed";
    assert_eq!(update(129, &[1], Deltas::Each(&[0; 2])).unwrap_err().to_string(), message);

    let mut kept = vec![];
    let filter = registry.filter(130).unwrap();
    filter.keep(element, &bytes(&[1, 5, 9]), &bytes(&[5, 9]), &mut kept).unwrap();
    assert_eq!(kept, bytes(&[5]));
    assert_eq!(registry.signature(128).unwrap().operands.to_string(), "factor, offset");
    assert_eq!(registry.signature(128).unwrap().elements, [Element::U16]);
}

#[test]
fn operands_are_refused_with_the_reason() {
    let refused = |kind, operands: &[&str]| {
        let identity = Arc::new(|v: u64, _: &[u64]| v);
        let user = User::new(kind, "f", [Element::U8], identity);
        let registered = Registry::builder().register(128, user.with_operands(operands.to_vec()));
        registered.unwrap_err().to_string()
    };
    let names: Vec<String> = (0..17).map(|at| format!("operand_{at}")).collect();
    let many: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        refused(Kind::Update, &many),
        "`f` has 17 operands; functions of kind update have 0 to 16"
    );
    let two = "`f` has 2 operands; functions of kind reduction have 1, sigma";
    assert_eq!(refused(Kind::Reduce, &["sigma", "other"]), two);
    for operands in [&["a", "a"][..], &["B"], &[""]] {
        let message = refused(Kind::Filter, operands);
        assert!(
            message.contains("is no name of an operand of `f`, or is there twice"),
            "{message}"
        );
    }
    let user = User::new(Kind::Reduce, "f", [Element::U8], Arc::new(|v: u64, _: &[u64]| v));
    let refusal = Registry::builder().register(128, user.with_operands(["sum"; 0])).unwrap_err();
    let expected = RefusedFunction::OperandCount { name: "f".into(), kind: Kind::Reduce, count: 0 };
    assert_eq!(refusal, expected);
}
