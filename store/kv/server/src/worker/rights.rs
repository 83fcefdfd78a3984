// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of what clients may do. They are made only for clients whose users may not do
//! everything.

use freeport_kv_commands::sort::{Naming, naming};
use freeport_kv_commands::{Error, Spec};

use super::{Core, Worker};
use crate::access::{Denial, LogEntry, Place, Reason};
use crate::client::{Client, slices};

impl Core {
    /// Checks a request.
    ///
    /// # Errors
    /// The client may not send it. A transaction that it would execute has ended.
    #[cold]
    pub(super) fn check_rights(
        &mut self,
        client: &mut Client,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        let in_transaction = client.transaction.is_some();
        let place = if in_transaction { Place::Transaction } else { Place::Request };
        let Err(denial) = self.check_call(client, spec, arguments, place) else {
            return self.check_patterns(client, spec, arguments);
        };
        let text = format!("NOPERM {}", self.reason(client, denial, spec, arguments));
        if spec.name == "exec" && client.transaction.take().is_some() {
            self.unwatch(client);
            let text = format!("EXECABORT Transaction discarded because of: {text}");
            return Err(Error::new(text));
        }
        Err(Error::new(text))
    }

    /// Checks a call of a script.
    ///
    /// # Errors
    /// The client of the script may not send it.
    pub fn check_rights_of_script(
        &self,
        client: &Client,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        if !client.is_checked {
            return Ok(());
        }
        self.check_call(client, spec, arguments, Place::Script).map_err(|denial| {
            let reason = self.reason(client, denial, spec, arguments);
            Error::new(format!("ERR ACL failure in script: {reason}"))
        })?;
        self.check_patterns(client, spec, arguments)
    }

    /// Checks a queued command again: rights may have changed since.
    ///
    /// # Errors
    /// The client may not send it any more.
    pub fn check_rights_of_queued(
        &self,
        client: &Client,
        arguments: &[Vec<u8>],
    ) -> Result<(), Error> {
        let Some(spec) = self.spec_to_check(client, arguments) else { return Ok(()) };
        let arguments = &slices(arguments)[..];
        self.check_call(client, spec, arguments, Place::Transaction).map_err(|denial| {
            let reason = match denial {
                Denial::Command => "no permission to execute the command or subcommand",
                Denial::Key => "no permission to touch the specified keys",
                Denial::Channel => "no permission to access one of the channels used as arguments",
            };
            Error::new(format!(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and \
                 the EXEC call. This command is no longer allowed for the following reason: \
                 {reason}"
            ))
        })?;
        self.check_patterns(client, spec, arguments)
    }

    /// A command that came before, if its client has to be checked.
    fn spec_to_check(&self, client: &Client, arguments: &[Vec<u8>]) -> Option<&Spec> {
        let command = self.table.get(&arguments[0]).filter(|_| client.is_checked)?;
        Some(&command.spec)
    }

    /// Checks the command of a client that has waited: rights may have changed since.
    ///
    /// # Errors
    /// The client may not send it any more.
    pub(super) fn check_rights_of_blocked(
        &self,
        client: &Client,
        arguments: &[Vec<u8>],
    ) -> Result<(), Error> {
        let Some(spec) = self.spec_to_check(client, arguments) else { return Ok(()) };
        let arguments = &slices(arguments)[..];
        self.check_call(client, spec, arguments, Place::Request).map_err(|denial| {
            let reason = self.reason(client, denial, spec, arguments);
            let error = Error::new(format!("NOPERM {reason}"));
            self.statistics.rejected(spec.number, error.text());
            error
        })
    }

    /// The client may send a request, as far as its rights decide it. Nothing is logged.
    pub fn has_rights(&self, client: &Client, spec: &Spec, arguments: &[&[u8]]) -> bool {
        if !client.is_checked {
            return true;
        }
        let entry = self.shared.users.catalog.of(spec, arguments);
        entry.is_open
            || client.is_authenticated
                && client.login.user.check(entry, arguments).is_ok()
                && self.check_patterns(client, spec, arguments).is_ok()
    }

    fn check_call(
        &self,
        client: &Client,
        spec: &Spec,
        arguments: &[&[u8]],
        place: Place,
    ) -> Result<(), Denial> {
        let user = &client.login.user;
        let entry = self.shared.users.catalog.of(spec, arguments);
        let checked = match client.login.is_over {
            true => Err((Denial::Command, 0)),
            false => user.check(entry, arguments),
        };
        checked.map_err(|(denial, at)| {
            let object = match denial {
                Denial::Command => entry.name.as_bytes(),
                Denial::Key | Denial::Channel => arguments[at],
            };
            // A script or transaction is what the client has sent.
            let is_inner = place == Place::Script
                || place == Place::Transaction && client.transaction.is_none();
            let sent = self.last_command(client).filter(|_| is_inner);
            let command = sent.unwrap_or(&entry.name);
            self.log_denial(client, Reason::Call(denial), place, (object, &user.name, command));
            denial
        })
    }

    /// Name of the last command that a client has sent, if it is one.
    fn last_command(&self, client: &Client) -> Option<&str> {
        let number = usize::try_from(client.last_command.checked_sub(1)?).ok()?;
        self.shared.users.catalog.name(number)
    }

    /// Adds a refusal to the log: its object, the user, and the command.
    pub fn log_denial(
        &self,
        client: &Client,
        reason: Reason,
        place: Place,
        (object, user, command): (&[u8], &[u8], &str),
    ) {
        let entry = LogEntry::new(reason, place, crate::shared::now_ms()).of(object, user);
        let line = client.record.line(command, self.now_ms);
        let entry = LogEntry { client: line, ..entry };
        self.shared.users.log.add(entry, self.settings.access_log_entries);
    }

    fn reason(&self, client: &Client, denial: Denial, spec: &Spec, words: &[&[u8]]) -> String {
        match denial {
            Denial::Command => {
                let user = String::from_utf8_lossy(&client.login.user.name);
                let command = &self.shared.users.catalog.of(spec, words).name;
                format!("User {user} has no permissions to run the '{command}' command")
            }
            Denial::Key => "No permissions to access a key".into(),
            Denial::Channel => "No permissions to access a channel".into(),
        }
    }

    /// `SORT` makes names of keys from values, so it needs a right to read all of them.
    fn check_patterns(
        &self,
        client: &Client,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        const BY: Error =
            Error::fixed("ERR BY option of SORT denied due to insufficient ACL permissions.");
        const GET: Error =
            Error::fixed("ERR GET option of SORT denied due to insufficient ACL permissions.");
        let entry = self.shared.users.catalog.of(spec, arguments);
        let user = &client.login.user;
        if !matches!(spec.name, "sort" | "sort_ro") || user.reads_all_keys(entry, arguments) {
            return Ok(());
        }
        match naming(arguments) {
            Some(Naming::By) => Err(BY),
            Some(Naming::Get) => Err(GET),
            None => Ok(()),
        }
    }
}

impl Worker {
    /// Users have changed: clients get their new rights, or end.
    pub(super) fn follow_users(&mut self) {
        let users = &self.core.shared.users;
        let connections = self.core.network.connections.iter_mut();
        let ended: Vec<u64> = connections
            .filter_map(|(id, connection)| {
                let (client, _) = connection.client_mut()?;
                client.follow_users(users);
                client.login.is_over.then_some(*id)
            })
            .collect();
        ended.into_iter().for_each(|id| self.disconnect(id));
        let shared = self.core.shared.clone();
        self.core.end_sessions(|client| {
            client.follow_users(&shared.users);
            client.login.is_over
        });
    }
}
