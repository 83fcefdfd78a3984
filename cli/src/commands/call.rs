// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport call`: calls methods of a running program or of its tables: a few from the command
//! line, or many from a file.

use crate::running::To;
use anyhow::{Context, bail};
use clap::Args;
use freeport_clicknp::source::without_mark;
use freeport_runtime::server::{Client, ClientError};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Calls in flight: enough to hide the round trip, and few enough that the answers fit into the
/// socket buffer.
const AT_A_TIME: usize = 256;

#[derive(Args)]
#[command(after_help = "Example:\n  \
    freeport call --to fw 'exact.insert({source: 10.0.0.8, protocol: 17}, 0, 100)'\n  \
    freeport call 'nat.flows.lookup({address: 10.0.0.1, port: 80})'\n  \
    freeport call --to fw --file rules.txt")]
pub struct Arguments {
    /// The calls, with values as in the language; a struct is written as {member: value}
    #[arg(value_name = "INSTANCE.METHOD(VALUE,VALUE)")]
    calls: Vec<String>,
    /// Read calls from a file, one per line, or from standard input (-); `#` begins a comment. A
    /// call that fails, or whose method returns no, is reported with its line, and the rest are
    /// still made
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the results of the calls of a file, and those that failed, as one JSON object
    #[arg(long, requires = "file", conflicts_with_all = ["calls", "list"])]
    json: bool,
    /// List what can be called
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    to: To,
}

/// Makes the calls and prints their results; for a file, the number of calls with each result.
///
/// # Errors
/// No such running program, or a call that is malformed or fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.calls.is_empty() && arguments.file.is_none() && !arguments.list {
        bail!("there is nothing to call: name a call or a --file; --list prints the methods");
    }
    let mut client = arguments.to.connect()?;
    if arguments.list {
        let methods = client.ask(&json!({"do": "methods"}))?;
        let methods = methods.as_array().into_iter().flatten();
        methods.for_each(|method| println!("{}", method.as_str().unwrap_or_default()));
    }
    for call in &arguments.calls {
        println!("{}", client.ask(&json!({"do": "call", "call": call}))?);
    }
    match &arguments.file {
        Some(path) => call_all(&mut client, path, arguments.json),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The results of the calls of a file.
#[derive(Default)]
struct Outcome {
    /// Number of calls, by method and result.
    counts: BTreeMap<(String, String), (Value, u64)>,
    failed: Vec<Failed>,
}

/// A call that was refused or whose method returned no.
#[derive(Serialize)]
struct Failed {
    file: String,
    line: usize,
    call: String,
    reason: String,
}

fn call_all(client: &mut Client, path: &Path, is_json: bool) -> anyhow::Result<ExitCode> {
    let lines: Box<dyn BufRead> = match path.to_str() {
        Some("-") => Box::new(stdin().lock()),
        _ => {
            let file = File::open(path);
            let file = file.with_context(|| format!("{} cannot be read", path.display()))?;
            Box::new(BufReader::new(file))
        }
    };
    let mut outcome = Outcome::default();
    let mut waiting = vec![];
    for (at, line) in lines.lines().enumerate() {
        let line = line.with_context(|| format!("{} cannot be read", path.display()))?;
        let line = if at == 0 { without_mark(&line) } else { &line };
        let call = line.trim();
        if call.is_empty() || call.starts_with('#') {
            continue;
        }
        waiting.push((at + 1, call.to_owned()));
        if waiting.len() == AT_A_TIME {
            outcome.take(client, path, &mut waiting)?;
        }
    }
    outcome.take(client, path, &mut waiting)?;
    outcome.print(is_json);
    if !outcome.failed.is_empty() {
        bail!("{} calls of {} failed", outcome.failed.len(), path.display());
    }
    Ok(ExitCode::SUCCESS)
}

impl Outcome {
    /// Sends the calls, given with their line numbers, and counts their results.
    fn take(
        &mut self,
        client: &mut Client,
        path: &Path,
        calls: &mut Vec<(usize, String)>,
    ) -> anyhow::Result<()> {
        let requests =
            calls.iter().map(|(_, call)| json!({"do": "call", "call": call, "must_succeed": true}));
        let requests: String = requests.map(|request| format!("{request}\n")).collect();
        client.send(requests.as_bytes())?;
        for (line, call) in calls.drain(..) {
            match client.next_answer() {
                Ok(result) => self.count(&call, result),
                Err(ClientError::Refused(reason)) => {
                    eprintln!("{}:{line}: {reason}", path.display());
                    let file = path.display().to_string();
                    self.failed.push(Failed { file, line, call, reason });
                }
                Err(error) => {
                    let line = format!(
                        "{}:{line}: it is not known whether the call was made",
                        path.display()
                    );
                    return Err(anyhow::Error::from(error).context(line));
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, call: &str, result: Value) {
        let method = call.split('(').next().unwrap_or_default().trim().to_owned();
        self.counts.entry((method, result.to_string())).or_insert((result, 0)).1 += 1;
    }

    fn print(&self, is_json: bool) {
        if is_json {
            let results = self.counts.iter().map(|((method, _), (result, count))| {
                json!({"method": method, "result": result, "count": count})
            });
            let results: Vec<Value> = results.collect();
            println!("{}", json!({"results": results, "failed": self.failed}));
            return;
        }
        for ((method, result), (_, count)) in &self.counts {
            println!("{method}: {count} calls returned {result}");
        }
    }
}
