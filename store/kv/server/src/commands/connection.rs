// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of the connection itself.

use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::Version;
use freeport_kv_protocol::resp::reply::shared;

use super::{Context, Flow, ServerRun};
use crate::client::Replies;

/// Version of Redis whose commands the server has.
pub const REDIS_VERSION: &str = "7.2.4";

const FLAGS: Flags = Flags::LOADING.with(Flags::STALE).with(Flags::FAST);
const EARLY: Flags = FLAGS.with(Flags::NO_SCRIPT).with(Flags::NO_AUTH).with(Flags::ALLOW_BUSY);

/// Commands of the connection.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("ping", -1), Group::Connection, Flags::FAST, Keys::None, ping),
    Command::new(("echo", 2), Group::Connection, FLAGS, Keys::None, echo),
    Command::new(("select", 2), Group::Connection, FLAGS, Keys::None, select),
    Command::new(("quit", -1), Group::Connection, EARLY, Keys::None, quit),
    Command::new(("hello", -1), Group::Connection, EARLY, Keys::None, hello),
    Command::new(("reset", 1), Group::Connection, EARLY, Keys::None, reset),
];

fn ping(context: &mut Context<'_>) -> Result<Flow, Error> {
    let is_listening =
        !context.client.subscriptions.is_empty() && context.client.session.version == Version::Two;
    match *context.arguments {
        [_, ..] if context.arguments.len() <= 2 && is_listening => {
            let text = context.arguments.get(1).copied().unwrap_or_default();
            let mut reply = context.reply();
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(text);
        }
        [_] => context.reply().raw(shared::PONG),
        [_, text] => context.reply().bulk(text),
        _ => return Err(Error::arity("ping")),
    }
    Ok(Flow::Continue)
}

fn echo(context: &mut Context<'_>) -> Result<Flow, Error> {
    let text = context.arguments[1];
    context.reply().bulk(text);
    Ok(Flow::Continue)
}

fn select(context: &mut Context<'_>) -> Result<Flow, Error> {
    const OUT_OF_RANGE: Error = Error::fixed("ERR DB index is out of range");
    let number = integer(context.arguments[1])?;
    let number = u16::try_from(number).map_err(|_| OUT_OF_RANGE)?;
    if number >= context.core.shared.options.databases {
        return Err(OUT_OF_RANGE);
    }
    context.client.session.database = number;
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn quit(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.client.is_closing = true;
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn hello(context: &mut Context<'_>) -> Result<Flow, Error> {
    let mut wanted = None;
    if let Some(version) = context.arguments.get(1) {
        let number = integer(version)
            .map_err(|_| Error::fixed("ERR Protocol version is not an integer or out of range"))?;
        let version = match number {
            2 => Version::Two,
            3 => Version::Three,
            _ => return Err(Error::fixed("NOPROTO unsupported protocol version")),
        };
        wanted = Some(version);
        agree(context)?;
    }
    if !context.client.is_authenticated {
        return Err(Error::fixed(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(version) = wanted {
        context.client.session.version = version;
    }
    let (id, version) = (context.client.id(), context.client.session.version);
    let mode = context.core.shared.mode();
    let mut reply = context.reply();
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if version == Version::Three { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(i64::try_from(id).unwrap_or(i64::MAX));
    reply.bulk(b"mode");
    reply.bulk(mode.as_bytes());
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    Ok(Flow::Continue)
}

/// Options of `HELLO`: a password and a name, both or none of which are taken.
fn agree(context: &mut Context<'_>) -> Result<(), Error> {
    let (mut login, mut name) = (None, None);
    let mut words = &context.arguments[2..];
    while let [option, rest @ ..] = words {
        words = match rest {
            [user, password, rest @ ..] if is(option, "auth") => {
                login = Some((*user, *password));
                rest
            }
            [given, rest @ ..] if is(option, "setname") => {
                super::client::check_name(given)?;
                name = Some(given.to_vec());
                rest
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(Error::new(format!("ERR Syntax error in HELLO option '{option}'")));
            }
        };
    }
    if let Some((user, password)) = login {
        super::authentication::authenticate(context, user, password)?;
    }
    if let Some(name) = name.filter(|_| context.client.is_authenticated) {
        context.client.record.names().name = name;
    }
    Ok(())
}

fn reset(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.client.transaction = None;
    context.core.unwatch(context.client);
    context.client.session.database = 0;
    context.client.session.version = Version::Two;
    context.client.replies = Replies::On;
    context.client.is_no_evict = false;
    context.client.is_readonly = false;
    context.client.session.touches = true;
    context.client.stop_tracking(&context.core.shared);
    context.client.log_out(&context.core.shared.users);
    context.client.record.names().name.clear();
    if std::mem::take(&mut context.client.is_monitor) {
        context.core.shared.set_monitor(context.core.number, context.client.id(), false);
        context.core.follow();
    }
    for (kind, name) in std::mem::take(&mut context.client.subscriptions) {
        context.core.shared.channels.unsubscribe(kind, &name, context.client.id());
    }
    context.reply().status("RESET");
    Ok(Flow::Continue)
}
