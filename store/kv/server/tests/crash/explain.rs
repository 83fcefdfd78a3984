// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether what a server has after a kill is what its clients know: all requests with a reply, and
//! any of those without one, each as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Entry, Model, Times};
use super::reading::Reading;
use super::step::Request;

/// The knowledge of a client whose server was killed.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// After all requests with a reply.
    pub model: Model,
    /// Requests without one, which were sent at once.
    pub unknown: Vec<Request>,
    /// When those may have been executed.
    pub times: Times,
}

/// Finds which of the requests without a reply have taken effect, so that the keys of a client are
/// those that a server has; returns the keys. Requests on one key take effect in their order, and
/// with `is_ordered` all of them.
///
/// # Errors
/// The keys that have no explanation.
pub fn explain(
    knowledge: &Knowledge,
    reading: &Reading,
    prefix: &str,
    is_ordered: bool,
) -> Result<BTreeMap<String, Entry>, String> {
    let entries: BTreeMap<String, Entry> = reading
        .entries
        .range(prefix.to_owned()..)
        .take_while(|(key, _)| key.starts_with(prefix))
        .map(|(key, entry)| (key.clone(), entry.clone()))
        .collect();
    let seen = Reading { entries, times: reading.times };
    let search = Search { knowledge, seen: &seen, is_ordered };
    if search.is_explained(&knowledge.model, &knowledge.unknown, &BTreeSet::new()) {
        return Ok(seen.entries);
    }
    Err(search.difference())
}

/// Keys whose values a model does not explain.
pub fn differing<'a>(model: &'a Model, seen: &'a Reading) -> impl Iterator<Item = &'a String> {
    let keys: BTreeSet<&String> = model.entries.keys().chain(seen.entries.keys()).collect();
    keys.into_iter().filter(|key| !agree(model, seen, key))
}

fn agree(model: &Model, seen: &Reading, key: &str) -> bool {
    match (model.entries.get(key), seen.entries.get(key)) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some(expected), Some(seen)) => expected.agrees(seen),
        (Some(expected), None) => {
            expected.expires.is_some_and(|expires| expires.earliest_ms <= seen.times.latest_ms)
        }
    }
}

/// Lines that compare the values of these keys.
pub fn differences(model: &Model, seen: &Reading) -> String {
    let lines = differing(model, seen).map(|key| {
        let [expected, seen] = [&model.entries, &seen.entries].map(|entries| entries.get(key));
        format!("{key}\n  acknowledged: {}\n  found:        {}\n", show(expected), show(seen))
    });
    lines.collect()
}

struct Search<'a> {
    knowledge: &'a Knowledge,
    seen: &'a Reading,
    is_ordered: bool,
}

impl Search<'_> {
    /// Whether some of the rest of the requests explain what was seen. Keys that are `settled` were
    /// left by a request that has not taken effect.
    fn is_explained(&self, model: &Model, rest: &[Request], settled: &BTreeSet<&String>) -> bool {
        let Some((request, rest)) = rest.split_first() else {
            return differing(model, self.seen).next().is_none();
        };
        let keys = || request.steps().iter().flat_map(|step| step.keys());
        if !keys().any(|key| settled.contains(key)) {
            let mut model = model.clone();
            let executed = model.execute(request, None, self.knowledge.times);
            executed.expect("there is no reply that could be wrong");
            if self.is_explained(&model, rest, settled) {
                return true;
            }
        }
        if self.is_ordered {
            return differing(model, self.seen).next().is_none();
        }
        if keys().next().is_none() {
            return false;
        }
        let settled = settled.iter().copied().chain(keys()).collect();
        // This leaves out most of what cannot be an explanation.
        keys().all(|key| agree(model, self.seen, key)) && self.is_explained(model, rest, &settled)
    }

    fn difference(&self) -> String {
        let lines = differences(&self.knowledge.model, self.seen);
        let unknown = self.knowledge.unknown.iter().map(|request| format!("  {}\n", show(request)));
        format!(
            "no requests without a reply explain the difference:\n{}requests without a reply:\n{}",
            lines,
            unknown.collect::<String>()
        )
    }
}

/// The beginning of a value, which may be long.
fn show(value: impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(400) {
        None => text,
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{NO_TIME, reading, set};
    use super::super::step::Step;
    use super::*;

    /// Whether pairs are explained by an acknowledged `a` = 1 and requests without a reply.
    fn explains(unknown: &[Request], pairs: &[(&str, &str)], is_ordered: bool) -> bool {
        let mut model = Model::default();
        let acknowledged = Request::One(set("a", "1"));
        model.execute(&acknowledged, None, NO_TIME).expect("it has no reply");
        let knowledge = Knowledge { model, unknown: unknown.to_vec(), times: NO_TIME };
        explain(&knowledge, &reading(pairs), "", is_ordered).is_ok()
    }

    #[test]
    fn a_write_with_a_reply_is_there_and_nothing_else() {
        assert!(explains(&[], &[("a", "1")], true));
        for pairs in [&[][..], &[("a", "2")], &[("a", "1"), ("b", "1")]] {
            assert!(!explains(&[], pairs, true), "{pairs:?}");
        }
    }

    #[test]
    fn a_request_without_a_reply_is_there_as_a_whole_or_not_at_all() {
        let steps = vec![set("a", "2"), set("b", "2")];
        for unknown in [Request::Exec(steps.clone()), Request::Script(steps)] {
            let unknown = &[unknown];
            assert!(explains(unknown, &[("a", "1")], true));
            assert!(explains(unknown, &[("a", "2"), ("b", "2")], true));
            assert!(!explains(unknown, &[("a", "2")], true));
            assert!(!explains(unknown, &[("a", "1"), ("b", "2")], false));
        }
    }

    #[test]
    fn requests_without_replies_keep_their_order() {
        let unknown = [set("a", "2"), set("b", "2"), set("a", "3")].map(Request::One);
        let later = [("a", "1"), ("b", "2")];
        assert!(explains(&unknown, &later, false) && !explains(&unknown, &later, true));
        assert!(explains(&unknown, &[("a", "2"), ("b", "2")], true));
        // Both requests on a key are missing, or the second one is.
        assert!(explains(&unknown, &[("a", "3"), ("b", "2")], true));
        assert!(!explains(&unknown, &[("a", "3")], true));
        let without_first = [set("a", "2"), Step::Append { key: "a".into(), text: "x".into() }];
        assert!(!explains(&without_first.map(Request::One), &[("a", "1x")], false));
    }
}
