// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An object in the kernel whose programs are to be attached to interfaces: they run on any
//! processor, and the kernel counts the runs on request.

use super::{Kernel, refused};
use crate::{Contents, Error, Loading, Runs, Target};
use libbpf_rs::{MapCore, libbpf_sys};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// While this value exists, the kernel counts runs and run time of all programs of the machine,
/// which makes each run slower.
#[derive(Debug)]
pub struct RunTimes {
    _enabled: OwnedFd,
}

impl RunTimes {
    /// Starts counting.
    ///
    /// # Errors
    /// The process lacks the privilege, or the kernel is older than 5.8.
    pub fn enable() -> io::Result<Self> {
        // SAFETY: the call takes a number and no pointer.
        let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if descriptor < 0 {
            return Err(io::Error::from_raw_os_error(-descriptor));
        }
        // SAFETY: the descriptor is open, and this value is its only owner.
        Ok(Self { _enabled: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }
}

impl Kernel {
    /// Loads an object whose programs are attached to interfaces instead of run on given packets.
    /// The thread is not pinned to a processor; for per-CPU maps, [`Target::contents`] returns the
    /// values of the first processor.
    ///
    /// # Errors
    /// libbpf or the verifier rejects the object.
    pub fn load_to_attach(object: &[u8], loading: &Loading<'_>) -> Result<Self, Error> {
        Self::load_with(object, loading, 0)
    }

    /// Returns the descriptor of a program, to attach it to an interface.
    ///
    /// # Errors
    /// There is no program of that name.
    pub fn program(&self, name: &str) -> Result<BorrowedFd<'_>, Error> {
        let found = self.object.progs().find(|it| it.name().to_str() == Some(name));
        let found = found.ok_or_else(|| Error::NoProgram(name.into()))?;
        let descriptor = found.as_fd().as_raw_fd();
        // SAFETY: the object keeps the descriptor open while it lives, and the borrow cannot
        // outlive it.
        Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Returns the number of runs of a program while a [`RunTimes`] existed, and their time.
    ///
    /// # Errors
    /// There is no such program, or the kernel refuses.
    pub fn runs(&self, program: &str) -> Result<Runs, Error> {
        let mut information = libbpf_sys::bpf_prog_info::default();
        let mut bytes = size_of::<libbpf_sys::bpf_prog_info>() as u32;
        let descriptor = self.program(program)?.as_raw_fd();
        // SAFETY: the kernel writes at most `bytes` bytes, the size of `information`.
        let result = unsafe {
            libbpf_sys::bpf_prog_get_info_by_fd(descriptor, &raw mut information, &raw mut bytes)
        };
        if result < 0 {
            let error = io::Error::from_raw_os_error(-result);
            return Err(refused(format_args!("asking about {program}"))(error));
        }
        Ok(Runs { count: information.run_cnt, time_ns: information.run_time_ns })
    }

    /// Returns the contents of a per-CPU map for each processor; `None` for other maps.
    ///
    /// # Errors
    /// There is no such map, or reading it failed.
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
