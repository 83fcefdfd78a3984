// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fitting the parameters that nobody has published to the study's results.
//!
//! The search goes along one parameter at a time, with steps that become smaller. It ends when all
//! rows are reached, or when no step brings them closer. Rows without results in the model are left
//! out.

use crate::profile::{Profile, SECTIONS};
use crate::study::{Row, rows};

/// Factors by which a parameter is changed in turn.
const STEPS: [f64; 4] = [1.2, 1.08, 1.03, 1.01];

/// Progress of a fit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress<'a> {
    /// The parameter that is being changed.
    pub parameter: &'a str,
    /// Number of tries.
    pub tries: u32,
    /// Sum of the rows' distances: zero if all are reached.
    pub distance: f64,
}

/// Result of a fit.
#[derive(Clone, PartialEq, Debug)]
pub struct Fit {
    /// The fitted profile.
    pub profile: Profile,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Parameters that were changed, with their values.
    pub changed: Vec<(String, f64)>,
}

/// Returns the sum of the distances of all rows that have results.
pub fn distance(rows: &[Row]) -> f64 {
    rows.iter().map(Row::distance).filter(|distance| distance.is_finite()).sum()
}

/// Fits the parameters of a profile that are marked as fitted; if `only` is not empty, those of
/// them that it names.
pub fn fit(start: &Profile, only: &[String], mut on_progress: impl FnMut(Progress<'_>)) -> Fit {
    let mut best = start.clone();
    let mut best_rows = rows(&best);
    let (mut least, mut tries) = (distance(&best_rows), 0);
    let mut parameters = fitted(start);
    parameters.retain(|(name, _)| only.is_empty() || only.contains(name));
    let mut step = 0;
    while least > 0.0 && step < STEPS.len() {
        let before = least;
        for (name, is_count) in &parameters {
            for factor in [STEPS[step], 1.0 / STEPS[step]] {
                let Some(tried) = changed(&best, name, *is_count, factor) else { continue };
                tries += 1;
                on_progress(Progress { parameter: name, tries, distance: least });
                let found = rows(&tried);
                let distance = distance(&found);
                if distance < least {
                    (best, best_rows, least) = (tried, found, distance);
                    break;
                }
            }
            if least == 0.0 {
                break;
            }
        }
        // Another round with these steps, as long as it helps much.
        if least > 0.9 * before {
            step += 1;
        }
    }
    let changed = parameters.into_iter().filter_map(|(name, _)| {
        let value = best.value(&name)?;
        (start.value(&name) != Some(value)).then_some((name, value))
    });
    Fit { changed: changed.collect(), profile: best, rows: best_rows }
}

/// Returns the names of fitted parameters, and whether they are counts.
fn fitted(profile: &Profile) -> Vec<(String, bool)> {
    let all = SECTIONS.iter().flat_map(|(section, keys)| {
        keys.iter().map(move |key| (format!("{section}.{}", key.name), key.unit == "count"))
    });
    all.filter(|(name, _)| profile.origins.get(name).is_some_and(|origin| origin.fitted)).collect()
}

/// Returns the profile with another value of a parameter; none if it cannot have that value.
fn changed(profile: &Profile, name: &str, is_count: bool, factor: f64) -> Option<Profile> {
    let old = profile.value(name)?;
    let new = match is_count {
        // A step of a count is at least one.
        true if factor > 1.0 => (old * factor).round().max(old + 1.0),
        true => (old * factor).round().min(old - 1.0),
        false => (old * factor * 10.0).round() / 10.0,
    };
    let mut profile = profile.clone();
    profile.set_value(name, new);
    profile.is_possible(name).then_some(profile)
}
