// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a script to the server that runs it.

use crate::header::Flags;
use freeport_kv_protocol::resp::Version;

/// The server, as a running script sees it.
pub trait Caller {
    /// Called before the first instruction of a script or function, with its flags. The caller
    /// remembers what it needs of them for [`call`](Self::call).
    ///
    /// # Errors
    /// The script may not run, with the error reply, such as `OOM ...`.
    fn begin(&mut self, flags: Flags) -> Result<(), String> {
        let _ = flags;
        Ok(())
    }

    /// Runs a command of the script, and appends its reply, in the given version.
    fn call(&mut self, arguments: &[&[u8]], version: Version, reply: &mut Vec<u8>);

    /// Writes a line to the server's log.
    fn log(&mut self, level: LogLevel, text: &[u8]);

    /// Whether the user may run the command. `None` if there is no such command, or its number of
    /// arguments is wrong.
    fn is_allowed(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        let _ = arguments;
        Some(true)
    }

    /// Asked from time to time while a script runs. A reason stops it at once.
    fn interrupt(&mut self) -> Option<StopReason> {
        None
    }
}

/// Importance of a line of the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogLevel {
    /// Level 0.
    Debug,
    /// Level 1.
    Verbose,
    /// Level 2.
    Notice,
    /// Level 3.
    Warning,
}

impl LogLevel {
    /// The level of a number of scripts.
    pub(crate) fn from_number(number: f64) -> Option<Self> {
        // Fractions are cut off, as in all integers of scripts.
        match number as i64 {
            0 => Some(Self::Debug),
            1 => Some(Self::Verbose),
            2 => Some(Self::Notice),
            3 => Some(Self::Warning),
            _ => None,
        }
    }
}

/// Why a script is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StopReason {
    /// `SCRIPT KILL` or `FUNCTION KILL`.
    Killed,
    /// A library took too long to load.
    LoadTimeout,
}

impl StopReason {
    /// The error of the script.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Killed => "ERR Script killed by user with SCRIPT KILL...",
            Self::LoadTimeout => "ERR FUNCTION LOAD timeout",
        }
    }
}
