// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv inspect`: shows the folder of a key-value server, and cuts a damaged log.

use anyhow::bail;
use clap::Args;
use freeport_kv_protocol::resp::Value;
use freeport_kv_server::inspection::{BadPlace, Inspection, Record, Unit, cut, read};
use serde_json::json;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of an argument that are printed as text.
const SHOWN_BYTES: usize = 200;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv inspect /var/lib/freeport-kv\n  \
                  freeport kv inspect /var/lib/freeport-kv --units --limit 20\n  \
                  freeport kv inspect /var/lib/freeport-kv --cut\n\n\
                  A line of --units has the position in the log, `-` for the first command of a \
                  unit and `+` for a further one, the time, the database, and the command.\n\n\
                  A server may use the folder meanwhile, except with --cut. The exit status is 1 \
                  if the log is damaged, so that a server would not start. The end of an \
                  interrupted write is no damage: the next start cuts it off.")]
pub struct Arguments {
    /// Folder of the server (`freeport kv serve --dir`)
    folder: PathBuf,
    /// Print the commands of the log, one per line; those of one unit are kept or lost together
    #[arg(long)]
    units: bool,
    /// Position in the log of the first unit to print
    #[arg(long, value_name = "POSITION", default_value_t = 0, requires = "units")]
    from: u64,
    /// Maximum number of units to print
    #[arg(long, value_name = "COUNT", requires = "units")]
    limit: Option<u64>,
    /// Cut the log at its first bad place; what is behind it is lost
    #[arg(long, conflicts_with = "units")]
    cut: bool,
    /// Cut without asking
    #[arg(long, requires = "cut")]
    yes: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Prints what the folder contains, or cuts its log.
///
/// # Errors
/// The folder cannot be read, or not be cut.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let mut left = if arguments.units { arguments.limit.unwrap_or(u64::MAX) } else { 0 };
    let inspection = read(folder, &mut |unit| {
        if left > 0 && unit.batch.position.0 >= arguments.from {
            left -= 1;
            print_unit(&unit, arguments.json);
        }
    })?;
    match arguments.json {
        true => println!("{}", object(folder, &inspection)),
        false => print_text(folder, &inspection),
    }
    let bad_place = inspection.contents.bad_place.as_ref();
    if arguments.cut {
        cut_after_consent(arguments, bad_place)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_damaged = bad_place.is_some_and(|place| !place.is_torn());
    Ok(if is_damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Cuts the log if the user agrees.
fn cut_after_consent(arguments: &Arguments, place: Option<&BadPlace>) -> anyhow::Result<()> {
    let Some(place) = place else {
        eprintln!("the log is complete; there is nothing to cut");
        return Ok(());
    };
    let what = format!("{} at offset {}", place.file.display(), place.offset);
    if !arguments.yes {
        if !io::stdin().is_terminal() {
            bail!("add --yes to cut {what}");
        }
        eprint!("Cut {what}? What is behind it is lost. [y/N] ");
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("nothing was cut");
        }
    }
    match cut(&arguments.folder)? {
        Some(place) => eprintln!("cut {} at offset {}", place.file.display(), place.offset),
        None => eprintln!("the log is complete; nothing was cut"),
    }
    Ok(())
}

/// Prints a unit, a line for each record.
fn print_unit(unit: &Unit<'_>, is_json: bool) {
    let mut time_ms = 0;
    let mut changes = vec![];
    for record in &unit.records {
        match record {
            Record::Time(ms) => time_ms = *ms,
            record if is_json => changes.push(change(record, time_ms)),
            record => {
                let position = unit.batch.position.0;
                let mark = if changes.is_empty() { '-' } else { '+' };
                let (seconds, ms) = (time_ms / 1000, time_ms % 1000);
                println!("{position} {mark} {seconds}.{ms:03} {}", line(record));
                changes.push(json!(null));
            }
        }
    }
    if is_json {
        let unit = json!({
            "event": "unit",
            "file": unit.batch.file,
            "offset": unit.batch.offset,
            "position": unit.batch.position.0,
            "changes": changes,
        });
        println!("{unit}");
    }
}

/// A record as `redis-cli` shows commands.
fn line(record: &Record<'_>) -> String {
    match record {
        Record::Time(_) => String::new(),
        Record::Command { database, arguments, has_succeeded } => {
            let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
            let failed = if *has_succeeded { "" } else { " (replied an error)" };
            format!("[{database}] {}{failed}", words.join(" "))
        }
        Record::Removal { database, key } => {
            format!("[{database}] {} (expired or evicted)", quoted(key))
        }
        Record::Functions { dump, .. } => format!("functions: {} bytes", dump.len()),
        Record::Pairs(block) => format!("keys of slots from another shard: {} bytes", block.len()),
    }
}

fn quoted(bytes: &[u8]) -> String {
    let (shown, rest) = bytes.split_at(bytes.len().min(SHOWN_BYTES));
    let text = Value::Bulk(shown.to_vec()).to_string();
    if rest.is_empty() { text } else { format!("{text}... ({} more bytes)", rest.len()) }
}

fn change(record: &Record<'_>, time_ms: u64) -> serde_json::Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match record {
        Record::Time(_) => json!(null),
        Record::Command { database, arguments, has_succeeded } => json!({
            "time_ms": time_ms,
            "database": database,
            "command": arguments.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "has_succeeded": has_succeeded,
        }),
        Record::Removal { database, key } => {
            json!({ "time_ms": time_ms, "database": database, "removed": text(key) })
        }
        Record::Functions { dump, .. } => {
            json!({ "time_ms": time_ms, "functions_bytes": dump.len() })
        }
        Record::Pairs(block) => json!({ "time_ms": time_ms, "pairs_bytes": block.len() }),
    }
}

fn print_text(folder: &Path, inspection: &Inspection) {
    let contents = &inspection.contents;
    println!("{}: generation {}", folder.display(), contents.manifest.generation);
    if let Some(snapshot) = &contents.snapshot {
        println!(
            "{}: bytes: {}; blocks: {}",
            name(&snapshot.file),
            snapshot.bytes,
            snapshot.blocks
        );
        for ((database, kind), count) in &inspection.keys {
            println!("  keys of type {kind} in database {database}: {count}");
        }
        if inspection.functions_bytes > 0 {
            println!("  functions: {} bytes", inspection.functions_bytes);
        }
    }
    for segment in &contents.segments {
        println!(
            "{}: positions {} to {}; bytes: {}; batches: {}; units: {}",
            name(&segment.file),
            segment.position.0,
            segment.end.0,
            segment.bytes,
            segment.batches,
            segment.units
        );
    }
    for stray in &contents.strays {
        println!("{stray}: left by an interrupted write; the next start removes it");
    }
    match &contents.bad_place {
        None => println!("the log is complete"),
        Some(place) => print_bad_place(place, lost_segments(inspection)),
    }
}

fn print_bad_place(place: &BadPlace, lost: usize) {
    let (file, offset, bytes) = (name(&place.file), place.offset, place.bytes);
    println!("{file}: bad at offset {offset}, position {}: {}", place.position.0, place.reason);
    match &place.evidence {
        None => println!(
            "  This is the end of an interrupted write: the next start cuts off {bytes} bytes."
        ),
        Some(evidence) => {
            println!("  The log is damaged, because {evidence}.");
            println!(
                "  A server does not start with it. Restore the folder from a copy, or cut the"
            );
            println!("  log there (--cut): {bytes} bytes of {file} are lost then.");
            if lost > 0 {
                println!("  So are all later segments: {lost}.");
            }
        }
    }
}

/// Number of segments behind the one with the bad place.
fn lost_segments(inspection: &Inspection) -> usize {
    inspection.contents.manifest.segments.len() - inspection.contents.segments.len()
}

fn object(folder: &Path, inspection: &Inspection) -> serde_json::Value {
    let contents = &inspection.contents;
    let keys = inspection.keys.iter().map(
        |((database, kind), count)| json!({ "database": database, "type": kind, "count": count }),
    );
    let snapshot = contents.snapshot.as_ref().map(|snapshot| {
        json!({
            "file": snapshot.file,
            "bytes": snapshot.bytes,
            "blocks": snapshot.blocks,
            "keys": keys.collect::<Vec<_>>(),
            "functions_bytes": inspection.functions_bytes,
        })
    });
    let segments = contents.segments.iter().map(|segment| {
        json!({
            "file": segment.file,
            "position": segment.position.0,
            "end": segment.end.0,
            "durable": segment.durable.0,
            "bytes": segment.bytes,
            "batches": segment.batches,
            "units": segment.units,
        })
    });
    let bad_place = contents.bad_place.as_ref().map(|place| {
        json!({
            "kind": if place.is_torn() { "torn" } else { "corrupt" },
            "file": place.file,
            "offset": place.offset,
            "position": place.position.0,
            "bytes": place.bytes,
            "reason": place.reason,
            "evidence": place.evidence,
            "later_segments": lost_segments(inspection),
        })
    });
    json!({
        "event": "folder",
        "folder": folder,
        "generation": contents.manifest.generation,
        "snapshot": snapshot,
        "segments": segments.collect::<Vec<_>>(),
        "strays": contents.strays,
        "latest_ms": inspection.latest_ms,
        "bad_place": bad_place,
    })
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
