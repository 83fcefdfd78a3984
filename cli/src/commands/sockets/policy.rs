// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport sockets policy`: the rules of a running monitor.

use clap::{Args, Subcommand};
use freeport_monitor::{Control, Rule, printable};
use serde_json::Value;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport sockets policy deny user www-data with user root\n  \
                  freeport sockets policy deny port 22\n  \
                  freeport sockets policy show > /etc/freeport/sockets.policy\n\n\
                  A rule says what one end has to be, and with what other: `any`, or some of \
                  `user NAME`, `other-user`, `net INODE`, `cgroup PATH`, \
                  `address ADDRESS/BITS` and `port FIRST-LAST`. \
                  The first rule that fits decides. See docs/guide/sockets.md.")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Print the rules, as a file may have them
    Show,
    /// Put a rule before the others: these may be accelerated
    Allow {
        /// What the ends have to be
        #[arg(required = true, value_name = "WORDS")]
        ends: Vec<String>,
    },
    /// Put a rule before the others: these may not
    Deny {
        /// What the ends have to be
        #[arg(required = true, value_name = "WORDS")]
        ends: Vec<String>,
    },
    /// Take out a rule
    Remove {
        /// Its place, from 1 on
        place: usize,
    },
}

/// Shows or changes them.
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
    println!("# All others may be accelerated.");
    if matches!(arguments.what, What::Deny { .. }) {
        println!("# What is accelerated already stays so until `freeport sockets recall`.");
    }
    Ok(())
}

/// Names are looked up here, so that the monitor never has to.
fn put(control: &Control, decision: &str, ends: &[String]) -> anyhow::Result<Value> {
    let rule: Rule = format!("{decision} {}", ends.join(" ")).parse()?;
    Ok(control.put_rule(&rule.to_string())?)
}
