// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLIENT`: what clients say of themselves, and what operators ask and order.

mod kill;
mod list;
mod own;
mod tracking;

use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::{Container, Context, Flow, ServerRun, Subcommand};
use crate::clients::flag;
use crate::mail::Message;
use crate::shared::Pause;
pub use own::check_name;

const FLAGS: Flags = Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE);
const ADMIN: Flags = FLAGS.with(Flags::ADMIN);

/// `CLIENT`.
pub const COMMANDS: &[Command<ServerRun>] =
    &[Command::new(("client", -2), Group::Connection, Flags::NONE, Keys::None, |context| {
        CLIENT.run(context)
    })];

/// Its subcommands.
pub const CLIENT: Container = Container {
    name: "client",
    group: Group::Connection,
    subcommands: &[
        Subcommand::new("caching", 3, FLAGS, tracking::caching),
        Subcommand::new("getredir", 2, FLAGS, tracking::redirection),
        Subcommand::new("getname", 2, FLAGS, own::name),
        Subcommand::new("id", 2, FLAGS, own::id),
        Subcommand::new("info", 2, FLAGS, list::info),
        Subcommand::new("kill", -3, ADMIN, kill::kill),
        Subcommand::new("list", -2, ADMIN, list::list),
        Subcommand::new("no-evict", 3, ADMIN, own::no_evict),
        Subcommand::new("no-touch", 3, FLAGS, own::no_touch),
        Subcommand::new("pause", -3, ADMIN, pause),
        Subcommand::new("unpause", 2, ADMIN, unpause),
        Subcommand::new("reply", 3, FLAGS, own::reply),
        Subcommand::new("setinfo", 4, FLAGS, own::set_info),
        Subcommand::new("setname", 3, FLAGS, own::set_name),
        Subcommand::new("tracking", -3, FLAGS, tracking::tracking),
        Subcommand::new("trackinginfo", 2, FLAGS, tracking::info),
        Subcommand::new("unblock", -3, ADMIN, unblock),
    ],
    help: HELP,
};

const HELP: &[&str] = &[
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "    * ID <client-id>",
    "      Kill connections by client id.",
    "    * MAXAGE <maxage>",
    "      Kill connections older than the specified age.",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "    * ID <client-id> [<client-id> ...]",
    "      Return clients of specified IDs only.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "SETINFO <option> <value>",
    "    Set client meta attr. Options are:",
    "    * LIB-NAME: the client lib name.",
    "    * LIB-VER: the client lib version.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Will not touch LRU/LFU stats when this mode is on.",
];

fn pause(context: &mut Context<'_>) -> Result<Flow, Error> {
    const NO_INTEGER: Error = Error::fixed("ERR timeout is not an integer or out of range");
    let is_for_all = match context.arguments[3..] {
        [] => true,
        [word] if is(word, "all") => true,
        [word] if is(word, "write") => false,
        [_] => return Err(Error::fixed("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Error::unknown_subcommand("CLIENT", context.arguments[1])),
    };
    let milliseconds = integer(context.arguments[2]).map_err(|_| NO_INTEGER)?;
    let milliseconds =
        u64::try_from(milliseconds).map_err(|_| Error::fixed("ERR timeout is negative"))?;
    let end_ms = context.core.now_ms.checked_add(milliseconds).ok_or(NO_INTEGER)?;
    context.core.shared.set_pause(Some(Pause { end_ms, is_for_all }));
    context.core.follow();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn unpause(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.core.shared.set_pause(None);
    context.core.follow();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn unblock(context: &mut Context<'_>) -> Result<Flow, Error> {
    let id = integer(context.arguments[2])?;
    let is_error = match context.arguments[3..] {
        [] => false,
        [word] if is(word, "timeout") => false,
        [word] if is(word, "error") => true,
        [_] => {
            let text = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";
            return Err(Error::fixed(text));
        }
        _ => return Err(Error::arity("client|unblock")),
    };
    let record = u64::try_from(id).ok().and_then(|id| context.core.shared.registry.get(id));
    let blocked = record.filter(|record| record.has(flag::BLOCKED));
    if let Some(record) = &blocked {
        let message = Message::Unblock { client: record.origin.id, is_error };
        context.core.shared.mailboxes[record.origin.worker].send(message);
    }
    context.reply().integer(i64::from(blocked.is_some()));
    Ok(Flow::Continue)
}
