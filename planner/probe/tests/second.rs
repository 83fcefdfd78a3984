// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The second process: the test's own program, started again.

use std::env;
use std::process::Command;

/// Variable by which a second process knows what it is.
const SECOND: &str = "FREEPORT_TEST_PROBE_PARTNER";

/// Returns whether this process is a second one.
pub fn is_one() -> bool {
    env::var_os(SECOND).is_some()
}

/// Returns the command of a second process.
pub fn command() -> Command {
    let mut command = Command::new(env::current_exe().expect("a test knows its own file"));
    command.args(["--exact", "partner", "--nocapture", "--test-threads=1", "-q"]);
    command.env(SECOND, "1");
    command
}
