// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device of an estimate: a built-in profile or a file.

use anyhow::Context;
use clap::Args;
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
}
