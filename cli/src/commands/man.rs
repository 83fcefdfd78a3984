// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport man`: manual pages and the reference page, generated from the description that the
//! command line is parsed with.

use crate::{CommandLine, reference};
use anyhow::{Context, bail};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport man xdp run | man -l -\n  \
    freeport man --out ~/.local/share/man/man1\n  \
    freeport man --markdown > commands.md")]
pub struct Arguments {
    /// Print the page of this subcommand, such as `xdp run` [default: the page of freeport itself]
    command: Vec<String>,
    /// Write the pages of all subcommands into this folder, which is created if it does not exist
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    out: Option<PathBuf>,
    /// Print a reference of all subcommands as Markdown, for a page of documentation
    #[arg(long, conflicts_with_all = ["command", "out"])]
    markdown: bool,
}

/// Prints a page or the reference, or writes all pages.
///
/// # Errors
/// A subcommand that does not exist, or a folder or file that cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.markdown {
        print!("{}", reference::page(CommandLine::command()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = CommandLine::command().disable_help_subcommand(true);
    command.build();
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
        write_all(&command, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut found = &command;
    for name in &arguments.command {
        let Some(next) = found.find_subcommand(name) else {
            bail!("{} has no subcommand `{name}`", found.get_bin_name().unwrap_or("freeport"));
        };
        found = next;
    }
    print!("{}", page(found)?);
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands that are not hidden.
fn write_all(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(format!("{}.1", name(command)));
    fs::write(&path, page(command)?)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
    subcommands.into_iter().try_for_each(|command| write_all(command, folder))
}

/// `freeport-xdp-run`
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-")
}

fn page(command: &Command) -> anyhow::Result<String> {
    let mut page = vec![];
    let man = Man::new(command.clone()).title(name(command).to_uppercase());
    let man = man.source(concat!("freeport ", env!("CARGO_PKG_VERSION")));
    man.render(&mut page)?;
    let page = String::from_utf8(page).context("the page is not UTF-8")?;
    // The section called EXTRA is the text after the options: examples and notes.
    Ok(page.replace(".SH EXTRA\nExample:\n", ".SH EXAMPLES\n"))
}
