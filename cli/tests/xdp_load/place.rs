// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Three hosts, each with a link to a fourth host in the middle, where the program runs.

use freeport_bench::network::{End, Host, join, until};
use freeport_port::bpf::{AttachMode, Attachment, LoadOptions, XdpProgram};
use freeport_port::namespace::interface;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Hosts beside the middle.
pub const SIDES: usize = 3;

/// The hosts, and a folder for files of the test.
pub struct Net {
    pub middle: Host,
    pub sides: Vec<Host>,
    folder: tempfile::TempDir,
}

/// The address of an outer host; addresses from 4 on are unused.
pub fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, number as u8 + 1)
}

/// The Ethernet address of the host.
pub fn mac(number: usize) -> String {
    format!("02:00:00:00:00:{:02x}", number + 1)
}

/// The interface of the middle at a link.
pub fn link(number: usize) -> String {
    format!("m{number}")
}

/// A number in the byte order of maps, in the syntax of bpftool.
pub fn word(number: u32) -> String {
    number.to_le_bytes().map(|byte| byte.to_string()).join(" ")
}

impl Net {
    /// Makes hosts with static neighbour entries, so that no ARP is needed.
    pub fn new() -> Self {
        let middle = Host::new("middle").expect("permitted");
        let sides: Vec<Host> =
            (0..SIDES).map(|number| Host::new(&format!("side {number}")).unwrap()).collect();
        for (number, side) in sides.iter().enumerate() {
            let (mac, here) = (mac(number), link(number));
            let there = format!("02:01:00:00:00:{number:02x}");
            let one = End { host: side, interface: "e0", mac: &mac };
            join(one, End { host: &middle, interface: &here, mac: &there }, 1_500).unwrap();
            side.ip(&format!("addr add {}/24 dev e0\n", address(number))).unwrap();
            know_neighbours(side, "e0", number);
        }
        Self { middle, sides, folder: tempfile::tempdir().unwrap() }
    }

    /// Enables NAPI at the outer ends of links with programs that pass everything: the kernel drops
    /// packets that are sent back or redirected to a link whose peer does not poll.
    pub fn poll(&self) -> Vec<Attachment> {
        // r0 = XDP_PASS, exit
        let code = [0x2_0000_00b7_u64, 0x95].map(u64::to_le_bytes).concat();
        let options = LoadOptions { name: "pass", license: "GPL", has_fragments: true };
        let put = || {
            let program = XdpProgram::load(&code, options)?;
            Ok(program.attach(interface("e0")?, AttachMode::Native)?)
        };
        self.sides.iter().map(|side| side.within(put).unwrap()).collect()
    }

    /// Interface index of the middle at a link.
    pub fn ifindex(&self, number: usize) -> u32 {
        self.middle.within(|| Ok(interface(&link(number))?)).unwrap()
    }

    /// Compiles a program, or functions of one if there is no such file.
    pub fn object(&self, name_or_text: &str) -> PathBuf {
        let bytes = if name_or_text.contains('{') {
            let source = self.folder.path().join("text.bpf.c");
            std::fs::write(&source, name_or_text).unwrap();
            freeport_xdp::compile(&source).unwrap()
        } else {
            let programs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../programs/xdp"));
            let source = programs.join(format!("{name_or_text}.bpf.c"));
            freeport_testbed::object(&source, freeport_xdp::compiler())
        };
        let object = self.folder.path().join("program.o");
        std::fs::write(&object, bytes).unwrap();
        object
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, run in the middle.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
        command.args(words).env("FREEPORT_RUN", self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Output of a command that ends. A command that runs although it should have failed is
    /// stopped, so that the test fails instead of hanging.
    pub fn output(&self, words: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["120", env!("CARGO_BIN_EXE_freeport")]);
        command.args(words).env("FREEPORT_RUN", self.folder.path()).stdin(Stdio::null());
        self.middle.within(|| Ok(command.output()?)).unwrap()
    }

    /// Output of a command, which must succeed.
    pub fn reported(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Errors of a command, which must fail.
    pub fn complaint(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Starts a program under the name `it`, and waits until it answers.
    pub fn load(&self, object: &Path, words: &[&str]) -> Loaded<'_> {
        let mut command = self.command(&["xdp", "load"]);
        command.arg(object).args(["--name", "it"]).args(words);
        self.begin(command)
    }

    /// The same with a whole command, which sets that name.
    pub fn begin(&self, mut command: Command) -> Loaded<'_> {
        let said = self.file("said");
        let log = std::fs::File::create(&said).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let child = self.middle.start(&mut command).unwrap();
        let mut loaded = Loaded { net: self, child: Some(child) };
        let answers = || match self.output(&["xdp", "map", "list", "--to", "it"]) {
            output if output.status.success() => Some(()),
            _ => match loaded.child.as_mut().unwrap().try_wait().unwrap() {
                None => None,
                Some(status) => panic!("{status}: {}", std::fs::read_to_string(&said).unwrap()),
            },
        };
        until("the program answers", answers).unwrap();
        loaded
    }
}

/// Adds static neighbour entries for all peers of a host.
pub fn know_neighbours(host: &Host, interface: &str, itself: usize) {
    for number in (0..8).filter(|number| *number != itself) {
        let (address, mac) = (address(number), mac(number));
        host.ip(&format!("neigh add {address} lladdr {mac} dev {interface}\n")).unwrap();
    }
}

/// A running program; dropping it kills the process.
pub struct Loaded<'n> {
    net: &'n Net,
    child: Option<Child>,
}

impl Loaded<'_> {
    pub fn map(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.net.reported(&[&["xdp", "map"][..], &words, &["--to", "it"]].concat())
    }

    pub fn map_json(&self, words: &str) -> Value {
        serde_json::from_str(&self.map(&format!("{words} --json"))).unwrap()
    }

    pub fn stats(&self) -> Value {
        let reported = self.net.reported(&["xdp", "stats", "--json", "--to", "it"]);
        serde_json::from_str(&reported).unwrap()
    }

    /// Number of packets of a port with a verdict.
    pub fn verdict(&self, port: usize, verdict: &str) -> u64 {
        let stats = self.stats();
        let count = &stats["ports"][port]["verdicts"][verdict]["packets"];
        count.as_u64().unwrap_or_else(|| panic!("{verdict}: {stats}"))
    }

    /// Its standard error until now.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.net.file("said")).unwrap()
    }

    pub fn process(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: i32) {
        let process = i32::try_from(self.process()).unwrap();
        // SAFETY: no memory is passed, and the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(process, signal) }, 0);
    }

    /// Waits for its end; returns whether it succeeded, and its standard error.
    pub fn ended(mut self) -> (bool, String) {
        let status = self.child.take().unwrap().wait().unwrap();
        (status.success(), self.said())
    }

    /// Stops it by `freeport stop`.
    pub fn stop(self) -> String {
        self.net.reported(&["stop", "--to", "it"]);
        let (is_well, said) = self.ended();
        assert!(is_well, "{said}");
        said
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
