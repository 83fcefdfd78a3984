// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program held by its runner: borrowed, or shared by reference count. A process that replaces
//! its program repeatedly shares each one, which is freed with its last reference.

use crate::Program;
use std::ops::Deref;
use std::sync::Arc;

/// A program, borrowed or shared.
#[derive(Clone, Debug)]
pub enum ProgramRef<'p> {
    /// Borrowed; the owner outlives the reference.
    Lent(&'p Program),
    /// Shared; the holder depends on no lifetime.
    Shared(Arc<Program>),
}

impl Deref for ProgramRef<'_> {
    type Target = Program;

    fn deref(&self) -> &Program {
        match self {
            Self::Lent(program) => program,
            Self::Shared(program) => program,
        }
    }
}

impl<'p> From<&'p Program> for ProgramRef<'p> {
    fn from(program: &'p Program) -> Self {
        Self::Lent(program)
    }
}

impl From<Arc<Program>> for ProgramRef<'_> {
    fn from(program: Arc<Program>) -> Self {
        Self::Shared(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_program_goes_with_its_last_user() {
        let program = Arc::new(Program { name: "shared".into(), ..Program::default() });
        let first: ProgramRef<'static> = program.clone().into();
        let second = first.clone();
        let weak = Arc::downgrade(&program);
        drop((program, first));
        assert_eq!((second.name.as_str(), weak.strong_count()), ("shared", 1));
        drop(second);
        assert!(weak.upgrade().is_none());
    }
}
