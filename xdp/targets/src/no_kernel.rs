// SPDX-License-Identifier: Apache-2.0 OR MIT
//! In the place of the kernel in builds without the feature `kernel`: nothing can be loaded into
//! it, and whoever wants to is told so.

use crate::{Arrival, Contents, Departure, Error, Loading, Runs, Target, Timed};
use freeport_ebpf::instruction::Instruction;
use std::io;
use std::os::fd::BorrowedFd;

const NOT_BUILT: &str = "this build loads no programs into the kernel: build freeport with its \
                         feature `kernel`, for which libbpf is built";

/// An object in the kernel: there is none.
pub enum Kernel {}

/// The kernel counting runs of programs: it does not.
#[derive(Debug)]
pub enum RunTimes {}

/// A program of bare instructions in the kernel: there is none.
pub enum RawProgram {}

impl RunTimes {
    /// Never.
    ///
    /// # Errors
    /// Always.
    pub fn enable() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, NOT_BUILT))
    }
}

impl RawProgram {
    /// Never loads one.
    ///
    /// # Errors
    /// Always.
    pub fn load(_instructions: &[Instruction], _value_bytes: u32) -> Result<Self, Error> {
        Err(Error::Load(NOT_BUILT.into()))
    }
}

impl Kernel {
    /// Shortest and longest packet that the kernel's test facility takes, in bytes.
    pub const LENGTHS: std::ops::RangeInclusive<usize> = 14..=3520;

    /// Never loads one.
    ///
    /// # Errors
    /// Always.
    pub fn load(_object: &[u8]) -> Result<Self, Error> {
        Err(Error::Load(NOT_BUILT.into()))
    }

    /// Never loads one.
    ///
    /// # Errors
    /// Always.
    pub fn load_part(object: &[u8], _loading: &Loading<'_>) -> Result<Self, Error> {
        Self::load(object)
    }

    /// Never loads one.
    ///
    /// # Errors
    /// Always.
    pub fn load_to_attach(object: &[u8], _loading: &Loading<'_>) -> Result<Self, Error> {
        Self::load(object)
    }

    /// Why nothing may be loaded.
    pub fn refusal() -> Option<String> {
        Some(NOT_BUILT.into())
    }

    /// Of what is not there.
    ///
    /// # Errors
    /// None that can be.
    pub fn program(&self, _name: &str) -> Result<BorrowedFd<'_>, Error> {
        match *self {}
    }

    /// Of what is not there.
    ///
    /// # Errors
    /// None that can be.
    pub fn runs(&self, _program: &str) -> Result<Runs, Error> {
        match *self {}
    }

    /// Of what is not there.
    ///
    /// # Errors
    /// None that can be.
    pub fn contents_by_processor(&mut self, _map: &str) -> Result<Option<Vec<Contents>>, Error> {
        match *self {}
    }

    /// Of what is not there.
    ///
    /// # Errors
    /// None that can be.
    pub fn time(
        &mut self,
        _program: &str,
        _arrival: &Arrival<'_>,
        _repeat: u32,
    ) -> Result<Timed, Error> {
        match *self {}
    }
}

impl Target for Kernel {
    fn run_into(&mut self, _: &str, _: &Arrival<'_>, _: &mut Departure) -> Result<(), Error> {
        match *self {}
    }

    fn update_with(&mut self, _: &str, _: &[u8], _: &[u8], _: u64) -> Result<(), Error> {
        match *self {}
    }

    fn delete(&mut self, _: &str, _: &[u8]) -> Result<(), Error> {
        match *self {}
    }

    fn push(&mut self, _: &str, _: &[u8]) -> Result<(), Error> {
        match *self {}
    }

    fn put_inside(&mut self, _: &str, _: &[u8], _: &str) -> Result<(), Error> {
        match *self {}
    }

    fn put_program(&mut self, _: &str, _: &[u8], _: &str) -> Result<(), Error> {
        match *self {}
    }

    fn maps(&self) -> Vec<String> {
        match *self {}
    }

    fn contents(&mut self, _: &str) -> Result<Contents, Error> {
        match *self {}
    }
}
