// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Golden tests of library elements, `elements/<category>/<name>.test`: the input and the expected
//! output of an element, as text. The format is described in `docs/reference/elements.md`.
//!
//! A case is an ordered list of steps. `in` lines queue packets; any other step first lets the
//! element run until nothing moves.

#![forbid(unsafe_code)]

mod internet;
mod link;
pub mod native;
pub mod packet;
pub mod record;
pub mod run;

use std::collections::BTreeMap;

/// The golden cases of a file.
#[derive(Clone, Debug, Default)]
pub struct Golden {
    /// Cases in order.
    pub cases: Vec<Case>,
}

/// One case: a fresh instance and its steps.
#[derive(Clone, Debug)]
pub struct Case {
    /// Description of what the case shows.
    pub title: String,
    /// Line where it starts, counted from 1.
    pub line: usize,
    /// Element type, with its compile-time arguments if any: `Tee<2>`.
    pub element: String,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// An action or an expectation, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Line, counted from 1.
    pub line: usize,
    /// Action or expectation.
    pub action: Action,
}

/// Action or expectation of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Queues packets for an input port.
    In {
        /// Name of the port, or its number from 1.
        port: String,
        /// Packets in order.
        packets: Vec<Vec<u8>>,
    },
    /// Expects the packets that have left an output port since the previous such step.
    Out {
        /// Name of the port, or its number from 1.
        port: String,
        /// Expected packets. The packets of a group arrive in order; groups may interleave. A
        /// single group is a plain order.
        groups: Vec<Vec<Vec<u8>>>,
    },
    /// Writes a variable.
    Set(Variable, u64),
    /// Expects the value of a variable.
    Expect(Variable, u64),
    /// Sends a signal and expects its answer, both as `LParam` words; missing words are 0.
    Signal {
        /// Words to send.
        parameters: Vec<u64>,
        /// Expected answer.
        answer: Vec<u64>,
    },
    /// Calls a method and expects its result.
    Call {
        /// Name of the method.
        method: String,
        /// Arguments as bytes in memory, lowest byte first.
        arguments: Vec<Vec<u8>>,
        /// Expected result, in the same form; none for a method without a result.
        result: Option<Vec<u8>>,
    },
}

/// A state variable, or an element of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Index of the element; 0 for a scalar.
    pub index: u64,
}

/// An error in a golden file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Problem {
    /// Line, counted from 1.
    pub line: usize,
    /// Description of what was expected.
    pub message: String,
}

type Packets = BTreeMap<String, Vec<u8>>;

impl Golden {
    /// Parses a golden file.
    ///
    /// # Errors
    /// The first line that is not understood.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut golden = Self::default();
        let mut packets = Packets::new();
        for (at, raw) in text.lines().enumerate() {
            let line = raw.split('#').next().unwrap_or(raw).trim();
            if line.is_empty() {
                continue;
            }
            golden
                .add_line(line, at + 1, &mut packets)
                .map_err(|message| Problem { line: at + 1, message })?;
        }
        match golden.cases.iter().find(|case| case.steps.is_empty() || case.element.is_empty()) {
            Some(case) => {
                let message = "the case has no element, or no steps".into();
                Err(Problem { line: case.line, message })
            }
            None => Ok(golden),
        }
    }

    fn add_line(&mut self, line: &str, number: usize, packets: &mut Packets) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "packet" | "record" => {
                let (name, made_of) = split_at_equals(rest)?;
                let bytes = packet::build(made_of, packets)?;
                if packets.insert(name.to_owned(), bytes).is_some() {
                    return Err(format!("there is a {word} `{name}` already"));
                }
                return Ok(());
            }
            "case" => {
                let (title, element) = (rest.to_owned(), String::new());
                self.cases.push(Case { title, line: number, element, steps: vec![] });
                return Ok(());
            }
            _ => {}
        }
        let case = self.cases.last_mut().ok_or("a `case` line comes before the first step")?;
        if word == "element" {
            case.element = rest.to_owned();
        } else {
            case.steps.push(Step { line: number, action: action(word, rest, packets)? });
        }
        Ok(())
    }
}

fn action(word: &str, rest: &str, packets: &Packets) -> Result<Action, String> {
    let (left, right) = split_at_equals(rest)?;
    let port = left.to_owned();
    Ok(match word {
        "in" => Action::In { port, packets: packet::list(right, packets)? },
        "out" => {
            let groups = right.split('|').map(|group| packet::list(group, packets));
            Action::Out { port, groups: groups.collect::<Result<_, _>>()? }
        }
        "set" => Action::Set(variable(left)?, packet::number(right)?),
        "expect" => Action::Expect(variable(left)?, packet::number(right)?),
        "signal" => Action::Signal { parameters: words(left)?, answer: words(right)? },
        "call" => {
            let value = |word| record::value(word, packets);
            let (method, arguments) = left.split_once(' ').unwrap_or((left, ""));
            let arguments = arguments.split_whitespace().map(value).collect::<Result<_, _>>()?;
            let result = (!right.is_empty()).then(|| value(right)).transpose()?;
            Action::Call { method: method.to_owned(), arguments, result }
        }
        _ => {
            let known = "packet, record, case, element, in, out, set, expect, signal or call";
            return Err(format!("`{word}`: a line starts with {known}"));
        }
    })
}

