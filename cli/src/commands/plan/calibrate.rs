// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan calibrate`: a profile beside the study's results.

use super::device::DeviceArguments;
use crate::progress::ProgressLine;
use crate::table::Table;
use anyhow::{Context, bail};
use clap::Args;
use freeport_plan_model::Profile;
use freeport_plan_model::calibrate::fit;
use freeport_plan_model::profile::with_values;
use freeport_plan_model::study::Row;
use freeport_plan_results::{basis, rows};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Longest cell of the table, in characters.
const WIDEST: usize = 60;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan calibrate\n  \
    freeport plan calibrate --profile my.toml --fit --out fitted.toml\n\n\
    The results are those of the study of BlueField-2 (OSDI 2023), rows 1 to 43 of its table; a\n\
    fit changes parameters for rows 1 to 31. The status is 1 if a row that the model has is not\n\
    reached. Basis: a parameter states the result (given), was fitted to it (fitted), or none\n\
    names it (follows).")]
pub struct Arguments {
    #[command(flatten)]
    device: DeviceArguments,
    /// Fit the parameters that are marked as fitted, one after the other; this takes minutes
    #[arg(long, requires = "out")]
    fit: bool,
    /// Fit only this parameter, such as `soc.doorbell`; may be repeated
    #[arg(long = "parameter", value_name = "NAME", requires = "fit")]
    parameters: Vec<String>,
    /// Write the fitted profile to this file
    #[arg(long, value_name = "FILE", requires = "fit")]
    out: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Prints the rows.
///
/// # Errors
/// The profile is invalid, or the fitted one cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (name, text) = arguments.device.text()?;
    let profile = Profile::parse(&name, &text)?;
    let rows = match &arguments.out {
        None => all_rows(&profile),
        Some(out) => {
            let is_fitted =
                |name: &&String| profile.origins.get(*name).is_some_and(|origin| origin.fitted);
            if let Some(name) = arguments.parameters.iter().find(|name| !is_fitted(name)) {
                bail!("{name} is no parameter of this profile with `fitted = true`");
            }
            let writing = || format!("writing {}", out.display());
            // A file that is there stays until the fit has ended.
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false);
            let mut file = options.open(out).with_context(writing)?;
            let mut line = ProgressLine::default();
            let fit = fit(&profile, &arguments.parameters, |progress| {
                line.tell(&format!(
                    "try {}: {}, distance {:.4}",
                    progress.tries, progress.parameter, progress.distance
                ));
            });
            drop(line);
            let values: Vec<(&str, f64)> =
                fit.changed.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            let text = with_values(&name, &text, &values)?;
            let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
            written.with_context(writing)?;
            all_rows(&fit.profile)
        }
    };
    match arguments.json {
        true => rows.iter().for_each(|row| println!("{}", line(&profile, row))),
        false => print!("{}", table(&profile, &rows)),
    }
    let is_missed = |row: &Row| row.distance().is_finite() && !row.is_reached();
    Ok(if rows.iter().any(is_missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns all rows, with progress.
fn all_rows(profile: &Profile) -> Vec<Row> {
    let mut line = ProgressLine::default();
    rows(profile, |done| line.tell(&format!("{done} results")))
}

fn line(profile: &Profile, row: &Row) -> serde_json::Value {
    let [low, high] = [row.ours.0, row.ours.1].map(|it| it.is_finite().then_some(it));
    json!({
        "row": row.number,
        "metric": row.metric,
        "published": row.published,
        "accepted": [row.accepted.0, row.accepted.1],
        "model": [low, high],
        "unit": row.unit,
        "basis": basis(profile, row.number).name(),
        "reached": row.is_reached(),
        "how": row.how,
    })
}

fn table(profile: &Profile, rows: &[Row]) -> String {
    let mut table = Table::new(["row", "result", "published", "model", "basis", ""], WIDEST);
    for row in rows {
        let state = match (row.is_reached(), row.distance().is_finite()) {
            (true, _) => "",
            (false, true) => "missed",
            (false, false) => "not modelled",
        };
        table.add([
            row.number.to_string(),
            row.metric.to_owned(),
            row.published.to_owned(),
            row.ours_text(),
            basis(profile, row.number).name().to_owned(),
            state.to_owned(),
        ]);
    }
    table.text("  ", [true, false, false, false, false, false])
}
