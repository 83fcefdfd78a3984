// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport plan profile`: prints profiles and checks files.

use super::device::DeviceArguments;
use clap::Args;
use freeport_plan_model::Profile;
use freeport_plan_model::local::Machine;
use freeport_plan_model::parameters::{Key, Parameters, kind_of, parse};
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
    match kind_of(&name, &text)?.as_str() {
        Machine::KIND => print_as::<Machine>(arguments, &name, &text),
        _ => print_as::<Profile>(arguments, &name, &text),
    }
}

/// Prints a profile of a kind.
fn print_as<P: Parameters>(arguments: &Arguments, name: &str, text: &str) -> anyhow::Result<()> {
    let mut profile: P = parse(name, text)?;
    if arguments.parameters {
        print!("{}", parameters::<P>());
    } else if arguments.check {
        let fitted = profile.origins_mut().values().filter(|origin| origin.fitted).count();
        let all = profile.origins_mut().len();
        let kind = profile.name_mut();
        println!("{name}: {kind}, {all} parameters, of which {fitted} are fitted");
    } else if arguments.json {
        println!("{}", json_of(profile));
    } else {
        print!("{text}");
    }
    Ok(())
}

fn parameters<P: Parameters>() -> String {
    let mut text = String::new();
    for (section, keys) in P::SECTIONS {
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

fn json_of<P: Parameters>(mut profile: P) -> Value {
    let mut parameter = |section: &str, key: &Key| {
        let value = profile.place(section, key.name).map(|place| *place);
        let origin = profile.origins_mut().get(&format!("{section}.{}", key.name));
        let value = json!({
            "value": value,
            "unit": key.unit,
            "source": origin.map(|origin| &origin.source),
            "fitted": origin.is_some_and(|origin| origin.fitted),
        });
        (key.name.to_owned(), value)
    };
    let sections: Vec<(String, Value)> = P::SECTIONS
        .iter()
        .map(|(section, keys)| {
            let members = keys.iter().map(|key| parameter(section, key));
            ((*section).to_owned(), Value::Object(members.collect()))
        })
        .collect();
    let name = ("name".to_owned(), json!(profile.name_mut()));
    Value::Object(std::iter::once(name).chain(sections).collect::<Map<_, _>>())
}
