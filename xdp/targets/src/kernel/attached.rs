// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An object in the kernel whose programs are to run on network interfaces: on any processor, and
//! counted by the kernel if it is asked to.

use super::{Kernel, refused};
use crate::{Contents, Error, Loading, Runs, Target};
use libbpf_rs::{MapCore, libbpf_sys};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Has the kernel count runs of programs and their time until this is dropped: of all programs of
/// the machine, and each run takes longer for it.
#[derive(Debug)]
pub struct RunTimes {
    _enabled: OwnedFd,
}

impl RunTimes {
    /// From now on.
    ///
    /// # Errors
    /// No right to, or a kernel before 5.8.
    pub fn enable() -> io::Result<Self> {
        // SAFETY: it takes a number.
        let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if descriptor < 0 {
            return Err(io::Error::from_raw_os_error(-descriptor));
        }
        // SAFETY: it is a descriptor that nobody else knows of.
        Ok(Self { _enabled: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }
}

impl Kernel {
    /// Loads an object whose programs are not run on given packets but put on interfaces. The
    /// thread may go where it likes; what [`Target::contents`] gives of maps with a value for each
    /// processor is that of the first.
    ///
    /// # Errors
    /// What libbpf or the verifier says against it.
    pub fn load_to_attach(object: &[u8], loading: &Loading<'_>) -> Result<Self, Error> {
        Self::load_with(object, loading, 0)
    }

    /// A program, for those who put it on an interface.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn program(&self, name: &str) -> Result<BorrowedFd<'_>, Error> {
        let found = self.object.progs().find(|it| it.name().to_str() == Some(name));
        let found = found.ok_or_else(|| Error::NoProgram(name.into()))?;
        let descriptor = found.as_fd().as_raw_fd();
        // SAFETY: the object has the descriptor open for as long as it lives, which is as long as
        // what is given here.
        Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// How often a program was run while somebody had [`RunTimes`].
    ///
    /// # Errors
    /// No such program, or what the kernel says.
    pub fn runs(&self, program: &str) -> Result<Runs, Error> {
        let mut information = libbpf_sys::bpf_prog_info::default();
        let mut bytes = size_of::<libbpf_sys::bpf_prog_info>() as u32;
        let descriptor = self.program(program)?.as_raw_fd();
        // SAFETY: the kernel writes at most so many bytes as it is told there are.
        let result = unsafe {
            libbpf_sys::bpf_prog_get_info_by_fd(descriptor, &raw mut information, &raw mut bytes)
        };
        if result < 0 {
            let error = io::Error::from_raw_os_error(-result);
            return Err(refused(format_args!("asking about {program}"))(error));
        }
        Ok(Runs { count: information.run_cnt, time_ns: information.run_time_ns })
    }

    /// What is in a map on each processor, if it has a value for each.
    ///
    /// # Errors
    /// No such map, or what the map says.
    pub fn contents_by_processor(&mut self, map: &str) -> Result<Option<Vec<Contents>>, Error> {
        if !self.map(map)?.map_type().is_percpu() {
            return Ok(None);
        }
        let processors = libbpf_rs::num_possible_cpus().map_err(refused("counting processors"))?;
        let before = self.processor;
        let all = (0..processors).map(|processor| {
            self.processor = processor;
            self.contents(map)
        });
        let all: Result<Vec<_>, _> = all.collect();
        self.processor = before;
        all.map(Some)
    }
}
