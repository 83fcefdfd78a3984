// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reference of the command line as Markdown: a section for each subcommand, with its usage,
//! arguments, options and examples, all read from the parser's own description.

use clap::{Arg, ArgAction, Command};
use std::fmt::Write;

/// Heading level of a subcommand of `freeport` itself.
const TOP_LEVEL: usize = 2;

/// The sections of all subcommands that are not hidden, after a table of them.
pub fn page(mut command: Command) -> String {
    command.build();
    let mut text = "\n| command | purpose |\n|---|---|\n".to_owned();
    for command in visible(&command) {
        let name = path(command);
        let _ = writeln!(text, "| [`{name}`](#{}) | {} |", name.replace(' ', "-"), about(command));
    }
    let options = rows(&command, |arg| !arg.is_positional());
    if !options.is_empty() {
        text += "\nBefore the subcommand:\n";
        text += &table("option", &options);
    }
    for command in visible(&command) {
        section(command, TOP_LEVEL, &mut text);
    }
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let subcommands = command.get_subcommands();
    subcommands.filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// `freeport xdp run`.
fn path(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

fn about(command: &Command) -> String {
    escaped(&command.get_about().map(ToString::to_string).unwrap_or_default())
}

fn section(command: &Command, level: usize, text: &mut String) {
    let _ = writeln!(text, "\n{} {}\n", "#".repeat(level), path(command));
    let _ = writeln!(text, "{}.\n", about(command));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = writeln!(text, "```text\n{usage}\n```");
    *text += &table("argument", &rows(command, Arg::is_positional));
    *text += &table("option", &rows(command, |arg| !arg.is_positional()));
    if let Some(help) = command.get_after_help() {
        after_help(&help.to_string(), text);
    }
    for command in visible(command) {
        section(command, level + 1, text);
    }
}

/// Rows of those arguments that are shown in the help: what is written, what it means, and its
/// default.
fn rows(command: &Command, is_wanted: impl Fn(&Arg) -> bool) -> Vec<[String; 3]> {
    let is_own = |arg: &&Arg| {
        !matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong)
            && !matches!(arg.get_action(), ArgAction::Version)
            && !arg.is_hide_set()
    };
    let arguments = command.get_arguments().filter(is_own).filter(|arg| is_wanted(arg));
    arguments.map(|arg| [written(arg), meaning(arg), default(arg)]).collect()
}

/// `-o`, `--output <FOLDER>`.
fn written(arg: &Arg) -> String {
    let names = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("`-{short}`, `--{long}`"),
        (Some(short), None) => format!("`-{short}`"),
        (None, Some(long)) => format!("`--{long}`"),
        (None, None) => String::new(),
    };
    if !arg.get_action().takes_values() {
        return names;
    }
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|name| format!("<{name}>")).collect();
    let values = values.join(" ");
    match names.strip_suffix('`') {
        Some(names) => format!("{names} {values}`"),
        None => format!("`{values}`"),
    }
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
    let mut meaning = escaped(&without_default(&help.unwrap_or_default()));
    if arg.is_required_set() {
        meaning += " (required)";
    }
    if matches!(arg.get_action(), ArgAction::Append) && !meaning.contains("may be repeated") {
        meaning += "; may be repeated";
    }
    let possible = arg.get_possible_values();
    let possible = possible.iter().filter(|value| !value.is_hide_set());
    let possible = possible.map(|value| match value.get_help() {
        Some(help) => format!("`{}`: {}", value.get_name(), escaped(&help.to_string())),
        None => format!("`{}`", value.get_name()),
    });
    let possible: Vec<String> = possible.collect();
    if !possible.is_empty() && arg.get_action().takes_values() {
        meaning += &format!(". One of: {}", possible.join("; "));
    }
    meaning
}

/// The default that the parser uses, or that the help names.
fn default(arg: &Arg) -> String {
    let values = arg.get_default_values().iter();
    let values: Vec<String> = values.map(|value| format!("`{}`", value.display())).collect();
    if !values.is_empty() && arg.get_action().takes_values() {
        return values.join(", ");
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    named_default(&help).map(|(_, default)| escaped(default)).unwrap_or_default()
}

const DEFAULT: &str = "[default: ";

/// A help text that ends with `[default: ...]`, without that and with it.
fn named_default(help: &str) -> Option<(&str, &str)> {
    let (before, default) = help.strip_suffix(']')?.split_once(DEFAULT)?;
    Some((before.trim_end(), default))
}

fn without_default(help: &str) -> String {
    named_default(help).map_or(help, |(before, _)| before).to_owned()
}

fn table(what: &str, rows: &[[String; 3]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("\n| {what} | meaning | default |\n|---|---|---|\n");
    for [written, meaning, default] in rows {
        let cells = [written, meaning, default].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// The examples as code, and what follows them as text.
fn after_help(help: &str, text: &mut String) {
    let Some((_, rest)) = help.split_once("Example:\n") else {
        let _ = writeln!(text, "\n{}", escaped(help));
        return;
    };
    let (examples, notes) = rest.split_once("\n\n").unwrap_or((rest, ""));
    *text += "\n```sh\n";
    for line in examples.lines() {
        let _ = writeln!(text, "{}", line.strip_prefix("  ").unwrap_or(line));
    }
    *text += "```\n";
    for paragraph in notes.split("\n\n").filter(|notes| !notes.is_empty()) {
        let _ = writeln!(text, "\n{}", escaped(paragraph));
    }
}

/// Text in which Markdown finds nothing to format, other than what stands between backquotes.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut is_code = false;
    for letter in text.chars() {
        is_code ^= letter == '`';
        if !is_code && matches!(letter, '<' | '*' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_argument_of_every_command_is_in_the_page() {
        let page = page(crate::CommandLine::command());
        fn check(command: &Command, page: &str) {
            for command in visible(command) {
                assert!(page.contains(&format!("# {}\n", path(command))), "{}", path(command));
                for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                    let exists = arg.get_long().is_none_or(|long| page.contains(long));
                    assert!(exists, "{}: {}", path(command), arg.get_id());
                }
                check(command, page);
            }
        }
        let mut command = crate::CommandLine::command();
        command.build();
        check(&command, &page);
    }

    #[test]
    fn defaults_and_values_have_places_of_their_own() {
        let arg = Arg::new("it").long("it").value_name("NUMBER").default_value("4");
        let arg = arg.help("How many | there are, of <those>");
        let command = Command::new("x").arg(arg);
        let text = table("option", &rows(&command, |_| true));
        let row = text.lines().last().unwrap();
        assert_eq!(row, r"| `--it <NUMBER>` | How many \| there are, of \<those> | `4` |");
        let arg = Arg::new("it").help("Where [default: the usual place]");
        assert_eq!((meaning(&arg), default(&arg)), ("Where".into(), "the usual place".into()));
    }

    #[test]
    fn examples_are_code_and_the_rest_is_text() {
        let mut text = String::new();
        after_help("Example:\n  freeport a *.cnp\n  freeport b\n\nAll of *.cnp.", &mut text);
        assert_eq!(text, "\n```sh\nfreeport a *.cnp\nfreeport b\n```\n\nAll of \\*.cnp.\n");
    }
}
