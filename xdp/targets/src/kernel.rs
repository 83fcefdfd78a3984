// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel as a target: libbpf loads the object, the kernel verifies and translates it, and
//! `BPF_PROG_TEST_RUN` runs it on packets.
//!
//! The loader is deliberately not ours: the relocations, maps and functions that our own reader
//! makes of an object are compared with those that libbpf makes of it.

mod attached;
mod contents;
mod messages;
mod open;
mod raw;
mod timed;

pub use attached::RunTimes;
pub use raw::RawProgram;

use crate::{Arrival, Contents, Departure, Error, Loading, Target};
use libbpf_rs::{Map, MapCore, MapFlags, MapHandle, MapType, Object, ProgramInput, ProgramMut};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Bytes reserved for a packet after a run: more than the page that holds it in the kernel.
const PACKET_ROOM: usize = 8192;

/// An object in the kernel. Loading pins the thread to its current processor, so that all runs see
/// the same values of per-CPU maps.
pub struct Kernel {
    object: Object,
    /// Maps that the kernel did not create.
    absent: Vec<String>,
    processor: usize,
    packet: Vec<u8>,
}

/// The kernel's `struct xdp_md`.
#[derive(Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

const CONTEXT_BYTES: usize = 24;

impl Kernel {
    /// Shortest and longest packet that `BPF_PROG_TEST_RUN` accepts, in bytes.
    pub const LENGTHS: std::ops::RangeInclusive<usize> = 14..=3520;

    /// Loads an object with all its programs and maps; no map is pinned.
    ///
    /// # Errors
    /// libbpf or the verifier rejects the object.
    pub fn load(object: &[u8]) -> Result<Self, Error> {
        Self::load_part(object, &Loading::default())
    }

    /// Loads part of an object, or an object with other map sizes and initial values.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_part(object: &[u8], loading: &Loading<'_>) -> Result<Self, Error> {
        let processor = stay_on_one_processor().map_err(|error| Error::Load(error.to_string()))?;
        Self::load_with(object, loading, processor)
    }

    fn load_with(object: &[u8], loading: &Loading<'_>, processor: usize) -> Result<Self, Error> {
        let open::Loaded { object, absent } = open::load(object, loading)?;
        Ok(Self { object, absent, processor, packet: vec![0; PACKET_ROOM] })
    }

    /// Returns the reason for which this process may not load programs, if it may not. Callers skip
    /// work that depends on them and print the reason.
    pub fn refusal() -> Option<String> {
        // Creating this map requires the same privileges as loading an XDP program.
        let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let made = MapHandle::create(MapType::Devmap, Some("freeport"), 4, 4, 1, &options);
        made.err().map(|error| {
            format!(
                "the kernel refuses bpf(2): {error}; it takes CAP_BPF and CAP_NET_ADMIN, or root: \
                 try it with sudo"
            )
        })
    }

    /// Returns a map by its name in the source.
    fn map(&self, name: &str) -> Result<Map<'_>, Error> {
        // libbpf has a descriptor for these as well, but it is not that of a map.
        if self.is_absent(name) {
            return Err(refused(format_args!("map `{name}`"))("the kernel did not create it"));
        }
        let found = self.object.maps().find(|map| plain_name(map) == name);
        found.ok_or_else(|| Error::NoMap(name.into()))
    }

    /// Returns whether the kernel did not create the map.
    fn is_absent(&self, name: &str) -> bool {
        self.absent.iter().any(|absent| absent == name)
    }
}

/// Returns a program of an object by its name.
fn named<'o>(object: &'o mut Object, program: &str) -> Result<ProgramMut<'o>, Error> {
    let found = object.progs_mut().find(|it| it.name().to_str() == Some(program));
    found.ok_or_else(|| Error::NoProgram(program.into()))
}

