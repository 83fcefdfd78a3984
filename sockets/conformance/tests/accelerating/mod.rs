// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What accelerates in the tests of this crate.

use freeport_monitor::{Location, Options, Server};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

/// The library, as it is now: cargo builds it for no test by itself.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("FREEPORT_PRELOAD") {
            return given.into();
        }
        let test = std::env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--package", "freeport-preload"]);
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success(), "the library cannot be built");
        folder.join("libfreeport_preload.so")
    })
}

/// Runs a monitor below `folder` until the tests end, and says where it listens.
pub fn monitor(folder: &Path) -> PathBuf {
    let path = folder.join("monitor.sock");
    let server = Server::new(Location::at(&path).take().unwrap(), Options::default()).unwrap();
    thread::spawn(move || {
        let (stop, _never) = std::io::pipe().unwrap();
        server.run(stop.as_fd(), &mut |_| ()).unwrap();
    });
    path
}
