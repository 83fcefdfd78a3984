// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The user of a client.

use std::sync::Arc;

use super::user::{DEFAULT, User};
use super::users::Users;
use crate::channels::Kind;
use crate::client::Client;

/// The user of a client, and whether it has logged in.
#[derive(Debug)]
pub struct Login {
    /// The user.
    pub user: Arc<User>,
    /// The client has given a password, or had not to when it connected.
    pub has_logged_in: bool,
    /// The version of the users that this is from.
    pub version: u64,
    /// The user is gone, or may not use what the client listens to: it is disconnected.
    pub is_over: bool,
}

impl Login {
    /// The login of a client that has just connected.
    pub fn new(users: &Users) -> Self {
        // A later version of the user is found at the first request.
        let version = users.version();
        let user = users.default_user();
        Self { has_logged_in: user.is_open(), user, version, is_over: false }
    }
}

impl Client {
    /// It acts for a user from now on. The version of the users was read before the user was found.
    pub fn log_in(&mut self, (user, version): (Arc<User>, u64), users: &Users) {
        self.record.names().user = user.name.clone();
        self.login = Login { user, has_logged_in: true, version, is_over: false };
        self.decide(users);
    }

    /// It acts for nobody, as one that has just connected.
    pub fn log_out(&mut self, users: &Users) {
        self.record.names().user = DEFAULT.to_vec();
        self.login = Login::new(users);
        self.decide(users);
    }

    /// It has the present rights of its user. It ends if its user is gone, or if it listens to a
    /// channel that it may not use.
    #[inline]
    pub fn follow_users(&mut self, users: &Users) {
        if self.login.version != users.version() {
            self.follow_changed_users(users);
        }
    }

    #[cold]
    fn follow_changed_users(&mut self, users: &Users) {
        self.login.version = users.version();
        let user = users.get(&self.login.user.name);
        match user.filter(|user| user.identity == self.login.user.identity) {
            Some(user) => self.login.user = user,
            None => self.login.is_over = true,
        }
        let user = &self.login.user;
        let may_listen =
            |(kind, name): &(Kind, Vec<u8>)| user.may_listen(name, *kind == Kind::Pattern);
        self.login.is_over |= !self.subscriptions.iter().all(may_listen);
        self.is_closing |= self.login.is_over;
        self.decide(users);
    }

    /// Decides what is compared before each command.
    fn decide(&mut self, users: &Users) {
        let Login { user, has_logged_in, .. } = &self.login;
        let is_open = *has_logged_in || users.default_user().is_open();
        self.is_authenticated = is_open && !self.login.is_over;
        self.is_checked = !self.is_authenticated || !user.is_unrestricted;
    }
}