impl Target for Kernel {
    fn run_into(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        departure: &mut Departure,
    ) -> Result<(), Error> {
        let found = named(&mut self.object, program)?;
        let context = Context::of(arrival);
        let (mut before, mut after) = (context.to_bytes(), [0; CONTEXT_BYTES]);
        let run = found.test_run(ProgramInput {
            context_in: Some(&mut before),
            context_out: Some(&mut after),
            data_in: Some(arrival.bytes),
            data_out: Some(&mut self.packet),
            repeat: 1,
            ..ProgramInput::default()
        });
        let run =
            run.map_err(refused(format_args!("{program} on {} bytes", arrival.bytes.len())))?;
        departure.verdict = run.return_value;
        let length = run.data.map_or(0, |all| all.len());
        // The output begins with the metadata; the context has the offset of the packet.
        let (metadata, bytes) =
            self.packet[..length].split_at(Context::start_of_packet(after).min(length));
        departure.metadata.clear();
        departure.metadata.extend_from_slice(metadata);
        departure.bytes.clear();
        departure.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn update_with(
        &mut self,
        map: &str,
        key: &[u8],
        value: &[u8],
        flags: u64,
    ) -> Result<(), Error> {
        let found = self.map(map)?;
        let flags = MapFlags::from_bits_retain(flags);
        let result = if found.map_type().is_percpu() {
            let processors = libbpf_rs::num_possible_cpus();
            let values = vec![value.to_vec(); processors.map_err(refused("counting processors"))?];
            found.update_percpu(key, &values, flags)
        } else {
            found.update(key, value, flags)
        };
        result.map_err(refused(format_args!("updating {map}")))
    }

    fn delete(&mut self, map: &str, key: &[u8]) -> Result<(), Error> {
        self.map(map)?.delete(key).map_err(refused(format_args!("deleting in {map}")))
    }

    fn lookup(&mut self, map: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let found = self.map(map)?;
        let value = contents::lookup(&found, key, self.processor);
        value.map_err(refused(format_args!("looking up in {map}")))
    }

    fn push(&mut self, map: &str, value: &[u8]) -> Result<(), Error> {
        let found = self.map(map)?;
        found.update(&[], value, MapFlags::ANY).map_err(refused(format_args!("pushing to {map}")))
    }

    fn put_inside(&mut self, outer: &str, key: &[u8], inner: &str) -> Result<(), Error> {
        let inside = self.map(inner)?.as_fd().as_raw_fd().to_ne_bytes();
        let found = self.map(outer)?;
        let result = found.update(key, &inside, MapFlags::ANY);
        result.map_err(refused(format_args!("putting {inner} into {outer}")))
    }

    fn put_program(&mut self, map: &str, key: &[u8], program: &str) -> Result<(), Error> {
        let put = self.object.progs().find(|it| it.name().to_str() == Some(program));
        let put = put.ok_or_else(|| Error::NoProgram(program.into()))?;
        let descriptor = put.as_fd().as_raw_fd().to_ne_bytes();
        let result = self.map(map)?.update(key, &descriptor, MapFlags::ANY);
        result.map_err(refused(format_args!("putting {program} into {map}")))
    }

    fn maps(&self) -> Vec<String> {
        // libbpf's map of kernel configuration values does not belong to the program.
        let all = self.object.maps().map(|map| plain_name(&map));
        all.filter(|name| name != ".kconfig").collect()
    }

    fn contents(&mut self, map: &str) -> Result<Contents, Error> {
        if self.is_absent(map) {
            return Ok(Contents::Opaque);
        }
        let found = self.map(map)?;
        contents::read(&found, self.processor).map_err(refused(format_args!("reading {map}")))
    }
}

impl Context {
    /// Creates the context of an arriving packet.
    fn of(arrival: &Arrival<'_>) -> Self {
        Self {
            data_end: arrival.bytes.len() as u32,
            ingress_ifindex: arrival.ingress_ifindex,
            rx_queue_index: arrival.rx_queue_index,
            ..Self::default()
        }
    }

    fn to_bytes(&self) -> [u8; CONTEXT_BYTES] {
        let fields = [
            self.data,
            self.data_end,
            self.data_meta,
            self.ingress_ifindex,
            self.rx_queue_index,
            self.egress_ifindex,
        ];
        let mut bytes = [0; CONTEXT_BYTES];
        for (place, field) in bytes.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }

