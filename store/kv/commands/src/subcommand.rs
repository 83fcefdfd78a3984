// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that consist of others: the second word says which, as in `XGROUP CREATE`.

use crate::arguments::is;
use crate::call::Call;
use crate::command::{Run, Spec};
use crate::error::Error;

/// A part of a command.
#[derive(Clone, Copy, Debug)]
pub struct Subcommand {
    /// Name in lower case.
    pub name: &'static str,
    /// Number of arguments with both names; a negative one is the least number.
    pub arity: i32,
    /// The function.
    pub run: Run,
}

impl Subcommand {
    /// A subcommand.
    pub const fn new(name: &'static str, arity: i32, run: Run) -> Self {
        Self { name, arity, run }
    }

    /// Executes the one of `all` that the call names.
    ///
    /// # Errors
    /// There is none of this name, or it was given too few or too many arguments; its own errors.
    pub fn dispatch(command: &str, all: &[Self], call: &mut Call<'_>) -> Result<(), Error> {
        let name = call.arguments[1];
        let Some(one) = all.iter().find(|one| is(name, one.name)) else {
            return Err(Error::new(format!(
                "ERR unknown subcommand '{:.128}'. Try {} HELP.",
                Error::shown(name),
                command.to_uppercase()
            )));
        };
        if !Spec::has_arguments(one.arity, call.arguments.len()) {
            return Err(Error::arity(&format!("{command}|{}", one.name)));
        }
        (one.run)(call)
    }

    /// Options of the one that the call names are wrong.
    pub fn syntax_error(command: &str, call: &Call<'_>) -> Error {
        Error::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{:.128}'. Try {} HELP.",
            Error::shown(call.arguments[1]),
            command.to_uppercase()
        ))
    }

    /// Replies with lines of help, between the usual first and last ones.
    pub fn help(command: &str, lines: &[&str], call: &mut Call<'_>) {
        call.reply.array(lines.len() + 3);
        call.reply.status(&format!(
            "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            command.to_uppercase()
        ));
        for line in lines.iter().chain(&["HELP", "    Prints this help."]) {
            call.reply.status(line);
        }
    }
}
