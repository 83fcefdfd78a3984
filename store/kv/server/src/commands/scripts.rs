// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts: `EVAL` and `SCRIPT`.

use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_scripting::{Run, Scripts};

use super::{Context, Flow, ServerRun};
use crate::scripting::{Engine, ScriptCaller};

const EVAL: Flags = Flags::NO_SCRIPT.with(Flags::STALE).with(Flags::MOVABLE_KEYS);
const EVAL_RO: Flags = EVAL.with(Flags::READ);
const SCRIPT: Flags = Flags::NO_SCRIPT.with(Flags::ALLOW_BUSY);

/// Commands of scripts. They need all shards, because a script may use keys that it did not name.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("eval", -3), Group::Scripting, EVAL, Keys::All, |context| eval(context, false)),
    Command::new(("eval_ro", -3), Group::Scripting, EVAL_RO, Keys::All, |context| {
        eval(context, true)
    }),
    Command::new(("evalsha", -3), Group::Scripting, EVAL, Keys::All, |context| {
        eval_sha(context, false)
    }),
    Command::new(("evalsha_ro", -3), Group::Scripting, EVAL_RO, Keys::All, |context| {
        eval_sha(context, true)
    }),
    Command::new(("script", -2), Group::Scripting, SCRIPT, Keys::None, script),
];

/// Arguments of a command.
type Words<'a> = &'a [&'a [u8]];

/// Keys and other arguments of a script, from position 2.
pub(super) fn keys_and_arguments<'a>(
    arguments: Words<'a>,
) -> Result<(Words<'a>, Words<'a>), Error> {
    const NEGATIVE: Error = Error::fixed("ERR Number of keys can't be negative");
    const TOO_MANY: Error = Error::fixed("ERR Number of keys can't be greater than number of args");
    let number = integer(arguments[2])?;
    let number = usize::try_from(number).map_err(|_| NEGATIVE)?;
    let rest = &arguments[3..];
    rest.split_at_checked(number).ok_or(TOO_MANY)
}

fn eval(context: &mut Context<'_>, read_only: bool) -> Result<Flow, Error> {
    let text = context.arguments[1];
    let (keys, arguments) = keys_and_arguments(context.arguments)?;
    let run = Run { keys, arguments, version: context.client.session.version, read_only };
    context.with_engine(|engine, context| {
        engine.follow_scripts(&context.core.shared);
        let known = engine.scripts.len();
        let start = context.output.len();
        let Context { core, client, output, .. } = context;
        engine.scripts.eval(
            text,
            &run,
            &mut ScriptCaller::new((core, client), None, read_only),
            output,
        );
        // A script that was compiled is known to all workers from now on.
        if engine.scripts.len() > known {
            let hash = Scripts::hash(text);
            context.core.shared.library.add_script(hash.as_bytes(), text);
        }
        debug_assert!(context.output.len() > start, "a script has a reply");
    });
    Ok(Flow::Continue)
}

fn eval_sha(context: &mut Context<'_>, read_only: bool) -> Result<Flow, Error> {
    let hash = context.arguments[1];
    let (keys, arguments) = keys_and_arguments(context.arguments)?;
    let run = Run { keys, arguments, version: context.client.session.version, read_only };
    context.with_engine(|engine, context| {
        find(engine, context, hash);
        let Context { core, client, output, .. } = context;
        let mut caller = ScriptCaller::new((core, client), None, read_only);
        engine.scripts.eval_sha(hash, &run, &mut caller, output);
    });
    Ok(Flow::Continue)
}

/// Compiles a script that another worker was given.
fn find(engine: &mut Engine, context: &Context<'_>, hash: &[u8]) -> bool {
    engine.follow_scripts(&context.core.shared);
    if engine.scripts.exists(hash) {
        return true;
    }
    let text = context.core.shared.library.script(hash);
    text.is_some_and(|text| engine.scripts.load(&text).is_ok())
}

fn script(context: &mut Context<'_>) -> Result<Flow, Error> {
    const FLUSH: Error = Error::fixed("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    let (word, rest) = (context.arguments[1], &context.arguments[2..]);
    match rest {
        [text] if is(word, "load") => load(context, text)?,
        [_, ..] if is(word, "exists") => exists(context, rest),
        [] if is(word, "flush") => flush(context),
        [how] if is(word, "flush") => match is(how, "sync") || is(how, "async") {
            true => flush(context),
            false => return Err(FLUSH),
        },
        [] if is(word, "kill") => {
            context.core.shared.library.kill(false)?;
            context.reply().raw(shared::OK);
        }
        [] if is(word, "help") => super::help(
            context,
            &[
                "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "EXISTS <sha1> [<sha1> ...]",
                "    Return information about the existence of the scripts in the script cache.",
                "FLUSH [ASYNC|SYNC]",
                "    Flush the Lua scripts cache. Very dangerous on replicas.",
                "KILL",
                "    Kill the currently executing Lua script.",
                "LOAD <script>",
                "    Load a script into the scripts cache without executing it.",
                "HELP",
                "    Print this help.",
            ],
        ),
        _ => return Err(Error::unknown_subcommand("SCRIPT", word)),
    }
    Ok(Flow::Continue)
}

fn load(context: &mut Context<'_>, text: &[u8]) -> Result<(), Error> {
    let hash = context.with_engine(|engine, context| {
        engine.follow_scripts(&context.core.shared);
        engine.scripts.load(text).map_err(Error::new)
    })?;
    context.core.shared.library.add_script(hash.as_bytes(), text);
    context.reply().bulk(hash.as_bytes());
    Ok(())
}

fn exists(context: &mut Context<'_>, hashes: &[&[u8]]) {
    let known: Vec<bool> = context.with_engine(|engine, context| {
        hashes.iter().map(|hash| find(engine, context, hash)).collect()
    });
    let mut reply = context.reply();
    reply.array(known.len());
    known.iter().for_each(|is_known| reply.integer(i64::from(*is_known)));
}

fn flush(context: &mut Context<'_>) {
    context.core.shared.library.flush_scripts();
    context.with_engine(|engine, context| engine.follow_scripts(&context.core.shared));
    context.reply().raw(shared::OK);
}
