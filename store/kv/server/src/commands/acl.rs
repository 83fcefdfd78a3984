// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ACL`: users and their rights.

use std::fmt::Write;
use std::path::PathBuf;

use freeport_kv_commands::arguments::integer;
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::Writer;
use freeport_kv_protocol::resp::reply::shared;

use super::categories::CATEGORIES;
use super::{Container, Context, Flow, ServerRun, Subcommand, access_log};
use crate::access::{DEFAULT, Denial, Selector, check_name, hex};
use crate::mail::Message;

const FLAGS: Flags = Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE);
const ADMIN: Flags = FLAGS.with(Flags::ADMIN);

/// `ACL`.
pub const COMMANDS: &[Command<ServerRun>] =
    &[Command::new(("acl", -2), Group::Server, Flags::NONE, Keys::None, |context| {
        ACL.run(context)
    })];

/// Its subcommands.
pub const ACL: Container = Container {
    name: "acl",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("cat", -2, FLAGS, show_categories),
        Subcommand::new("deluser", -3, ADMIN, remove_users),
        Subcommand::new("dryrun", -4, ADMIN, try_call),
        Subcommand::new("genpass", -2, FLAGS, make_password),
        Subcommand::new("getuser", 3, ADMIN, show_user),
        Subcommand::new("list", 2, ADMIN, list),
        Subcommand::new("load", 2, ADMIN, load),
        Subcommand::new("log", -2, ADMIN, access_log::show),
        Subcommand::new("save", 2, ADMIN, save),
        Subcommand::new("setuser", -3, ADMIN, set_user),
        Subcommand::new("users", 2, ADMIN, names),
        Subcommand::new("whoami", 2, FLAGS, own_name),
    ],
    help: &[
        "CAT [<category>]",
        "    List all commands that belong to <category>, or all command categories",
        "    when no category is specified.",
        "DELUSER <username> [<username> ...]",
        "    Delete a list of users.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Returns whether the user can execute the given command without executing the command.",
        "GETUSER <username>",
        "    Get the user's details.",
        "GENPASS [<bits>]",
        "    Generate a secure 256-bit user password. The optional `bits` argument can",
        "    be used to specify a different size.",
        "LIST",
        "    Show users details in config file format.",
        "LOAD",
        "    Reload users from the ACL file.",
        "LOG [<count> | RESET]",
        "    Show the ACL log entries.",
        "SAVE",
        "    Save the current config to the ACL file.",
        "SETUSER <username> <attribute> [<attribute> ...]",
        "    Create or modify a user with the specified attributes.",
        "USERS",
        "    List all the registered usernames.",
        "WHOAMI",
        "    Return the current connection username.",
    ],
};

impl Context<'_> {
    /// All clients get their new rights: this one now, and the others before their next requests.
    pub fn users_have_changed(&mut self) {
        self.client.follow_users(&self.core.shared.users);
        self.core.shared.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::FollowUsers));
    }
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
    let shared = context.core.shared.clone();
    let Some(entries) = shared.users.catalog.category(category) else {
        let word = String::from_utf8_lossy(&category[..category.len().min(128)]);
        return Err(Error::new(format!("ERR Unknown category '{word}'")));
    };
    let names: Vec<&str> = entries.map(|entry| &entry.name[..]).collect();
    let mut reply = context.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
    Ok(Flow::Continue)
}

fn set_user(context: &mut Context<'_>) -> Result<Flow, Error> {
    const NAME: Error = Error::fixed("ERR Usernames can't contain spaces or null characters");
    let (name, rules) = (context.arguments[2], &context.arguments[3..]);
    check_name(name).map_err(|_| NAME)?;
    let all_channels = context.core.settings.all_channels;
    let result = context.core.shared.users.set(name, rules, all_channels);
    result.map_err(|error| Error::new(format!("ERR {error}")))?;
    context.users_have_changed();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn remove_users(context: &mut Context<'_>) -> Result<Flow, Error> {
    let names = &context.arguments[2..];
    if names.contains(&DEFAULT) {
        return Err(Error::fixed("ERR The 'default' user cannot be removed"));
    }
    let removed = context.core.shared.users.remove(names);
    if removed > 0 {
        context.users_have_changed();
    }
    context.reply().integer(removed as i64);
    Ok(Flow::Continue)
}

fn show_user(context: &mut Context<'_>) -> Result<Flow, Error> {
    let Some(user) = context.core.shared.users.get(context.arguments[2]) else {
        context.reply().null();
        return Ok(Flow::Continue);
    };
    let flags = user.flags();
    let mut reply = context.reply();
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords.len());
    user.passwords.iter().for_each(|one| reply.bulk(hex(one).as_bytes()));
    let (root, others) = user.selectors.split_first().expect("there is one always");
    show_selector(&mut reply, root);
    reply.bulk(b"selectors");
    reply.array(others.len());
    for selector in others {
        reply.map(3);
        show_selector(&mut reply, selector);
    }
    Ok(Flow::Continue)
}

