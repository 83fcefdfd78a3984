// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `AUTH`: a client names its user.

use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::{Context, Flow, ServerRun};
use crate::access::{DEFAULT, Place, Reason};

const AUTH: Flags = Flags::NO_SCRIPT
    .with(Flags::LOADING)
    .with(Flags::STALE)
    .with(Flags::FAST)
    .with(Flags::NO_AUTH)
    .with(Flags::ALLOW_BUSY);

/// `AUTH`.
pub const COMMANDS: &[Command<ServerRun>] =
    &[Command::new(("auth", -2), Group::Connection, AUTH, Keys::None, auth)];

fn auth(context: &mut Context<'_>) -> Result<Flow, Error> {
    const NOT_CONFIGURED: Error = Error::fixed(
        "ERR AUTH <password> called without any password configured for the default user. Are you \
         sure your configuration is correct?",
    );
    match *context.arguments {
        [_, _] if context.core.shared.users.default_user().needs_no_password => {
            return Err(NOT_CONFIGURED);
        }
        [_, password] => authenticate(context, DEFAULT, password)?,
        [_, user, password] => authenticate(context, user, password)?,
        _ => return Err(Error::SYNTAX),
    }
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// The client logs in.
///
/// # Errors
/// There is no such user, it is off, or the password is wrong.
pub fn authenticate(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<(), Error> {
    const WRONG: Error =
        Error::fixed("WRONGPASS invalid username-password pair or user is disabled.");
    let Context { core, client, arguments, .. } = context;
    let users = &core.shared.users;
    let version = users.version();
    if let Some(user) = users.authenticate(user, password) {
        client.log_in((user, version), users);
        return Ok(());
    }
    let place = match client.transaction.is_some() || !client.session.may_block {
        true => Place::Transaction,
        false => Place::Request,
    };
    let name = arguments[0].to_ascii_lowercase();
    let command = String::from_utf8_lossy(&name);
    core.log_denial(client, Reason::Login, place, (arguments[0], user, &command));
    Err(WRONG)
}
