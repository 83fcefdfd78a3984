// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLIENT LIST` and `CLIENT INFO`.

use std::sync::atomic::Ordering;

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::{integer, is};

use super::super::{Context, Flow};
use crate::clients::{ClientKind, ClientRecord};
use crate::worker::Core;

pub(super) fn info(context: &mut Context<'_>) -> Result<Flow, Error> {
    let line = line(context.core, &context.client.record, Some("client|info")) + "\n";
    context.reply().verbatim(*b"txt", line.as_bytes());
    Ok(Flow::Continue)
}

pub(super) fn list(context: &mut Context<'_>) -> Result<Flow, Error> {
    let mut records = context.core.shared.registry.all();
    match context.arguments[2..] {
        [] => {}
        [word, kind] if is(word, "type") => {
            let kind = ClientKind::parse(kind).ok_or_else(|| unknown_kind(kind))?;
            records.retain(|record| record.kind() == kind);
        }
        [word, ref ids @ ..] if is(word, "id") && !ids.is_empty() => {
            const INVALID: Error = Error::fixed("ERR Invalid client ID");
            let ids: Vec<i64> =
                ids.iter().map(|id| integer(id).map_err(|_| INVALID)).collect::<Result<_, _>>()?;
            records.retain(|it| i64::try_from(it.origin.id).is_ok_and(|id| ids.contains(&id)));
        }
        _ => return Err(Error::SYNTAX),
    }
    let own = context.client.id();
    let mut lines = String::new();
    for record in records {
        let command = (record.origin.id == own).then_some("client|list");
        lines += &line(context.core, &record, command);
        lines.push('\n');
    }
    context.reply().verbatim(*b"txt", lines.as_bytes());
    Ok(Flow::Continue)
}

/// There is no such kind of client.
pub(super) fn unknown_kind(word: &[u8]) -> Error {
    Error::new(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(word)))
}

/// The line of a client, with its last command unless that is given.
fn line(core: &Core, record: &ClientRecord, command: Option<&str>) -> String {
    let last = record.command.load(Ordering::Relaxed);
    let name = || {
        let number = last.checked_sub(1)?;
        let is_it = |spec: &freeport_kv_commands::Spec| u32::from(spec.number) == number;
        core.table.iter().map(|command| &command.spec).find(|spec| is_it(spec))
    };
    let command = command.unwrap_or_else(|| name().map_or("NULL", |spec| spec.name));
    record.line(command, core.now_ms)
}
