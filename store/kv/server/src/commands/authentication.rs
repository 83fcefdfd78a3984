// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `AUTH`, and `ACL` of the only user: everything is allowed to a client that gives the password,
//! or to all if there is none.

use std::fmt::Write;

use freeport_kv_commands::arguments::integer;
use freeport_kv_commands::{Command, Error, Flags, Group, Keys, Spec};
use freeport_kv_protocol::resp::reply::shared;

use super::categories::{CATEGORIES, categories};
use super::{Container, Context, Flow, ServerRun, Subcommand};
use crate::clients::USER;

const AUTH: Flags = Flags::NO_SCRIPT
    .with(Flags::LOADING)
    .with(Flags::STALE)
    .with(Flags::FAST)
    .with(Flags::NO_AUTH)
    .with(Flags::ALLOW_BUSY);
const FLAGS: Flags = Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE);
const ADMIN: Flags = FLAGS.with(Flags::ADMIN);

/// Commands of access control.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("auth", -2), Group::Connection, AUTH, Keys::None, auth),
    Command::new(("acl", -2), Group::Server, Flags::NONE, Keys::None, |context| ACL.run(context)),
];

/// Subcommands of `ACL`.
pub const ACL: Container = Container {
    name: "acl",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("cat", -2, FLAGS, show_categories),
        Subcommand::new("deluser", -3, ADMIN, only_one),
        Subcommand::new("dryrun", -4, ADMIN, only_one),
        Subcommand::new("genpass", -2, FLAGS, make_password),
        Subcommand::new("getuser", 3, ADMIN, user),
        Subcommand::new("list", 2, ADMIN, list),
        Subcommand::new("load", 2, ADMIN, no_file),
        Subcommand::new("log", -2, ADMIN, log),
        Subcommand::new("save", 2, ADMIN, no_file),
        Subcommand::new("setuser", -3, ADMIN, only_one),
        Subcommand::new("users", 2, ADMIN, users),
        Subcommand::new("whoami", 2, FLAGS, own_name),
    ],
    help: &[
        "CAT [<category>]",
        "    List all commands that belong to <category>, or all command categories",
        "    when no category is specified.",
        "GETUSER <username>",
        "    Get the user's details.",
        "GENPASS [<bits>]",
        "    Generate a secure 256-bit user password. The optional `bits` argument can",
        "    be used to specify a different size.",
        "LIST",
        "    Show users details in config file format.",
        "LOG [<count> | RESET]",
        "    Show the ACL log entries.",
        "USERS",
        "    List all the registered usernames.",
        "WHOAMI",
        "    Return the current connection username.",
    ],
};

