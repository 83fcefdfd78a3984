// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan profile`: prints profiles and checks files.

use super::device::DeviceArguments;
use clap::Args;
use freeport_plan_model::Profile;
use freeport_plan_model::profile::SECTIONS;
use serde_json::{Map, Value, json};

#[derive(Args)]
#[command(after_help = "Example:\n  freeport plan profile > my.toml\n  \
                  freeport plan profile --profile my.toml --check\n  \
                  freeport plan profile --parameters")]
pub struct Arguments {
    #[command(flatten)]
    device: DeviceArguments,
    /// Only check whether the profile is complete and consistent
    #[arg(long, conflicts_with_all = ["json", "parameters"])]
    check: bool,
    /// List all parameters with their units, ranges and meanings
    #[arg(long)]
    parameters: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the profile.
///
/// # Errors
/// It is invalid.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (name, text) = arguments.device.text()?;
    let profile = Profile::parse(&name, &text)?;
    if arguments.parameters {
        print!("{}", parameters());
    } else if arguments.check {
        let fitted = profile.origins.values().filter(|origin| origin.fitted).count();
        let all = profile.origins.len();
        println!("{name}: {}, {all} parameters, of which {fitted} are fitted", profile.name);
    } else if arguments.json {
        println!("{}", json_of(&profile));
    } else {
        print!("{text}");
    }
    Ok(())
}

fn parameters() -> String {
    let mut text = String::new();
    for (section, keys) in SECTIONS {
        for key in *keys {
            let name = format!("{section}.{}", key.name);
            text += &format!(
                "{name:24} {:6} {} to {}:{}\n",
                key.unit, key.least, key.most, key.meaning
            );
        }
    }
    text
}

fn json_of(profile: &Profile) -> Value {
    let parameter = |section: &str, key: &freeport_plan_model::profile::Key| {
        let name = format!("{section}.{}", key.name);
        let origin = profile.origins.get(&name);
        let value = json!({
            "value": profile.value(&name),
            "unit": key.unit,
            "source": origin.map(|origin| &origin.source),
            "fitted": origin.is_some_and(|origin| origin.fitted),
        });
        (key.name.to_owned(), value)
    };
    let sections = SECTIONS.iter().map(|(section, keys)| {
        let members = keys.iter().map(|key| parameter(section, key));
        ((*section).to_owned(), Value::Object(members.collect()))
    });
    let name = ("name".to_owned(), json!(profile.name));
    Value::Object(std::iter::once(name).chain(sections).collect::<Map<_, _>>())
}