    /// Returns the offset of the packet from the start of its metadata, in bytes.
    fn start_of_packet([a, b, c, d, ..]: [u8; CONTEXT_BYTES]) -> usize {
        u32::from_ne_bytes([a, b, c, d]) as usize
    }
}

/// Returns the name of a map in the source. A map of variables is named like its section; libbpf
/// prefixes that with the object's name.
fn plain_name(map: &Map<'_>) -> String {
    plain(&map.name().to_string_lossy()).to_owned()
}

/// As `plain_name`, for a name that libbpf returned.
fn plain(name: &str) -> &str {
    name.find('.').map_or(name, |at| &name[at..])
}

fn refused<E: Display>(what: impl Display) -> impl FnOnce(E) -> Error {
    move |error| Error::Refused { what: what.to_string(), reason: error.to_string() }
}

/// Pins the calling thread to its current processor and returns the number of that processor.
fn stay_on_one_processor() -> io::Result<usize> {
    // SAFETY: the call has no arguments.
    let processor = unsafe { libc::sched_getcpu() };
    let processor = usize::try_from(processor).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: a set is plain memory, for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is initialised; numbers beyond its end panic.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the call reads the set within the size given.
    let result =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 { Ok(processor) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compile, compiler};
    use freeport_testbed::skip;
    use std::path::Path;

    /// Compiles a program of the repository.
    fn compiled(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/xdp");
        freeport_testbed::object(&folder.join(name), compiler())
    }

    #[track_caller]
    fn loaded(name: &str) -> Option<Kernel> {
        let object = compiled(name);
        match Kernel::refusal() {
            Some(reason) => {
                skip(reason);
                None
            }
            None => Some(Kernel::load(&object).expect("the verifier takes it")),
        }
    }

    #[test]
    fn a_packet_comes_back_with_its_metadata_and_what_the_maps_hold() {
        let Some(mut kernel) = loaded("metadata.bpf.c") else { return };
        let bytes: Vec<u8> = (0..60).collect();
        let arrival = Arrival { bytes: &bytes, ingress_ifindex: 0, rx_queue_index: 0 };
        let departure = kernel.run("annotate", &arrival).expect("a packet that fits");
        assert_eq!((departure.verdict, departure.bytes.as_slice()), (2, bytes.as_slice()));
        assert_eq!(departure.metadata.len(), 16);
        assert_eq!(departure.metadata[4..8], 1u32.to_ne_bytes());
        let Contents::Entries(variables) = kernel.contents(".bss").expect("it is there") else {
            panic!("variables are an entry");
        };
        let values: Vec<u8> = variables.into_values().flatten().collect();
        assert_eq!(values.iter().filter(|&&byte| byte != 0).count(), 1, "one packet was numbered");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let Some(mut kernel) = loaded("xdp1.bpf.c") else { return };
        let bytes = [0; 60];
        let arrival = Arrival { bytes: &bytes, ingress_ifindex: 0, rx_queue_index: 0 };
        let error = kernel.run("nothing", &arrival).expect_err("no such program");
        assert_eq!(error.to_string(), "no program nothing in the object");
        let error = kernel.update("nothing", &[], &[]).expect_err("no such map");
        assert_eq!(error.to_string(), "no map nothing in the object");
        let short = Arrival { bytes: &bytes[..13], ..arrival };
        let error = kernel.run("drop", &short).expect_err("too short");
        assert!(error.to_string().starts_with("drop on 13 bytes: "), "{error}");
    }

    #[test]
    fn what_the_verifier_says_is_in_the_error() {
        if let Some(reason) = Kernel::refusal() {
            return skip(reason);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("bad.bpf.c");
        let text = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
            SEC(\"xdp\") int bad(struct xdp_md *context)\n\
            { return *(char *)(long)context->data; }\n";
        std::fs::write(&source, text).expect("written");
        let object = compile(&source).expect("it is C");
        let error = Kernel::load(&object).err().expect("no check of the length");
        assert!(error.to_string().contains("invalid access to packet"), "{error}");
    }
}
