// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLIENT KILL`: disconnects clients of any worker.

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_protocol::resp::reply::shared;

use super::super::{Context, Flow};
use super::list::unknown_kind;
use crate::access::Users;
use crate::clients::{ClientKind, ClientRecord};
use crate::mail::Message;

/// Which clients are disconnected: all that every filter matches.
#[derive(Debug, Default)]
struct Filter<'a> {
    address: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    kind: Option<ClientKind>,
    id: Option<u64>,
    user: Option<&'a [u8]>,
    least_age_s: Option<u64>,
    includes_own: bool,
}

pub(super) fn kill(context: &mut Context<'_>) -> Result<Flow, Error> {
    // The old form names one client, and replies whether there is one.
    let is_old = context.arguments.len() == 3;
    let filter = match context.arguments[2..] {
        [address] => Filter { address: Some(address), includes_own: true, ..Filter::default() },
        ref words => Filter::parse(words, &context.core.shared.users)?,
    };
    let (own, now_ms) = (context.client.id(), context.core.now_ms);
    let mut killed = 0;
    for record in context.core.shared.registry.all() {
        let is_own = record.origin.id == own;
        if !filter.matches(&record, now_ms) || is_own && !filter.includes_own {
            continue;
        }
        killed += 1;
        if is_own {
            // It gets this reply first.
            context.client.is_closing = true;
        } else {
            let message = Message::Disconnect { client: record.origin.id };
            context.core.shared.mailboxes[record.origin.worker].send(message);
        }
    }
    match (is_old, killed) {
        (true, 0) => return Err(Error::fixed("ERR No such client")),
        (true, _) => context.reply().raw(shared::OK),
        (false, _) => context.reply().integer(killed),
    }
    Ok(Flow::Continue)
}

impl<'a> Filter<'a> {
    fn parse(words: &[&'a [u8]], users: &Users) -> Result<Self, Error> {
        let mut filter = Self::default();
        if !words.len().is_multiple_of(2) {
            return Err(Error::SYNTAX);
        }
        for pair in words.chunks_exact(2) {
            let (option, value) = (pair[0], pair[1]);
            if is(option, "id") {
                const INVALID: Error = Error::fixed("ERR client-id should be greater than 0");
                filter.id = Some(positive(value).ok_or(INVALID)?);
            } else if is(option, "maxage") {
                const INVALID: Error = Error::fixed("ERR maxage should be greater than 0");
                filter.least_age_s = Some(positive(value).ok_or(INVALID)?);
            } else if is(option, "type") {
                let kind = ClientKind::parse(value).ok_or_else(|| unknown_kind(value))?;
                filter.kind = Some(kind);
            } else if is(option, "addr") {
                filter.address = Some(value);
            } else if is(option, "laddr") {
                filter.local = Some(value);
            } else if is(option, "user") {
                if users.get(value).is_none() {
                    let user = String::from_utf8_lossy(value);
                    return Err(Error::new(format!("ERR No such user '{user}'")));
                }
                filter.user = Some(value);
            } else if is(option, "skipme") && (is(value, "yes") || is(value, "no")) {
                filter.includes_own = is(value, "no");
            } else {
                return Err(Error::SYNTAX);
            }
        }
        Ok(filter)
    }

    fn matches(&self, record: &ClientRecord, now_ms: u64) -> bool {
        let origin = &record.origin;
        let age_s = now_ms.saturating_sub(origin.connected_ms) / 1_000;
        self.address.is_none_or(|address| origin.address.as_bytes() == address)
            && self.local.is_none_or(|local| origin.local.as_bytes() == local)
            && self.kind.is_none_or(|kind| record.kind() == kind)
            && self.id.is_none_or(|id| origin.id == id)
            && self.user.is_none_or(|user| record.names().user == user)
            && self.least_age_s.is_none_or(|least| age_s >= least)
    }
}

/// A number above 0.
fn positive(word: &[u8]) -> Option<u64> {
    integer(word).ok().and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0)
}
