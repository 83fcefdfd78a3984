// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets policy`: prints and changes the rules of a running monitor.

use clap::{Args, Subcommand};
use freeport_monitor::{Control, Rule, printable};
use serde_json::Value;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets policy deny user www-data with user root\n  \
                  freeport sockets policy deny port 22\n  \
                  freeport sockets policy show > /etc/freeport/sockets.policy\n\n\
                  A rule describes one end, and after `with` the other one: `any`, or some of \
                  `user NAME`, `other-user`, `net INODE`, `cgroup PATH`, \
                  `address ADDRESS/BITS` and `port FIRST-LAST`. The first rule that matches \
                  decides. See docs/guide/sockets.md.")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Print the rules in the format of a policy file
    Show,
    /// Insert a rule before the others: matching connections may be accelerated
    Allow {
        /// Description of the ends
        #[arg(required = true, value_name = "WORDS")]
        ends: Vec<String>,
    },
    /// Insert a rule before the others: matching connections may not be accelerated
    Deny {
        /// Description of the ends
        #[arg(required = true, value_name = "WORDS")]
        ends: Vec<String>,
    },
    /// Remove a rule
    Remove {
        /// Position of the rule, from 1
        place: usize,
    },
}

/// Prints or changes the rules.
pub fn run(arguments: &Arguments, control: &Control) -> anyhow::Result<()> {
    let rules = match &arguments.what {
        What::Show => control.rules()?,
        What::Allow { ends } => put(control, "allow", ends)?,
        What::Deny { ends } => put(control, "deny", ends)?,
        What::Remove { place } => control.remove_rule(*place)?,
    };
    if arguments.json {
        println!("{rules}");
        return Ok(());
    }
    for rule in rules["rules"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        println!("{}", printable(rule));
    }
    println!("# All other connections may be accelerated.");
    if matches!(arguments.what, What::Deny { .. }) {
        println!("# Connections that are accelerated now stay so until `freeport sockets recall`.");
    }
    Ok(())
}

/// Inserts a rule. User names are resolved here, so that the monitor need not do that.
fn put(control: &Control, decision: &str, ends: &[String]) -> anyhow::Result<Value> {
    let rule: Rule = format!("{decision} {}", ends.join(" ")).parse()?;
    Ok(control.put_rule(&rule.to_string())?)
}
