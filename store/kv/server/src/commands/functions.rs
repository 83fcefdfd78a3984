// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions: `FUNCTION` and `FCALL`.

use std::time::Instant;

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_scripting::{RestorePolicy, Run};
use freeport_kv_types::pattern::matches;

use super::scripts::keys_and_arguments;
use super::{Context, Flow, ServerRun};
use crate::scripting::{Engine, Function, ScriptCaller};

const FCALL: Flags = Flags::NO_SCRIPT.with(Flags::STALE).with(Flags::MOVABLE_KEYS);
const FUNCTION: Flags = Flags::NO_SCRIPT.with(Flags::ALLOW_BUSY);

/// Commands of functions.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("fcall", -3), Group::Scripting, FCALL, Keys::All, |context| call(context, false)),
    Command::new(
        ("fcall_ro", -3),
        Group::Scripting,
        FCALL.with(Flags::READ),
        Keys::All,
        |context| call(context, true),
    ),
    Command::new(("function", -2), Group::Scripting, FUNCTION, Keys::None, function),
];

fn call(context: &mut Context<'_>, read_only: bool) -> Result<Flow, Error> {
    const NEGATIVE: Error = Error::fixed("ERR Number of keys can't be negative");
    let name = context.arguments[1];
    if context.arguments[2].starts_with(b"-") {
        return Err(NEGATIVE);
    }
    let (keys, arguments) = keys_and_arguments(context.arguments).map_err(|error| {
        match error == Error::NOT_AN_INTEGER {
            true => Error::fixed("ERR Bad number of keys provided"),
            false => error,
        }
    })?;
    let run = Run { keys, arguments, version: context.client.session.version, read_only };
    context.with_engine(|engine, context| {
        engine.follow_functions(&context.core.shared);
        let running = Some(running(context, name));
        let Context { core, client, output, .. } = context;
        let mut caller = ScriptCaller::new((core, client), running, read_only);
        engine.functions.call(name, &run, &mut caller, output);
    });
    Ok(Flow::Continue)
}

/// A function that begins now, for those who ask.
fn running(context: &Context<'_>, name: &[u8]) -> Function {
    Function {
        name: name.to_vec(),
        command: context.arguments.iter().map(|argument| argument.to_vec()).collect(),
        started: Instant::now(),
    }
}

