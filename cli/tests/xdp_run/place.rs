// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A folder with an object and a capture, and commands on them.

use freeport_port::{Arena, PcapReceiver, PcapTransmitter, Receive, Transmit};
use freeport_testbed::skip;
use freeport_xdp::Kernel;
use freeport_xdp::traffic::{Kind, Traffic};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const KINDS: &[Kind] = &[Kind::Tcp, Kind::Udp, Kind::UdpIpv6, Kind::Other];

/// A folder with an object and a capture.
pub struct Place {
    folder: tempfile::TempDir,
    pub object: PathBuf,
}

impl Place {
    /// Makes a folder with a program of the repository.
    pub fn with_program(name: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../programs/xdp");
        let source = Path::new(folder).join(format!("{name}.bpf.c"));
        Self::with_object(&freeport_testbed::object(&source, freeport_xdp::compiler()))
    }

    /// Makes a folder with a program of these functions.
    pub fn with_text(text: &str) -> Self {
        let source = tempfile::Builder::new().suffix(".bpf.c").tempfile().unwrap();
        let start = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
            char program_license[] SEC(\"license\") = \"GPL\";\n";
        fs::write(source.path(), format!("{start}{text}")).unwrap();
        Self::with_object(&freeport_xdp::compile(source.path()).unwrap())
    }

    fn with_object(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let object = folder.path().join("program.o");
        fs::write(&object, bytes).unwrap();
        Self { folder, object }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes packets to a capture, at intervals of a microsecond.
    pub fn capture<'p>(&self, packets: impl IntoIterator<Item = &'p [u8]>) -> PathBuf {
        let file = self.file("in.pcap");
        let mut arena = Arena::default();
        for (at, bytes) in packets.into_iter().enumerate() {
            arena.push(bytes, bytes.len(), 1_000 * (at as u64 + 1)).unwrap();
        }
        let mut writer = PcapTransmitter::create(&file).unwrap();
        writer.transmit(arena.frames()).unwrap();
        writer.finish().unwrap();
        file
    }

    pub fn command(&self, trace: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        // Compiled code of tests does not go to the user's cache.
        command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command.args(["xdp", "run"]).arg(&self.object).arg("--trace").arg(trace).args(more);
        command
    }

    pub fn run(&self, trace: &Path, more: &[&str]) -> String {
        let output = self.command(trace, more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, trace: &Path, more: &[&str]) -> Value {
        serde_json::from_str(&self.run(trace, &[more, &["--json"]].concat())).unwrap()
    }

    pub fn failure(&self, trace: &Path, more: &[&str]) -> Output {
        let output = self.command(trace, more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{more:?}: {output:?}");
        output
    }

    pub fn complaint(&self, trace: &Path, more: &[&str]) -> String {
        String::from_utf8(self.failure(trace, more).stderr).unwrap()
    }
}

pub fn traffic(count: usize) -> Vec<Vec<u8>> {
    let mut traffic = Traffic::new(5, KINDS);
    (0..count).map(|_| traffic.next_packet().bytes).collect()
}

pub fn slices(packets: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    packets.iter().map(Vec::as_slice)
}

pub fn read(file: &Path) -> Vec<Vec<u8>> {
    let mut receiver = PcapReceiver::open(file).unwrap();
    let mut packets = vec![];
    while !receiver.is_ended() {
        let batch = receiver.receive(100).unwrap();
        packets.extend((0..batch.len()).map(|at| batch.bytes(at).to_vec()));
    }
    packets
}

/// Why parts that need the kernel are skipped, if they are.
#[track_caller]
pub fn skipped() -> bool {
    let refusal = Kernel::refusal();
    if let Some(reason) = &refusal {
        skip(reason);
    }
    refusal.is_some()
}
