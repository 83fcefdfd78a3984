// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces the kernel in builds without the feature `kernel`: every attempt to load something
//! fails with an error that names the feature.

use crate::{Arrival, Contents, Departure, Error, Loading, Runs, Target, Timed};
use freeport_ebpf::instruction::Instruction;
use std::io;
use std::os::fd::BorrowedFd;

const NOT_BUILT: &str = "this build loads no programs into the kernel: build freeport with its \
                         feature `kernel`, for which libbpf is built";

/// An object in the kernel; cannot exist in this build.
pub enum Kernel {}

/// Run counting in the kernel; cannot exist in this build.
#[derive(Debug)]
pub enum RunTimes {}

/// A program of bare instructions in the kernel; cannot exist in this build.
pub enum RawProgram {}

impl RunTimes {
    /// Always fails in this build.
    ///
    /// # Errors
    /// Always.
    pub fn enable() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, NOT_BUILT))
    }
}

impl RawProgram {
    /// Always fails in this build.
    ///
    /// # Errors
    /// Always.
    pub fn load(_instructions: &[Instruction], _value_bytes: u32) -> Result<Self, Error> {
        Err(Error::Load(NOT_BUILT.into()))
    }
}

impl Kernel {
    /// Shortest and longest packet that `BPF_PROG_TEST_RUN` accepts, in bytes.
    pub const LENGTHS: std::ops::RangeInclusive<usize> = 14..=3520;

    /// Always fails in this build.
    ///
    /// # Errors
    /// Always.
    pub fn load(_object: &[u8]) -> Result<Self, Error> {
        Err(Error::Load(NOT_BUILT.into()))
    }

    /// Always fails in this build.
    ///
    /// # Errors
    /// Always.
    pub fn load_part(object: &[u8], _loading: &Loading<'_>) -> Result<Self, Error> {
        Self::load(object)
    }

    /// Always fails in this build.
    ///
    /// # Errors
    /// Always.
    pub fn load_to_attach(object: &[u8], _loading: &Loading<'_>) -> Result<Self, Error> {
        Self::load(object)
    }

    /// Returns the reason for which nothing can be loaded.
    pub fn refusal() -> Option<String> {
        Some(NOT_BUILT.into())
    }

    /// Cannot be called in this build.
    ///
    /// # Errors
    /// Never.
    pub fn program(&self, _name: &str) -> Result<BorrowedFd<'_>, Error> {
        match *self {}
    }

    /// Cannot be called in this build.
    ///
    /// # Errors
    /// Never.
    pub fn runs(&self, _program: &str) -> Result<Runs, Error> {
        match *self {}
    }

    /// Cannot be called in this build.
    ///
    /// # Errors
    /// Never.
    pub fn contents_by_processor(&mut self, _map: &str) -> Result<Option<Vec<Contents>>, Error> {
        match *self {}
    }

    /// Cannot be called in this build.
    ///
    /// # Errors
    /// Never.
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
