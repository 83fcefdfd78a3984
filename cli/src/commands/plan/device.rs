// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device of an estimate: a built-in profile or a file, which may also be of a machine.

use anyhow::Context;
use clap::Args;
use freeport_plan_model::local::Machine;
use freeport_plan_model::parameters::{Parameters, kind_of};
use freeport_plan_model::profile::{BUILT_IN, Profile, built_in_text};
use std::fs;
use std::path::PathBuf;

#[derive(Args)]
pub struct DeviceArguments {
    /// The device: bluefield2, bluefield3, or a file with a profile
    #[arg(long, value_name = "NAME|FILE", default_value = BUILT_IN[0].0)]
    profile: PathBuf,
}

#[derive(Args)]
pub struct SeedArgument {
    /// Seed of random addresses: equal seeds give equal results
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// A profile of one of both kinds.
pub enum Either {
    Device(Box<Profile>),
    Machine(Box<Machine>),
}

impl DeviceArguments {
    /// Returns the name and the text of the profile.
    ///
    /// # Errors
    /// There is no such profile, and the file cannot be read.
    pub fn text(&self) -> anyhow::Result<(String, String)> {
        let name = self.profile.display().to_string();
        if let Some(text) = built_in_text(&name) {
            return Ok((format!("{name}.toml"), text.to_owned()));
        }
        let names = BUILT_IN.map(|(name, _)| name).join(" and ");
        let text = fs::read_to_string(&self.profile).with_context(|| {
            format!("{name} is not a profile that can be read (built in are {names})")
        })?;
        Ok((name, text))
    }

    /// Returns the profile.
    ///
    /// # Errors
    /// As of [`text`](Self::text), or it is not a profile.
    pub fn load(&self) -> anyhow::Result<Profile> {
        let (name, text) = self.text()?;
        Ok(Profile::parse(&name, &text)?)
    }

    /// Returns the profile of a device or of a machine.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub fn load_either(&self) -> anyhow::Result<Either> {
        let (name, text) = self.text()?;
        Ok(match kind_of(&name, &text)?.as_str() {
            Machine::KIND => Either::Machine(Box::new(Machine::parse(&name, &text)?)),
            _ => Either::Device(Box::new(Profile::parse(&name, &text)?)),
        })
    }
}
