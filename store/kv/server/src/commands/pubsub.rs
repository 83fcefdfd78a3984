// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Publish and subscribe.

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::Writer;

use super::{Context, Flow, ServerRun};
use crate::channels::Kind;

const FLAGS: Flags = Flags::PUBSUB.with(Flags::NO_SCRIPT).with(Flags::LOADING).with(Flags::STALE);
const PUBLISH: Flags = Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE).with(Flags::FAST);

/// Commands of publish and subscribe.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("subscribe", -2), Group::PubSub, FLAGS, Keys::None, |context| {
        subscribe(context, Kind::Channel)
    }),
    Command::new(("psubscribe", -2), Group::PubSub, FLAGS, Keys::None, |context| {
        subscribe(context, Kind::Pattern)
    }),
    Command::new(("ssubscribe", -2), Group::PubSub, FLAGS, Keys::None, |context| {
        subscribe(context, Kind::Sharded)
    }),
    Command::new(("unsubscribe", -1), Group::PubSub, FLAGS, Keys::None, |context| {
        unsubscribe(context, Kind::Channel)
    }),
    Command::new(("punsubscribe", -1), Group::PubSub, FLAGS, Keys::None, |context| {
        unsubscribe(context, Kind::Pattern)
    }),
    Command::new(("sunsubscribe", -1), Group::PubSub, FLAGS, Keys::None, |context| {
        unsubscribe(context, Kind::Sharded)
    }),
    Command::new(("publish", 3), Group::PubSub, PUBLISH, Keys::None, |context| {
        publish(context, Kind::Channel)
    }),
    Command::new(("spublish", 3), Group::PubSub, PUBLISH, Keys::None, |context| {
        publish(context, Kind::Sharded)
    }),
    Command::new(("pubsub", -2), Group::PubSub, FLAGS, Keys::None, pubsub),
];

/// Words of the replies.
const fn words(kind: Kind) -> (&'static [u8], &'static [u8]) {
    match kind {
        Kind::Channel => (b"subscribe", b"unsubscribe"),
        Kind::Pattern => (b"psubscribe", b"punsubscribe"),
        Kind::Sharded => (b"ssubscribe", b"sunsubscribe"),
    }
}

fn subscribe(context: &mut Context<'_>, kind: Kind) -> Result<Flow, Error> {
    for &name in &context.arguments[1..] {
        let (worker, client) = (context.core.number, context.client.id());
        if context.core.shared.channels.subscribe(kind, name, worker, client) {
            context.client.subscriptions.push((kind, name.to_vec()));
        }
        answer(context, words(kind).0, Some(name), kind);
    }
    Ok(Flow::Continue)
}

fn unsubscribe(context: &mut Context<'_>, kind: Kind) -> Result<Flow, Error> {
    let word = words(kind).1;
    let given = &context.arguments[1..];
    let names: Vec<Vec<u8>> = match given {
        [] => context
            .client
            .subscriptions
            .iter()
            .filter(|(one, _)| *one == kind)
            .map(|(_, name)| name.clone())
            .collect(),
        _ => given.iter().map(|name| name.to_vec()).collect(),
    };
    if names.is_empty() {
        answer(context, word, None, kind);
    }
    for name in names {
        context.client.subscriptions.retain(|(one, other)| *one != kind || *other != name);
        context.core.shared.channels.unsubscribe(kind, &name, context.client.id());
        answer(context, word, Some(&name), kind);
    }
    Ok(Flow::Continue)
}

fn answer(context: &mut Context<'_>, word: &[u8], name: Option<&[u8]>, kind: Kind) {
    let is_sharded = kind == Kind::Sharded;
    let counted = context
        .client
        .subscriptions
        .iter()
        .filter(|(one, _)| (*one == Kind::Sharded) == is_sharded)
        .count();
    write_answer(&mut context.reply(), word, name, counted);
}

fn write_answer(reply: &mut Writer<'_>, word: &[u8], name: Option<&[u8]>, counted: usize) {
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(counted as i64);
}

/// Tells a client that it no longer listens to a name, but to a number of others of that kind.
pub fn write_unsubscribed(reply: &mut Writer<'_>, kind: Kind, name: &[u8], left: usize) {
    write_answer(reply, words(kind).1, Some(name), left);
}

fn publish(context: &mut Context<'_>, kind: Kind) -> Result<Flow, Error> {
    let (channel, payload) = (context.arguments[1], context.arguments[2]);
    let receivers = context.core.publish(kind, channel, payload);
    context.reply().integer(receivers as i64);
    Ok(Flow::Continue)
}

fn pubsub(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (word, rest) = (context.arguments[1], &context.arguments[2..]);
    if is(word, "help") {
        help(context);
    } else if is(word, "channels") && rest.len() <= 1 {
        names(context, Kind::Channel, rest.first().copied());
    } else if is(word, "shardchannels") && rest.len() <= 1 {
        names(context, Kind::Sharded, rest.first().copied());
    } else if is(word, "numsub") {
        listeners(context, Kind::Channel, rest);
    } else if is(word, "shardnumsub") {
        listeners(context, Kind::Sharded, rest);
    } else if is(word, "numpat") && rest.is_empty() {
        let count = context.core.shared.channels.count(Kind::Pattern);
        context.reply().integer(count as i64);
    } else {
        return Err(Error::unknown_subcommand("PUBSUB", word));
    }
    Ok(Flow::Continue)
}

fn names(context: &mut Context<'_>, kind: Kind, pattern: Option<&[u8]>) {
    let names = context.core.shared.channels.names(kind, pattern);
    let mut reply = context.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
}

fn listeners(context: &mut Context<'_>, kind: Kind, names: &[&[u8]]) {
    let channels = &context.core.shared.channels;
    let counts: Vec<usize> = names.iter().map(|name| channels.listeners(kind, name)).collect();
    let mut reply = context.reply();
    // A list of both also in version 3: clients take it apart themselves.
    reply.array(2 * names.len());
    for (name, count) in names.iter().zip(counts) {
        reply.bulk(name);
        reply.integer(count as i64);
    }
}

fn help(context: &mut Context<'_>) {
    super::help(
        context,
        &[
            "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CHANNELS [<pattern>]",
            "    Return the currently active channels matching a <pattern> (default: '*').",
            "NUMPAT",
            "    Return number of subscriptions to patterns.",
            "NUMSUB [<channel> ...]",
            "    Return the number of subscribers for the specified channels.",
            "SHARDCHANNELS [<pattern>]",
            "    Return the currently active shard level channels matching a <pattern>.",
            "SHARDNUMSUB [<shardchannel> ...]",
            "    Return the number of subscribers for the specified shard level channels.",
            "HELP",
            "    Print this help.",
        ],
    );
}
