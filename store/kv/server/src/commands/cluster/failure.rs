// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLUSTER FAILOVER`: the replica that gets it becomes the primary.

use freeport_kv_commands::Error;
use freeport_kv_commands::arguments::is;
use freeport_kv_protocol::resp::reply::shared::OK;

use super::super::{Context, Flow};
use crate::cluster::Cluster;

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
    let is_asked = context.core.shared.cluster.as_ref().is_some_and(Cluster::ask_to_lead);
    if !is_asked {
        return Err(Error::fixed("ERR You should send CLUSTER FAILOVER to a replica"));
    }
    context.reply().raw(OK);
    Ok(Flow::Continue)
}
