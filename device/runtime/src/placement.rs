// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assignment of instances to workers, as an operator writes it: `logger=1,allocator=1`. Instances
//! that are not named run on worker 0, and so do the endpoints of the graph.

use freeport_ir::Program;
use std::str::FromStr;

/// Maximum number of workers.
pub const MAX_WORKERS: usize = 64;

/// Instances by name, and their workers. The name of a group or an array stands for all its
/// members.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    placed: Vec<(String, usize)>,
}

/// Reason why a placement is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlacementError {
    /// Not `INSTANCE=WORKER`.
    #[error("{0:?} is not a placement: write INSTANCE=WORKER, with workers from 0 to 63")]
    Syntax(String),
    /// A name that the program does not have.
    #[error("there is no instance {name} to place; there are {}", .known.join(", "))]
    Unknown {
        /// The name as written.
        name: String,
        /// The instances that exist.
        known: Vec<String>,
    },
    /// An instance that calls methods of another on another worker.
    #[error("{caller} calls methods of {called}: both must be placed on the same worker")]
    Apart {
        /// The calling instance.
        caller: String,
        /// The called instance.
        called: String,
    },
    /// The same name on two workers.
    #[error("{0} is placed twice")]
    Twice(String),
}

impl Placement {
    /// Returns the worker of each instance of a program.
    ///
    /// # Errors
    /// A name that the program does not have.
    pub fn workers(&self, program: &Program) -> Result<Vec<usize>, PlacementError> {
        let names = || program.graph.instances.iter().map(|instance| instance.name.as_str());
        let mut workers = vec![0; names().count()];
        for (name, worker) in &self.placed {
            let mut is_known = false;
            for (at, _) in names().enumerate().filter(|(_, it)| is_inside(it, name)) {
                (is_known, workers[at]) = (true, *worker);
            }
            if !is_known {
                let known = names().map(str::to_owned).collect();
                return Err(PlacementError::Unknown { name: name.clone(), known });
            }
        }
        Ok(workers)
    }
}

/// Returns whether `name` names `instance`: the instance itself, or the group or array it is in.
fn is_inside(instance: &str, name: &str) -> bool {
    let rest = instance.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '#']))
}

impl FromStr for Placement {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Self, PlacementError> {
        let mut placed: Vec<(String, usize)> = vec![];
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let syntax = || PlacementError::Syntax(item.to_owned());
            let (name, worker) = item.split_once('=').ok_or_else(syntax)?;
            let name = name.trim();
            let worker = worker.trim().parse().ok().filter(|worker| *worker < MAX_WORKERS);
            let worker = worker.filter(|_| !name.is_empty()).ok_or_else(syntax)?;
            if placed.iter().any(|(other, _)| other == name) {
                return Err(PlacementError::Twice(name.to_owned()));
            }
            placed.push((name.to_owned(), worker));
        }
        // More specific names sort last, so that they override.
        placed.sort_by_key(|(name, _)| name.len());
        Ok(Self { placed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ir::{ElementId, Instance, Loc};

    fn program(names: &[&str]) -> Program {
        let mut program = Program::default();
        let instance = |name: &&str| Instance {
            name: (*name).into(),
            element: ElementId::new(0),
            host: false,
            controlled: false,
            verilog: false,
            loc: Loc::default(),
        };
        program.graph.instances = names.iter().map(instance).collect();
        program
    }

    #[test]
    fn names_groups_and_arrays_are_placed_and_the_closer_name_counts() {
        let program = program(&["cnt", "in.parse", "in.table", "lane#1", "lane#2", "inner"]);
        let placement: Placement = " in.table = 2, in=1,lane=3,lane#2=0 ".parse().expect("good");
        assert_eq!(placement.workers(&program), Ok(vec![0, 1, 2, 3, 0, 0]));
        assert_eq!(Placement::default().workers(&program), Ok(vec![0; 6]));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["cnt", "cnt=", "=1", "cnt=x", "cnt=64", "cnt=-1"] {
            let error = text.parse::<Placement>().expect_err("no placement");
            assert!(matches!(error, PlacementError::Syntax(_)), "{error}");
        }
        let error = "cnt=1,cnt=2".parse::<Placement>().expect_err("twice");
        assert_eq!(error, PlacementError::Twice("cnt".into()));
        let placement: Placement = "counter=1".parse().expect("well written");
        let error = placement.workers(&program(&["cnt", "tee"])).expect_err("it is not there");
        assert_eq!(error.to_string(), "there is no instance counter to place; there are cnt, tee");
    }
}
