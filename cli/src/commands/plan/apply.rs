// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan apply`: the settings of a plan, as a file that services read.

use anyhow::Context;
use clap::Args;
use freeport_plan::placement::{Placement, PlanFile, write};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan plan replication --out plan.toml\n  \
    freeport plan apply plan.toml --to placement.toml\n  \
    freeport plan apply plan.toml --to -\n\n\
    Settings of other services in the file stay. A file that is no placement is not replaced.")]
pub struct Arguments {
    /// A plan that `freeport plan plan --out` wrote
    file: PathBuf,
    /// The placement file to write or to change; - prints it
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Writes the settings.
///
/// # Errors
/// The plan is invalid, or the file is no placement or cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let name = arguments.file.display().to_string();
    let text = fs::read_to_string(&arguments.file).with_context(|| format!("reading {name}"))?;
    let plan = PlanFile::parse(&name, &text)?;
    let service = plan.service;
    let settings = plan.settings(&text);
    if arguments.to == Path::new("-") {
        let placement = Placement { services: [(service, settings)].into() };
        print!("{}", placement.text());
        return Ok(());
    }
    let parts: Vec<String> = settings
        .shares
        .iter()
        .map(|setting| format!("{} {:.1} %", setting.alternative, 100.0 * setting.share))
        .collect();
    write(&arguments.to, service, settings)?;
    println!("{}: {} by {}", arguments.to.display(), service.name(), parts.join(", "));
    Ok(())
}
