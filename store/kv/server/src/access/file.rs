// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of users: a line `user NAME RULE ...` for each.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rules::{RuleError, check_name, merge};
use super::user::User;
use super::users::{UserTable, Users};

/// Bytes of a file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Reads the users of a file.
///
/// # Errors
/// Everything that is wrong, each with its line, in the words of Redis.
pub fn read(users: &Users, path: &Path, all_channels: bool) -> Result<UserTable, String> {
    let text = read_text(path).map_err(|error| {
        format!("Error loading ACLs, opening file '{}': {error}", path.display())
    })?;
    let mut loaded = BTreeMap::new();
    let mut errors = String::new();
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        match read_user(users, &words, all_channels) {
            Err(reasons) => {
                let place = format!("{}:{}", path.display(), at + 1);
                reasons.iter().for_each(|reason| errors += &format!("{place}{reason}. "));
            }
            Ok(user) if loaded.contains_key(&user.name) => {
                let name = String::from_utf8_lossy(&user.name);
                errors += &format!("WARNING: Duplicate user '{name}' found on line {}. ", at + 1);
            }
            Ok(user) => _ = loaded.insert(user.name.clone(), users.finished(user)),
        }
    }
    if errors.is_empty() {
        return Ok(loaded);
    }
    Err(errors
        + "WARNING: ACL errors detected, no change to the previously active ACL rules was \
           performed")
}

/// Rights must not be taken from the half of a file.
fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = vec![];
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let text = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(text)
}

/// The user of a line. Reasons follow the place of the line. Rules with passwords are not among
/// them.
fn read_user(users: &Users, words: &[&[u8]], all_channels: bool) -> Result<User, Vec<String>> {
    let [b"user", name, rules @ ..] = words else {
        return Err(vec![" should start with user keyword followed by the username".into()]);
    };
    if check_name(name).is_err() {
        let name = String::from_utf8_lossy(name);
        return Err(vec![format!(": username '{name}' contains invalid characters")]);
    }
    let rules = merge(rules)
        .map_err(|_| vec![": Unmatched parenthesis in selector definition".to_owned()])?;
    let mut user = users.fresh(name, all_channels);
    let (mut reasons, mut has_failed) = (vec![], false);
    for rule in &rules {
        match users.apply(&mut user, rule.trim_ascii(), all_channels) {
            Ok(()) => {}
            Err(error @ RuleError::Unknown) => {
                let rule = String::from_utf8_lossy(rule);
                reasons.push(format!(": Error in applying operation '{rule}': {error}"));
            }
            // The first error may be the reason of others.
            Err(_) if has_failed => {}
            Err(error) => {
                has_failed = true;
                reasons.push(format!(": {error}"));
            }
        }
    }
    if reasons.is_empty() { Ok(user) } else { Err(reasons) }
}

/// Writes users to a file. A reader finds all of the old file or all of the new one, also after a
/// loss of power. Only its owner may read it.
///
/// # Errors
/// Those of the system. The old file is still there.
pub fn write(users: &[Arc<User>], path: &Path) -> io::Result<()> {
    let mut text = vec![];
    for user in users {
        for part in [b"user ", &user.name[..], b" ", &user.describe(), b"\n"] {
            text.extend_from_slice(part);
        }
    }
    let draft = draft_of(path);
    let result = write_draft(&draft, &text).and_then(|()| fs::rename(&draft, path));
    if result.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&draft);
        return result;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn draft_of(path: &Path) -> PathBuf {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".tmp-{}", std::process::id()));
    draft.into()
}

fn write_draft(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}
