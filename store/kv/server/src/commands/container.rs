// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that consist of subcommands, such as `CLIENT LIST`.

use std::sync::LazyLock;

use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Error, Flags, Group, Keys, Spec};

use super::{Context, Flow, ServerRun};

/// Bytes of a word that an error repeats.
const SHOWN_BYTES: usize = 128;

/// A command that consists of subcommands.
#[derive(Debug)]
pub struct Container {
    /// Its name in lower case.
    pub name: &'static str,
    /// The group that the documentation has it in.
    pub group: Group,
    /// Its subcommands; `HELP` is one of all containers.
    pub subcommands: &'static [Subcommand],
    /// Lines of `HELP` between the first and the last two.
    pub help: &'static [&'static str],
}

/// A subcommand.
#[derive(Debug)]
pub struct Subcommand {
    /// Its name in lower case.
    pub name: &'static str,
    /// Number of arguments with both names; a negative one is the least number.
    pub arity: i32,
    /// Flags.
    pub flags: Flags,
    /// The function.
    pub run: ServerRun,
}

/// Properties of all subcommands, by container.
static SPECS: LazyLock<Vec<Vec<Spec>>> = LazyLock::new(|| {
    super::CONTAINERS.iter().map(|one| one.all().map(|part| one.spec_of(part)).collect()).collect()
});

/// Properties of the subcommands of a command; empty if it has none.
pub fn subcommands(name: &str) -> &'static [Spec] {
    let at = super::CONTAINERS.iter().position(|container| container.name == name);
    at.map_or(&[], |at| &SPECS[at])
}

/// `HELP` of every container.
const HELP: Subcommand = Subcommand::new("help", 2, Flags::LOADING.with(Flags::STALE), |context| {
    let container = super::container(context.arguments[0]);
    container.expect("only containers have subcommands").show_help(context);
    Ok(Flow::Continue)
});

impl Subcommand {
    /// A subcommand.
    pub const fn new(name: &'static str, arity: i32, flags: Flags, run: ServerRun) -> Self {
        Self { name, arity, flags, run }
    }
}

impl Container {
    /// Executes the subcommand that the first argument names.
    ///
    /// # Errors
    /// Those of the subcommand, and of [`Container::find`].
    pub fn run(&self, context: &mut Context<'_>) -> Result<Flow, Error> {
        (self.find(context.arguments)?.run)(context)
    }

    /// The subcommand that the first argument names.
    ///
    /// # Errors
    /// There is none of that name; the number of arguments is wrong.
    pub fn find(&self, arguments: &[&[u8]]) -> Result<&Subcommand, Error> {
        let word = arguments[1];
        let Some(found) = self.all().find(|one| is(word, one.name)) else {
            return Err(self.unknown(word));
        };
        let wanted = found.arity.unsigned_abs() as usize;
        let given = arguments.len();
        if given < wanted || found.arity > 0 && given > wanted {
            return Err(Error::arity(&format!("{}|{}", self.name, found.name)));
        }
        Ok(found)
    }

    /// Its subcommands with `HELP`.
    fn all(&self) -> impl Iterator<Item = &Subcommand> {
        self.subcommands.iter().chain([&HELP])
    }

    /// Properties of a subcommand. None of them has a key but `MEMORY USAGE`.
    fn spec_of(&self, one: &Subcommand) -> Spec {
        let is_usage = self.name == "memory" && one.name == "usage";
        let keys = match is_usage {
            true => Keys::Range { first: 2, last: 2, step: 1 },
            false => Keys::None,
        };
        let Subcommand { name, arity, flags, .. } = *one;
        Spec { name, arity, flags, keys, group: self.group, subcommands: &[], number: 0 }
    }

    /// There is no such subcommand.
    pub fn unknown(&self, word: &[u8]) -> Error {
        let shown = String::from_utf8_lossy(&word[..word.len().min(SHOWN_BYTES)]);
        let name = self.name.to_ascii_uppercase();
        Error::new(format!("ERR unknown subcommand '{shown}'. Try {name} HELP."))
    }

    fn show_help(&self, context: &mut Context<'_>) {
        let name = self.name.to_ascii_uppercase();
        let mut reply = context.reply();
        reply.array(self.help.len() + 3);
        reply.status(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
        self.help.iter().for_each(|line| reply.status(line));
        reply.status("HELP");
        reply.status("    Prints this help.");
    }
}
