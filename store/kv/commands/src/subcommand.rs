// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that consist of subcommands, such as OBJECT ENCODING.

use freeport_kv_protocol::resp::Writer;

use crate::arguments::is;
use crate::call::Call;
use crate::command::Run;
use crate::error::Error;

/// Bytes of a word that an error repeats.
const SHOWN_BYTES: usize = 128;

/// A subcommand.
pub(crate) struct Subcommand {
    /// Name in lower case.
    pub name: &'static str,
    /// Number of arguments with both names; a negative one is the least number.
    pub arity: i32,
    /// The function.
    pub run: Run,
}

/// Executes the subcommand that the first argument names.
///
/// # Errors
/// Those of the subcommand; there is none of that name; the number of arguments is wrong.
pub(crate) fn run(
    call: &mut Call<'_>,
    command: &'static str,
    subcommands: &[Subcommand],
) -> Result<(), Error> {
    let word = call.arguments[1];
    let Some(found) = subcommands.iter().find(|subcommand| is(word, subcommand.name)) else {
        return Err(Error::new(format!(
            "ERR unknown subcommand '{}'. Try {} HELP.",
            shown(word),
            command.to_ascii_uppercase()
        )));
    };
    let wanted = found.arity.unsigned_abs() as usize;
    let given = call.arguments.len();
    if given < wanted || found.arity > 0 && given > wanted {
        return Err(Error::arity(&format!("{command}|{}", found.name)));
    }
    (found.run)(call)
}

/// The beginning of a word, as errors repeat it.
pub(crate) fn shown(word: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&word[..word.len().min(SHOWN_BYTES)])
}

/// Replies the lines of HELP, with those that each command has.
pub(crate) fn help(reply: &mut Writer<'_>, command: &str, lines: &[&str]) {
    reply.array(lines.len() + 3);
    reply.status(&format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| reply.status(line));
    reply.status("HELP");
    reply.status("    Prints this help.");
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_kv_protocol::resp::Version;

    #[test]
    fn errors_repeat_the_beginning_of_a_word() {
        assert_eq!(shown(b"word"), "word");
        assert_eq!(shown(&[b'x'; 1_000]).len(), SHOWN_BYTES);
        assert_eq!(shown(&[0xFF]), "\u{FFFD}");
    }

    #[test]
    fn help_begins_and_ends_with_the_lines_of_all_commands() {
        let mut output = vec![];
        help(&mut Writer::new(&mut output, Version::Two), "X", &["LINE"]);
        let expected = "*4\r\n+X <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n\
                        +LINE\r\n+HELP\r\n+    Prints this help.\r\n";
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }
}
