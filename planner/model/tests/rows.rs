// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The study's rows.

use freeport_plan_model::profile::built_in;
use freeport_plan_model::study::{self, Basis, Row};
use std::sync::OnceLock;

/// The rows of the default profile.
fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        study::rows(&built_in("bluefield2").expect("the default").expect("a profile"))
    })
}

#[test]
fn the_published_results_are_reached() {
    let rows = rows();
    let missed = rows.iter().filter(|row| !row.is_reached());
    let missed: Vec<u32> = missed.map(|row| row.number).collect();
    // Row 30 is about a file system.
    assert_eq!(missed, [30], "{rows:#?}");
    let numbers: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.number).collect();
    assert!(numbers.iter().copied().eq(1..=31));
}

/// A value that does not fit the results is found and corrected.
#[test]
fn a_wrong_value_is_fitted_again() {
    let mut profile = built_in("bluefield2").expect("the default").expect("a profile");
    assert!(profile.set_value("soc.doorbell", 235.0));
    let wrong = study::rows(&profile);
    assert!(!wrong.iter().find(|row| row.number == 22).expect("row 22").is_reached());
    let fit = freeport_plan_model::calibrate::fit(&profile, &["soc.doorbell".into()], |_| ());
    let missed = fit.rows.iter().filter(|row| !row.is_reached());
    assert_eq!(missed.map(|row| row.number).collect::<Vec<_>>(), [30]);
    assert!(!fit.changed.is_empty());
    for (name, _) in &fit.changed {
        assert!(profile.origins[name].fitted, "{name} was published");
    }
}

/// `BLESS=1` writes the page of results.
#[test]
fn the_page_of_results_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/paths.md");
    let page = page(rows());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).expect("the page is written");
    }
    let text = std::fs::read_to_string(path).expect("the page");
    assert_eq!(text, page, "BLESS=1 writes the page");
}

fn page(rows: &[Row]) -> String {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let fitted = profile.origins.values().filter(|origin| origin.fitted).count();
    let reached = |basis: Basis| {
        let of = || rows.iter().filter(|row| Basis::of(&profile, row.number) == basis);
        format!("{} of {}", of().filter(|row| row.is_reached()).count(), of().count())
    };
    let mut page = format!(
        "<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->\n\
         # Paths of an off-path SmartNIC\n\n\
         Results of the study \"Characterizing Off-path SmartNIC for Accelerating Distributed \
         Systems\"\n\
         (OSDI 2023) beside those of [the model](../internals/plan.md) with the profile of \
         BlueField-2.\n\
         **All figures of the model are simulated.** A row is reached if all results of the model \
         are\n\
         inside the published range, or within 10 % of a published value. The table shows a fit, \
         not a\n\
         prediction: {fitted} parameters that nobody has published were fitted to these rows.\n\n\
         | basis | meaning | reached |\n|---|---|---|\n\
         | given | a published parameter states the result | {} |\n\
         | fitted | a parameter was fitted to the row | {} |\n\
         | follows | no parameter names the row | {} |\n\n\
         Small payloads are 8 to 128 B, where the study says \"below 512 B\": from 256 B on, the \
         network is\nthe limit of the model, and paths 1, 2 and the plain NIC do not differ.\n\n\
         `freeport plan calibrate` prints the same. A test writes this page, with `BLESS=1`.\n\n\
         | row | result | published | model | basis | asked with | |\n\
         |---|---|---|---|---|---|---|\n",
        reached(Basis::Given),
        reached(Basis::Fitted),
        reached(Basis::Follows)
    );
    for row in rows {
        let state = if row.is_reached() { "reached" } else { "**not reached**" };
        page += &format!(
            "| {} | {} | {} | {} | {} | {} | {state} |\n",
            row.number,
            row.metric,
            row.published,
            row.ours_text(),
            Basis::of(&profile, row.number).name(),
            row.how
        );
    }
    page
}
