// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page of results.

use crate::basis::basis;
use freeport_plan_model::Profile;
use freeport_plan_model::study::{Basis, Row};

/// Returns the page of results as Markdown.
pub fn markdown(profile: &Profile, rows: &[Row]) -> String {
    let mut page = introduction(profile, rows);
    for row in rows {
        let state = if row.is_reached() { "reached" } else { "**not reached**" };
        page += &format!(
            "| {} | {} | {} | {} | {} | {} | {state} |\n",
            row.number,
            row.metric,
            row.published,
            row.ours_text(),
            basis(profile, row.number).name(),
            row.how
        );
    }
    page
}

fn introduction(profile: &Profile, rows: &[Row]) -> String {
    let fitted = profile.origins.values().filter(|origin| origin.fitted).count();
    let reached = |kind: Basis| {
        let of = || rows.iter().filter(|row| basis(profile, row.number) == kind);
        format!("{} of {}", of().filter(|row| row.is_reached()).count(), of().count())
    };
    format!(
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
         prediction: {fitted} parameters that nobody has published were fitted to these rows, and \
         so were\n\
         [sizes and times of the case studies](../internals/studies.md), which run on the \
         simulated machine\n\
         for rows 32 to 43.\n\n\
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
    )
}