fn show_selector(reply: &mut Writer<'_>, selector: &Selector) {
    reply.bulk(b"commands");
    reply.bulk(selector.describe_commands().as_bytes());
    reply.bulk(b"keys");
    reply.bulk(&selector.describe_keys());
    reply.bulk(b"channels");
    reply.bulk(&selector.describe_channels());
}

fn list(context: &mut Context<'_>) -> Result<Flow, Error> {
    let users = context.core.shared.users.all();
    let mut reply = context.reply();
    reply.array(users.len());
    for user in users {
        reply.bulk(&[b"user ", &user.name[..], b" ", &user.describe()].concat());
    }
    Ok(Flow::Continue)
}

fn names(context: &mut Context<'_>) -> Result<Flow, Error> {
    let users = context.core.shared.users.all();
    let mut reply = context.reply();
    reply.array(users.len());
    users.iter().for_each(|user| reply.bulk(&user.name));
    Ok(Flow::Continue)
}

fn own_name(context: &mut Context<'_>) -> Result<Flow, Error> {
    let user = context.client.login.user.clone();
    context.reply().bulk(&user.name);
    Ok(Flow::Continue)
}

/// Replies whether a user may send a command, which is not executed.
fn try_call(context: &mut Context<'_>) -> Result<Flow, Error> {
    let (name, call) = (context.arguments[2], &context.arguments[3..]);
    let shared = context.core.shared.clone();
    let shown = String::from_utf8_lossy(name);
    let Some(user) = shared.users.get(name) else {
        return Err(Error::new(format!("ERR User '{shown}' not found")));
    };
    let unknown = || {
        let command = String::from_utf8_lossy(call[0]);
        Error::new(format!("ERR Command '{command}' not found"))
    };
    let spec = &shared.table.get(call[0]).ok_or_else(unknown)?.spec;
    let entry = shared.users.catalog.of(spec, call);
    if call.len() > 1 && !entry.subcommands.is_empty() {
        return Err(unknown());
    }
    let wanted = entry.arity.unsigned_abs() as usize;
    if call.len() < wanted || entry.arity > 0 && call.len() > wanted {
        return Err(Error::arity(&entry.name));
    }
    let Err((denial, at)) = user.check(entry, call) else {
        context.reply().raw(shared::OK);
        return Ok(Flow::Continue);
    };
    let object = String::from_utf8_lossy(call[at]);
    let what = match denial {
        Denial::Command => format!("run the '{}' command", entry.name),
        Denial::Key => format!("access the '{object}' key"),
        Denial::Channel => format!("access the '{object}' channel"),
    };
    context.reply().bulk(format!("User {shown} has no permissions to {what}").as_bytes());
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
        _ => return Err(Error::unknown_subcommand("ACL", context.arguments[1])),
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

/// The file of users.
fn file(context: &Context<'_>) -> Result<PathBuf, Error> {
    const NONE: Error = Error::fixed(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
         users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
         Redis configuration file set) in order to store users in the Redis configuration.",
    );
    context.core.shared.options.access_file.clone().ok_or(NONE)
}

fn load(context: &mut Context<'_>) -> Result<Flow, Error> {
    let path = file(context)?;
    let all_channels = context.core.settings.all_channels;
    let result = context.core.shared.users.load(&path, all_channels);
    result.map_err(|errors| Error::new(format!("ERR {errors}")))?;
    context.users_have_changed();
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

fn save(context: &mut Context<'_>) -> Result<Flow, Error> {
    let path = file(context)?;
    context.core.shared.users.save(&path).map_err(|error| {
        tracing::warn!(path = %path.display(), %error, "users are not saved");
        let path = path.display();
        Error::new(format!("ERR There was an error trying to save the ACLs to {path}: {error}"))
    })?;
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}
