// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Subcommands of `CLIENT` that concern the client itself.

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::is;
use freeport_kv_protocol::resp::reply::shared;

use super::super::{Context, Flow};
use crate::client::Replies;

pub(super) fn id(context: &mut Context<'_>) -> Result<Flow, Error> {
    let id = context.client.id();
    context.reply().integer(i64::try_from(id).unwrap_or(i64::MAX));
    Ok(Flow::Continue)
}

pub(super) fn name(context: &mut Context<'_>) -> Result<Flow, Error> {
    let name = context.client.record.names().name.clone();
    match name.is_empty() {
        true => context.reply().null(),
        false => context.reply().bulk(&name),
    }
    Ok(Flow::Continue)
}

pub(super) fn set_name(context: &mut Context<'_>) -> Result<Flow, Error> {
    let name = context.arguments[2];
    check_name(name)?;
    context.client.record.names().name = name.to_vec();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// A name does not break the lines of `CLIENT LIST`.
///
/// # Errors
/// It would.
pub fn check_name(name: &[u8]) -> Result<(), Error> {
    const INVALID: Error =
        Error::fixed("ERR Client names cannot contain spaces, newlines or special characters.");
    if name.iter().all(u8::is_ascii_graphic) { Ok(()) } else { Err(INVALID) }
}

pub(super) fn set_info(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (option, value) = (context.arguments[2], context.arguments[3]);
    let is_library = is(option, "lib-name");
    if !is_library && !is(option, "lib-ver") {
        let option = String::from_utf8_lossy(option);
        return Err(Error::new(format!("ERR Unrecognized option '{option}'")));
    }
    if !value.iter().all(u8::is_ascii_graphic) {
        let option = if is_library { "lib-name" } else { "lib-ver" };
        return Err(Error::new(format!(
            "ERR {option} cannot contain spaces, newlines or special characters."
        )));
    }
    let mut names = context.client.record.names();
    match is_library {
        true => names.library = value.to_vec(),
        false => names.library_version = value.to_vec(),
    }
    drop(names);
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// `ON` or `OFF`.
fn switch(word: &[u8]) -> Result<bool, Error> {
    match (is(word, "on"), is(word, "off")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(Error::SYNTAX),
    }
}

pub(super) fn no_evict(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.client.is_no_evict = switch(context.arguments[2])?;
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

pub(super) fn no_touch(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.client.session.touches = !switch(context.arguments[2])?;
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// Only `ON` has a reply.
pub(super) fn reply(context: &mut Context<'_>) -> Result<Flow, Error> {
    let word = context.arguments[2];
    let replies = if is(word, "on") {
        Replies::On
    } else if is(word, "off") {
        Replies::Off
    } else if is(word, "skip") {
        Replies::Skip
    } else {
        return Err(Error::SYNTAX);
    };
    match (replies, context.client.replies) {
        (Replies::On, _) => {
            context.client.replies = Replies::On;
            context.reply().raw(shared::OK);
        }
        (Replies::Skip, Replies::Off) => {}
        _ => context.client.replies = replies,
    }
    Ok(Flow::Continue)
}
