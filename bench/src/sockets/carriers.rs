// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TCP between two programs of the bench, plain and accelerated.

use super::launcher::{Launcher, Mode};
use super::peer::Role;
use crate::between::desk::Desk;
use crate::between::measure::{LONGEST, Plan};
use crate::between::processes::Processes;
use crate::between::rounds::Carrier;
use crate::between::shared::Shared;
use crate::between::wait::Wait;
use crate::harness::histogram::Histogram;
use anyhow::{Result, anyhow};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Name of plain TCP as a subject.
pub const TCP: &str = "TCP";
/// Name of accelerated TCP as a subject.
pub const OURS: &str = "freeport";

/// TCP on the loopback interface.
pub struct Tcp<'a> {
    pub launcher: &'a Launcher,
    pub mode: Mode,
}

impl Tcp<'_> {
    /// Starts two programs for each pair and waits until they exit.
    fn play(&self, [near, far]: [Role; 2], plan: &Plan) -> Result<Shared<Desk>> {
        let (desk, descriptor) = Shared::<Desk>::inherited()?;
        let mut processes = Processes::default();
        let parties = 2 * plan.cores.len();
        for (pair, cores) in plan.cores.iter().enumerate() {
            for (role, core) in [(far, cores[1]), (near, cores[0])] {
                let mut command = self.launcher.peer(self.mode);
                command.arg(role.word());
                argue(&mut command, "desk", descriptor.as_raw_fd());
                argue(&mut command, "pair", pair);
                argue(&mut command, "parties", parties);
                argue(&mut command, "size", plan.size);
                argue(&mut command, "messages", plan.messages);
                argue(&mut command, "buffer-bytes", plan.buffer_bytes());
                if plan.is_full_check {
                    command.arg("--full-check");
                }
                processes.start(role.word(), core, move || Err::<(), _>(command.exec()))?;
            }
        }
        let ended = processes.finish(LONGEST);
        ended.map_err(|error| match desk.reason.said() {
            said if said.is_empty() => error,
            said => anyhow!(said).context(error),
        })?;
        Ok(desk)
    }
}

/// Adds an option to a command line.
pub fn argue(command: &mut Command, name: &str, value: impl ToString) {
    command.arg(format!("--{name}")).arg(value.to_string());
}

impl Carrier for Tcp<'_> {
    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Accelerated => OURS,
            Mode::Plain => TCP,
        }
    }

    fn round_trips(&self, plan: &Plan, _: Wait) -> Result<Histogram> {
        Ok(self.play([Role::Ask, Role::Answer], plan)?.trips())
    }

    fn stream(&self, plan: &Plan, _: Wait) -> Result<Duration> {
        Ok(self.play([Role::Send, Role::Receive], plan)?.elapsed())
    }

    fn connect(&self, plan: &Plan, again: bool) -> Result<Duration> {
        let roles =
            if again { [Role::Reconnect, Role::Reaccept] } else { [Role::Connect, Role::Accept] };
        Ok(self.play(roles, plan)?.elapsed())
    }
}
