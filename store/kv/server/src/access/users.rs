// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All users of a server. Every change replaces values that clients share, and gives the whole a
//! new version, which clients compare before they execute requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::catalog::Catalog;
use super::file;
use super::log::{AccessLog, Reason};
use super::rules::{self, Ground, RuleError};
use super::selector::Selector;
use super::user::{DEFAULT, User};

/// Users by name.
pub type UserTable = BTreeMap<Vec<u8>, Arc<User>>;

/// All users.
#[derive(Debug)]
pub struct Users {
    /// All commands.
    pub catalog: Catalog,
    /// Refused calls and logins.
    pub log: AccessLog,
    table: Mutex<UserTable>,
    saving: Mutex<()>,
    version: AtomicU64,
    last_identity: AtomicU64,
}

impl Users {
    /// The default user only.
    pub fn new(catalog: Catalog) -> Self {
        let default = Arc::new(User::default_user(0, &catalog));
        Self {
            catalog,
            log: AccessLog::default(),
            table: Mutex::new(BTreeMap::from([(DEFAULT.to_vec(), default)])),
            saving: Mutex::new(()),
            version: AtomicU64::new(1),
            last_identity: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, UserTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes with every change of a user.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// A user.
    pub fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.lock().get(name).cloned()
    }

    /// The user of clients that have not named another one.
    pub fn default_user(&self) -> Arc<User> {
        self.get(DEFAULT).expect("the default user is never removed")
    }

    /// All users in the order of their names.
    pub fn all(&self) -> Vec<Arc<User>> {
        self.lock().values().cloned().collect()
    }

    fn next_identity(&self) -> u64 {
        self.last_identity.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn ground(&self, all_channels: bool) -> Ground<'_> {
        Ground { catalog: &self.catalog, all_channels }
    }

    /// Makes a user, or changes one, by all of several rules or by none. `all_channels`: a new user
    /// may use all channels.
    ///
    /// # Errors
    /// The first rule that is not right, in the words of Redis.
    pub fn set(&self, name: &[u8], rules: &[&[u8]], all_channels: bool) -> Result<(), String> {
        let rules = rules::merge(rules).map_err(|open| {
            let open = String::from_utf8_lossy(&open).into_owned();
            format!("Unmatched parenthesis in acl selector starting at '{open}'.")
        })?;
        let mut table = self.lock();
        let mut user = match table.get(name) {
            Some(user) => User::clone(user),
            None => self.fresh(name, all_channels),
        };
        for rule in &rules {
            self.apply(&mut user, rule, all_channels).map_err(|error| {
                let rule = String::from_utf8_lossy(rule);
                format!("Error in ACL SETUSER modifier '{rule}': {error}")
            })?;
        }
        table.insert(name.to_vec(), self.finished(user));
        self.has_changed();
        Ok(())
    }

    /// A user that is not among the others yet, as `ACL SETUSER` makes it.
    pub(super) fn fresh(&self, name: &[u8], all_channels: bool) -> User {
        User::new(self.next_identity(), name, Selector::new(&self.catalog, all_channels))
    }

    /// Changes a user that the others do not share.
    pub(super) fn apply(
        &self,
        user: &mut User,
        rule: &[u8],
        all_channels: bool,
    ) -> Result<(), RuleError> {
        rules::apply(user, rule, self.ground(all_channels))
    }

    /// A changed user as clients share it.
    pub(super) fn finished(&self, mut user: User) -> Arc<User> {
        let is_unrestricted = |one: &Selector| one.is_unrestricted(&self.catalog);
        user.is_unrestricted = user.selectors.iter().any(is_unrestricted);
        Arc::new(user)
    }

    /// Gives the default user the password of `requirepass`, or none if that is empty.
    pub fn set_default_password(&self, password: &[u8]) {
        let with = [b">", password].concat();
        let rules: &[&[u8]] = match password {
            [] => &[b"nopass"],
            _ => &[b"resetpass", &with],
        };
        let result = self.set(DEFAULT, rules, false);
        debug_assert_eq!(result, Ok(()), "these rules are right");
    }

    /// Removes users; returns their number.
    pub fn remove(&self, names: &[&[u8]]) -> usize {
        let mut table = self.lock();
        let removed = names.iter().filter(|name| table.remove(**name).is_some()).count();
        if removed > 0 {
            self.has_changed();
        }
        removed
    }

    /// Replaces all users by those of a file. Those that are the same keep their identity.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with its lines. No user has changed.
    pub fn load(&self, path: &Path, all_channels: bool) -> Result<(), String> {
        let mut loaded = file::read(self, path, all_channels)?;
        let mut table = self.lock();
        for (name, user) in &mut loaded {
            match table.get(name) {
                Some(known) if known.equals(user) => *user = known.clone(),
                Some(known) => {
                    *user = Arc::new(User { identity: known.identity, ..User::clone(user) });
                }
                None => {}
            }
        }
        loaded.entry(DEFAULT.to_vec()).or_insert_with(|| {
            let identity = table.get(DEFAULT).map_or(0, |user| user.identity);
            Arc::new(User::default_user(identity, &self.catalog))
        });
        *table = loaded;
        self.has_changed();
        Ok(())
    }

    /// Writes all users to a file, which is replaced as a whole.
    ///
    /// # Errors
    /// Those of the system.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let _one_at_a_time = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        file::write(&self.all(), path)
    }

    /// The user of a login, if the password is right.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        self.get(name).filter(|user| user.accepts(password))
    }

    fn has_changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Number of refusals for a reason since the start, or since the statistics were reset.
    pub fn denied(&self, reason: Reason) -> u64 {
        self.log.denied(reason)
    }
}
