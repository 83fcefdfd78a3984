// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv serve` as a child process, on ports that the system chooses.

use freeport_testbed::wait_until;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

/// A running server; dropping it kills the process.
pub struct KvServer {
    child: Child,
    /// Lines after the one about its start.
    output: BufReader<ChildStdout>,
    /// The line about its start.
    pub ready: String,
}

impl KvServer {
    /// Starts a server with clients of both protocols, and more options.
    pub fn start(more: &[&str]) -> Self {
        let ports = ["--port", "0", "--memcached-port", "0", "--json"];
        Self::with(&[&ports[..], more].concat())
    }

    /// Starts a server for clients of Redis only, with more options.
    pub fn start_node(more: &[&str]) -> Self {
        Self::with(&[&["--port", "0", "--json"], more].concat())
    }

    /// Starts a server with just these options, and waits until it is ready.
    pub fn with(options: &[&str]) -> Self {
        let mut command = command(&[&["kv", "serve"], options].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut ready = String::new();
        output.read_line(&mut ready).expect("it can be read");
        assert!(ready.ends_with('\n'), "{options:?}: {:?}", child.wait());
        Self { child, output, ready }
    }

    pub fn pid(&self) -> i32 {
        self.child.id().try_into().expect("a process number")
    }

    /// The first address for clients of `"resp"` or `"memcached"`, of a server that said it in
    /// JSON.
    pub fn address(&self, protocol: &str) -> SocketAddr {
        let said: Value = serde_json::from_str(&self.ready).expect("JSON");
        assert_eq!(said["event"], "ready", "{said}");
        said[protocol][0].as_str().expect("an address").parse().expect("an address")
    }

    pub fn port(&self, protocol: &str) -> String {
        self.address(protocol).port().to_string()
    }

    /// Runs `freeport kv cli` with an input.
    pub fn cli(&self, arguments: &[&str], input: &str) -> Output {
        let server = self.address("resp").to_string();
        output_of(&[&["kv", "cli", "--server", &server], arguments].concat(), input)
    }

    /// The output of `freeport kv cli` for a command that succeeds.
    pub fn reply(&self, arguments: &[&str]) -> String {
        let output = self.cli(arguments, "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is passed, and the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Waits for its end; it prints nothing more until then.
    pub fn ended(mut self) -> ExitStatus {
        wait_until("the server ends", || self.child.try_wait().expect("it is a child").is_some());
        let mut line = String::new();
        assert_eq!(self.output.read_line(&mut line).expect("it can be read"), 0, "{line}");
        self.child.wait().expect("it is a child")
    }
}

impl Drop for KvServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(arguments);
    command
}

/// Runs the command with an input to its end.
pub fn output_of(arguments: &[&str], input: &str) -> Output {
    run_with(command(arguments), input)
}

/// Runs a program with an input to its end.
pub fn run_with(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // One that reads no input may have ended.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it is a child")
}