fn auth(context: &mut Context<'_>) -> Result<Flow, Error> {
    const NOT_CONFIGURED: Error = Error::fixed(
        "ERR AUTH <password> called without any password configured for the default user. Are you \
         sure your configuration is correct?",
    );
    match *context.arguments {
        [_, _] if context.core.settings.password.is_empty() => return Err(NOT_CONFIGURED),
        [_, password] => authenticate(context, USER.as_bytes(), password)?,
        [_, user, password] => authenticate(context, user, password)?,
        _ => return Err(Error::SYNTAX),
    }
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// The client gives a password. Without one that is configured, any is right.
///
/// # Errors
/// It is wrong.
pub fn authenticate(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<(), Error> {
    const WRONG: Error =
        Error::fixed("WRONGPASS invalid username-password pair or user is disabled.");
    let wanted = context.core.settings.password.as_bytes();
    let is_right = user == USER.as_bytes() && (wanted.is_empty() || are_equal(wanted, password));
    if !is_right {
        return Err(WRONG);
    }
    context.client.is_authenticated = true;
    Ok(())
}

/// Compares without telling by its time where the texts differ.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

fn show_categories(context: &mut Context<'_>) -> Result<Flow, Error> {
    let Some(&category) = context.arguments.get(2) else {
        let mut reply = context.reply();
        reply.array(CATEGORIES.len());
        CATEGORIES.iter().for_each(|name| reply.bulk(name.as_bytes()));
        return Ok(Flow::Continue);
    };
    if context.arguments.len() > 3 {
        return Err(Error::unknown_subcommand("ACL", context.arguments[1]));
    }
    let word = category.to_ascii_lowercase();
    let Some(known) = CATEGORIES.iter().find(|name| name.as_bytes() == word) else {
        let word = String::from_utf8_lossy(category);
        return Err(Error::new(format!("ERR Unknown category '{word}'")));
    };
    let has = |spec: &Spec| categories(spec).contains(known);
    let table = context.core.table.clone();
    let names: Vec<&str> = table
        .iter()
        .filter(|command| has(&command.spec))
        .map(|command| command.spec.name)
        .collect();
    let mut reply = context.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
    Ok(Flow::Continue)
}

/// Random digits, four bits each.
fn make_password(context: &mut Context<'_>) -> Result<Flow, Error> {
    const RANGE: Error = Error::fixed(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
         number up to 4096",
    );
    let bits = match context.arguments[2..] {
        [] => 256,
        [bits] => integer(bits)?,
        _ => return Err(Error::arity("acl|genpass")),
    };
    if !(1..=4096).contains(&bits) {
        return Err(RANGE);
    }
    let digits = bits.unsigned_abs().div_ceil(4) as usize;
    let mut random = vec![0; digits.div_ceil(2)];
    read_random(&mut random)?;
    let mut password = String::new();
    // Writing to a text does not fail.
    random.iter().for_each(|byte| _ = write!(password, "{byte:02x}"));
    context.reply().bulk(&password.as_bytes()[..digits]);
    Ok(Flow::Continue)
}

/// Bytes that nobody can guess.
fn read_random(bytes: &mut [u8]) -> Result<(), Error> {
    const NONE: Error = Error::fixed("ERR the system has no random numbers");
    let mut source = std::fs::File::open("/dev/urandom").map_err(|_| NONE)?;
    std::io::Read::read_exact(&mut source, bytes).map_err(|_| NONE)
}

fn user(context: &mut Context<'_>) -> Result<Flow, Error> {
    if context.arguments[2] != USER.as_bytes() {
        context.reply().null();
        return Ok(Flow::Continue);
    }
    let has_password = !context.core.settings.password.is_empty();
    let mut reply = context.reply();
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(if has_password { 1 } else { 2 });
    reply.bulk(b"on");
    if !has_password {
        reply.bulk(b"nopass");
    }
    reply.bulk(b"passwords");
    // Passwords are shown to nobody, nor their digests.
    reply.array(0);
    for (name, value) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
    Ok(Flow::Continue)
}

fn list(context: &mut Context<'_>) -> Result<Flow, Error> {
    let has_password = !context.core.settings.password.is_empty();
    let password = if has_password { "" } else { " nopass" };
    let line = format!("user {USER} on{password} ~* &* +@all");
    let mut reply = context.reply();
    reply.array(1);
    reply.bulk(line.as_bytes());
    Ok(Flow::Continue)
}

fn users(context: &mut Context<'_>) -> Result<Flow, Error> {
    let mut reply = context.reply();
    reply.array(1);
    reply.bulk(USER.as_bytes());
    Ok(Flow::Continue)
}

fn own_name(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.reply().bulk(USER.as_bytes());
    Ok(Flow::Continue)
}

/// Nothing is refused to the only user, so nothing is logged.
fn log(context: &mut Context<'_>) -> Result<Flow, Error> {
    let is_reset = context.arguments.get(2).is_some_and(|word| word.eq_ignore_ascii_case(b"reset"));
    match is_reset {
        true => context.reply().raw(shared::OK),
        false => context.reply().array(0),
    }
    Ok(Flow::Continue)
}

fn only_one(_context: &mut Context<'_>) -> Result<Flow, Error> {
    const TEXT: &str = "ERR this server has one user, default, whose password is the parameter \
                        requirepass";
    Err(Error::fixed(TEXT))
}

fn no_file(_context: &mut Context<'_>) -> Result<Flow, Error> {
    Err(Error::fixed(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
         users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
         Redis configuration file set) in order to store users in the Redis configuration.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_compared_whole() {
        assert!(are_equal(b"secret", b"secret"));
        for other in [&b"secre"[..], b"secrets", b"Secret", b""] {
            assert!(!are_equal(b"secret", other));
        }
    }
}
