// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands from templates.
//!
//! A template is a line of words. A word that has choices stands for a random one of them; every
//! other word stands for itself. A word that ends with `?` is left out half of the time, and so are
//! all words between `[` and `]` together.

use std::collections::HashMap;

/// Templates, and the choices of their words.
pub struct Templates {
    lines: Vec<Vec<&'static str>>,
    choices: HashMap<&'static str, Vec<String>>,
}

impl Templates {
    /// Templates, one a line.
    pub fn new(lines: &'static str, choices: &[(&'static str, &[&str])]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            lines: lines
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>())
                .filter(|line| !line.is_empty())
                .collect(),
            choices: choices.iter().map(|(name, words)| (*name, owned(words))).collect(),
        }
    }

    /// A random command. One in twelve has a word too few or too many, or another one.
    pub fn command(&self, random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
        let line = &self.lines[random.usize(..self.lines.len())];
        let mut words: Vec<Vec<u8>> = vec![];
        let mut is_left_out = false;
        for word in line {
            match *word {
                "[" => is_left_out = random.bool(),
                "]" => is_left_out = false,
                _ if is_left_out => {}
                word => match word.strip_suffix('?') {
                    Some(_) if random.bool() => {}
                    Some(word) => words.push(self.word(word, random)),
                    None => words.push(self.word(word, random)),
                },
            }
        }
        self.spoil(&mut words, random);
        words
    }

    fn word(&self, name: &str, random: &mut fastrand::Rng) -> Vec<u8> {
        match self.choices.get(name) {
            Some(words) => words[random.usize(..words.len())].clone().into_bytes(),
            None => name.as_bytes().to_vec(),
        }
    }

    fn spoil(&self, words: &mut Vec<Vec<u8>>, random: &mut fastrand::Rng) {
        // The first key stays: templates may rely on what values it can have.
        if words.len() < 3 {
            return;
        }
        let at = random.usize(2..words.len());
        match random.u8(..36) {
            0 => _ = words.remove(at),
            1 => {
                let line = &self.lines[random.usize(..self.lines.len())];
                let other = line[random.usize(..line.len())].trim_end_matches('?');
                words[at] = self.word(other, random);
            }
            2 => words.insert(at, words[random.usize(2..words.len())].clone()),
            _ => {}
        }
    }
}
