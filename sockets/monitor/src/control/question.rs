// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A question, and what its user may see and change.

use crate::ledger::EndNote;
use serde_json::Value;

/// First byte of a question; no message of a member starts with it.
pub const MARK: u8 = b'{';

/// Question that asks the monitor to keep running as long as the sender lives.
pub const STAY: &str = r#"{"do":"stay"}"#;

/// A question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// All connections, the most recent refusals, and the programs.
    List,
    /// The counters.
    Statistics,
    /// State of one socket.
    Why(Asked),
    /// Whether the rules allow this user any accelerated connection.
    May,
    /// The rules.
    Rules,
    /// The monitor is to keep running: [`STAY`].
    Stay,
    /// Inserts a rule before the others.
    PutRule(String),
    /// Removes the rule at this position, counted from 1; `None` if the position is no number.
    RemoveRule(Option<usize>),
    /// Recalls connections that the rules no longer allow.
    Recall,
    /// A question this release does not know.
    Unknown,
}

impl Question {
    /// Parses a question; `None` if it is not JSON.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let question: Value = serde_json::from_slice(bytes).ok()?;
        Some(match question["do"].as_str() {
            Some("list") => Self::List,
            Some("stats") => Self::Statistics,
            Some("why") => Self::Why(Asked::of(&question)),
            Some("may") => Self::May,
            Some("rules") => Self::Rules,
            Some("stay") => Self::Stay,
            Some("put rule") => {
                Self::PutRule(question["rule"].as_str().unwrap_or_default().to_owned())
            }
            Some("remove rule") => {
                let place = question["place"].as_u64();
                Self::RemoveRule(place.and_then(|it| usize::try_from(it).ok()))
            }
            Some("recall") => Self::Recall,
            _ => Self::Unknown,
        })
    }

    /// Whether only root and the user of the monitor may ask this.
    pub fn needs_trust(&self) -> bool {
        matches!(self, Self::PutRule(_) | Self::RemoveRule(_) | Self::Recall)
    }
}

/// The socket that a question is about. A missing or invalid number matches nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// PID of its process.
    pub pid: Option<i32>,
    /// Number of its descriptor in that process.
    pub descriptor: Option<i32>,
    /// Inode of the socket. If given, only it is compared.
    pub inode: Option<u64>,
}

impl Asked {
    fn of(question: &Value) -> Self {
        let number = |name: &str| question[name].as_i64().and_then(|it| i32::try_from(it).ok());
        let (pid, descriptor) = (number("pid"), number("descriptor"));
        Self { pid, descriptor, inode: question["inode"].as_u64() }
    }

    /// Whether the question is about this end.
    pub fn is(&self, end: &EndNote) -> bool {
        match self.inode {
            Some(inode) => end.inode == inode,
            None => self.pid == Some(end.pid) && self.descriptor == Some(end.descriptor),
        }
    }
}

/// The user who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    user: u32,
    is_trusted: bool,
}

impl Asker {
    /// Returns the asker with this user ID. Root and the user of this process are trusted.
    pub fn of(user: u32) -> Self {
        // SAFETY: the call takes nothing and cannot fail.
        let own = unsafe { libc::geteuid() };
        Self { user, is_trusted: user == 0 || user == own }
    }

    /// User ID.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Whether the user may see everything and change the rules.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Whether the user may see another user's connections.
    pub fn sees_user(&self, user: u32) -> bool {
        self.is_trusted || self.user == user
    }

    /// Whether the user may see this end.
    pub fn sees(&self, end: &EndNote) -> bool {
        self.sees_user(end.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_out_of_range_fits_nothing() {
        let parse = |text: &str| Question::parse(text.as_bytes());
        assert_eq!((parse("{"), parse("[1]")), (None, Some(Question::Unknown)));
        let remove = |place: &str| parse(&format!(r#"{{"do":"remove rule","place":{place}}}"#));
        assert_eq!(remove("2"), Some(Question::RemoveRule(Some(2))));
        assert_eq!(remove("-2"), Some(Question::RemoveRule(None)));
        let nothing = Asked { pid: None, descriptor: None, inode: None };
        let far = r#"{"do":"why","pid":4294967303,"descriptor":"7"}"#;
        assert_eq!(parse(far), Some(Question::Why(nothing)));
        let command = "it".to_owned();
        let (local, remote) = (None, None);
        let (pid, descriptor, inode) = (7, 3, 9);
        let end = EndNote { pid, user: 0, command, descriptor, inode, cookie: 0, local, remote };
        assert!(!nothing.is(&end));
        let asked = Asked { pid: Some(7), descriptor: Some(3), inode: None };
        assert!(asked.is(&end));
        assert!(Asked { inode: Some(9), ..nothing }.is(&end));
        assert!(!Asked { inode: Some(8), ..asked }.is(&end));
    }
}