fn function(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (word, rest) = (context.arguments[1], &context.arguments[2..]);
    match rest {
        [options @ .., code] if is(word, "load") => load(context, options, code)?,
        [name] if is(word, "delete") => delete(context, name)?,
        [] if is(word, "flush") => flush(context),
        [how] if is(word, "flush") && (is(how, "sync") || is(how, "async")) => flush(context),
        [_] if is(word, "flush") => {
            return Err(Error::fixed("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
        }
        options if is(word, "list") => list(context, options)?,
        [] if is(word, "dump") => {
            let dump = context.with_engine(|engine, context| {
                engine.follow_functions(&context.core.shared);
                engine.functions.dump()
            });
            context.reply().bulk(&dump);
        }
        [dump] if is(word, "restore") => restore(context, dump, RestorePolicy::default())?,
        [dump, policy] if is(word, "restore") => restore(context, dump, named(policy)?)?,
        [] if is(word, "stats") => stats(context)?,
        [] if is(word, "kill") => {
            context.core.shared.library.kill(true)?;
            context.reply().raw(shared::OK);
        }
        [] if is(word, "help") => help(context),
        _ => return Err(Error::unknown_subcommand("FUNCTION", word)),
    }
    Ok(Flow::Continue)
}

/// Changes the functions of this worker, and then those of the server.
fn change(
    context: &mut Context<'_>,
    change: impl FnOnce(&mut Engine, &mut ScriptCaller<'_>) -> Result<Option<String>, String>,
) -> Result<(), Error> {
    context.core.admit_functions(context.arguments)?;
    let name = context.with_engine(|engine, context| {
        engine.follow_functions(&context.core.shared);
        let running = Some(running(context, b""));
        let Context { core, client, .. } = context;
        let changed = change(engine, &mut ScriptCaller::new((core, client), running, false));
        if changed.is_ok() {
            let (version, dump) = engine.share_functions(&context.core.shared);
            context.core.record_functions(version, &dump);
        }
        changed.map_err(Error::new)
    })?;
    match name {
        Some(name) => context.reply().bulk(name.as_bytes()),
        None => context.reply().raw(shared::OK),
    }
    Ok(())
}

fn load(context: &mut Context<'_>, options: &[&[u8]], code: &[u8]) -> Result<(), Error> {
    if let Some(unknown) = options.iter().find(|option| !is(option, "replace")) {
        let unknown = String::from_utf8_lossy(unknown);
        return Err(Error::new(format!("ERR Unknown option given: {unknown}")));
    }
    change(context, |engine, caller| {
        engine.functions.load(code, !options.is_empty(), caller).map(Some)
    })
}

fn delete(context: &mut Context<'_>, name: &[u8]) -> Result<(), Error> {
    change(context, |engine, _| match engine.functions.delete(name) {
        true => Ok(None),
        false => Err("ERR Library not found".to_owned()),
    })
}

fn flush(context: &mut Context<'_>) {
    let flushed = change(context, |engine, _| {
        engine.functions.flush().map(|()| None).map_err(|error| error.to_string())
    });
    debug_assert!(flushed.is_ok(), "the limit suffices for an empty state");
}

fn named(policy: &[u8]) -> Result<RestorePolicy, Error> {
    match policy {
        _ if is(policy, "flush") => Ok(RestorePolicy::Flush),
        _ if is(policy, "append") => Ok(RestorePolicy::Append),
        _ if is(policy, "replace") => Ok(RestorePolicy::Replace),
        _ => Err(Error::fixed(
            "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
        )),
    }
}

fn restore(context: &mut Context<'_>, dump: &[u8], policy: RestorePolicy) -> Result<(), Error> {
    change(context, |engine, caller| engine.functions.restore(dump, policy, caller).map(|()| None))
}

fn list(context: &mut Context<'_>, options: &[&[u8]]) -> Result<(), Error> {
    let (mut pattern, mut with_code) = (None, false);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if is(word, "withcode") && !with_code {
            with_code = true;
        } else if is(word, "libraryname") && pattern.is_none() {
            let Some(name) = words.next() else {
                return Err(Error::fixed("ERR library name argument was not given"));
            };
            pattern = Some(*name);
        } else {
            let word = String::from_utf8_lossy(word);
            return Err(Error::new(format!("ERR Unknown argument {word}")));
        }
    }
    context.with_engine(|engine, context| {
        engine.follow_functions(&context.core.shared);
        let is_wanted = |name: &[u8]| pattern.is_none_or(|pattern| matches(pattern, name));
        let version = context.client.session.version;
        engine.functions.list(is_wanted, with_code, version, context.output);
    });
    Ok(())
}

fn stats(context: &mut Context<'_>) -> Result<(), Error> {
    let (libraries, functions) = context.core.shared.library.counts();
    let running = context.core.shared.library.function()?;
    let mut reply = context.reply();
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        None => reply.null(),
        Some(function) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&function.name);
            reply.bulk(b"command");
            reply.array(function.command.len());
            function.command.iter().for_each(|argument| reply.bulk(argument));
            reply.bulk(b"duration_ms");
            let milliseconds = function.started.elapsed().as_millis();
            reply.integer(i64::try_from(milliseconds).unwrap_or(i64::MAX));
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(libraries as i64);
    reply.bulk(b"functions_count");
    reply.integer(functions as i64);
    Ok(())
}

fn help(context: &mut Context<'_>) {
    super::help(
        context,
        &[
            "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "LOAD [REPLACE] <FUNCTION CODE>",
            "    Create a new library with the given library name and code.",
            "DELETE <LIBRARY NAME>",
            "    Delete the given library.",
            "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
            "    Return general information on all the libraries.",
            "STATS",
            "    Return information about the current function running.",
            "KILL",
            "    Kill the current running function.",
            "FLUSH [ASYNC|SYNC]",
            "    Delete all the libraries.",
            "DUMP",
            "    Return a serialized payload representing the current libraries.",
            "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
            "    Restore the libraries represented by the given payload.",
            "HELP",
            "    Print this help.",
        ],
    );
}
