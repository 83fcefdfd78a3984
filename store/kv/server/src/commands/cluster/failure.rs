// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLUSTER FAILOVER`: the replica that gets it becomes the primary.

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::is;

use super::super::{Context, Flow};
use super::view;

/// `CLUSTER FAILOVER [FORCE|TAKEOVER]`.
pub(super) fn failover(context: &mut Context<'_>) -> Result<Flow, Error> {
    match context.arguments[2..] {
        [] => {}
        [word] if is(word, "force") || is(word, "takeover") => {
            return Err(Error::fixed(
                "ERR a primary without a lease is replaced by an election, and another one only \
                 by its consent: use CLUSTER FAILOVER",
            ));
        }
        _ => return Err(Error::SYNTAX),
    }
    let view = view(context)?;
    if view.shard().is_none_or(|shard| shard.primary == view.me) {
        return Err(Error::fixed("ERR You should send CLUSTER FAILOVER to a replica"));
    }
    Err(Error::fixed("ERR use `freeport kv cluster failover`"))
}