fn split_at_equals(text: &str) -> Result<(&str, &str), String> {
    let (left, right) = text.split_once('=').ok_or("an `=` is expected")?;
    Ok((left.trim(), right.trim()))
}

fn words(text: &str) -> Result<Vec<u64>, String> {
    let words = text.split_whitespace().map(packet::number).collect::<Result<Vec<_>, _>>()?;
    if words.len() > freeport_ir::SIGNAL_WORDS {
        return Err(format!("a signal has at most {} words", freeport_ir::SIGNAL_WORDS));
    }
    Ok(words)
}

fn variable(text: &str) -> Result<Variable, String> {
    let Some((name, rest)) = text.split_once('[') else {
        return Ok(Variable { name: text.to_owned(), index: 0 });
    };
    let index = rest.strip_suffix(']').ok_or("a `]` is missing")?;
    Ok(Variable { name: name.trim().to_owned(), index: packet::number(index.trim())? })
}

/// Returns whether `seen` is an interleaving of `groups`, each of which keeps its order.
pub fn is_mixture(seen: &[Vec<u8>], groups: &[Vec<Vec<u8>>]) -> bool {
    let total: usize = groups.iter().map(Vec::len).sum();
    if total != seen.len() {
        return false;
    }
    // All combinations of positions in the groups that match the packets so far.
    let mut states = vec![vec![0; groups.len()]];
    for packet in seen {
        let mut next: Vec<Vec<usize>> = vec![];
        for state in states {
            for (at, group) in groups.iter().enumerate() {
                if group.get(state[at]) == Some(packet) {
                    let mut after = state.clone();
                    after[at] += 1;
                    if !next.contains(&after) {
                        next.push(after);
                    }
                }
            }
        }
        states = next;
    }
    !states.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
packet a = hex 0102 03
packet b = a with 1=ff   # patched
case it does
element Tee<2>
in in = a 2*b
out 1 = a b | b
set table[0x10] = 5
expect table[16] = 5
signal 1 2 = 3
record r = fields 8:5
call insert r 10.0.0.1 = 7
call clear =
";

    #[test]
    fn a_golden_is_read() {
        let golden = Golden::parse(SAMPLE).unwrap();
        let case = &golden.cases[0];
        assert_eq!((case.title.as_str(), case.element.as_str()), ("it does", "Tee<2>"));
        let actions: Vec<&Action> = case.steps.iter().map(|step| &step.action).collect();
        let (a, b) = (vec![1, 2, 3], vec![1, 0xff, 3]);
        let port = "in".to_owned();
        assert_eq!(
            actions[0],
            &Action::In { port, packets: vec![a.clone(), b.clone(), b.clone()] }
        );
        let groups = vec![vec![a, b.clone()], vec![b]];
        assert_eq!(actions[1], &Action::Out { port: "1".into(), groups });
        let variable = Variable { name: "table".into(), index: 16 };
        assert_eq!(actions[2], &Action::Set(variable.clone(), 5));
        assert_eq!(actions[3], &Action::Expect(variable, 5));
        let (parameters, answer) = (vec![1, 2], vec![3]);
        assert_eq!(actions[4], &Action::Signal { parameters, answer });
        let word = |number: u64| number.to_le_bytes().to_vec();
        let (arguments, result) = (vec![vec![5], word(0x0a00_0001)], Some(word(7)));
        assert_eq!(actions[5], &Action::Call { method: "insert".into(), arguments, result });
        let (method, arguments) = ("clear".into(), vec![]);
        assert_eq!(actions[6], &Action::Call { method, arguments, result: None });
    }

    #[test]
    fn lines_that_say_nothing_are_refused_with_their_number() {
        for (text, line) in [
            ("out 1 = x\n", 1),
            ("case a\nelement A\nfrobnicate x = y\n", 3),
            ("case a\nelement A\nin in = nobody\n", 3),
            ("case a\nelement A\n", 1),
            ("case a\nin in =\n", 1),
            ("packet a = hex 0\n", 1),
            ("packet a = hex 00\npacket a = hex 01\n", 2),
            ("case a\nelement A\nsignal 1 2 3 4 5 6 7 8 = 0\n", 3),
            ("case a\nelement A\nset x[1 = 0\n", 3),
            ("case a\nelement A\ncall f x = 0\n", 3),
        ] {
            assert_eq!(Golden::parse(text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn a_mixture_keeps_the_order_within_each_group() {
        let packets = |text: &str| text.bytes().map(|byte| vec![byte]).collect::<Vec<_>>();
        let groups = [packets("aab"), packets("ac")];
        assert!(is_mixture(&packets("aaabc"), &groups));
        assert!(is_mixture(&packets("acaab"), &groups));
        assert!(!is_mixture(&packets("acba"), &groups));
        assert!(!is_mixture(&packets("caaab"), &groups));
        assert!(!is_mixture(&packets("abaca"), &groups));
        assert!(is_mixture(&[], &[vec![]]));
    }
}
