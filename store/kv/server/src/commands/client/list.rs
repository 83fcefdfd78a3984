// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLIENT LIST` and `CLIENT INFO`.

use std::sync::atomic::Ordering;

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_protocol::resp::{Version, Writer};

use super::super::{Context, Flow};
use crate::clients::{ClientKind, ClientRecord};
use crate::worker::Core;

pub(super) fn info(context: &mut Context<'_>) -> Result<Flow, Error> {
    record_request(context);
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
    record_request(context);
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

/// The request that is being executed counts as input, until the end of the client's turn.
fn record_request(context: &Context<'_>) {
    let mut request = vec![];
    let mut writer = Writer::new(&mut request, Version::Two);
    writer.array(context.arguments.len());
    context.arguments.iter().for_each(|argument| writer.bulk(argument));
    context.client.record.input_bytes.store(request.len() as u64, Ordering::Relaxed);
}

/// There is no such kind of client.
pub(super) fn unknown_kind(word: &[u8]) -> Error {
    Error::new(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(word)))
}

/// The line of a client, with its last command unless that is given.
fn line(core: &Core, record: &ClientRecord, command: Option<&str>) -> String {
    let last = record.command.load(Ordering::Relaxed);
    let name = || core.shared.users.catalog.name(last.checked_sub(1)? as usize);
    record.line(command.or_else(name).unwrap_or("NULL"), core.now_ms)
}
