// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The library and the monitor for the tests of this crate.

use freeport_monitor::{Location, Options, Server};
use freeport_testbed::preload;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

/// Returns the library: `$FREEPORT_PRELOAD`, or built from the present sources.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| match std::env::var_os("FREEPORT_PRELOAD") {
        Some(given) => given.into(),
        None => preload::library().to_owned(),
    })
}

/// Runs a monitor below `folder` until the tests end, and returns its socket's path.
pub fn monitor(folder: &Path) -> PathBuf {
    let path = folder.join("monitor.sock");
    let server = Server::new(Location::at(&path).take().unwrap(), Options::default()).unwrap();
    thread::spawn(move || {
        let (stop, _never) = std::io::pipe().unwrap();
        server.run(stop.as_fd(), &mut |_| ()).unwrap();
    });
    path
}
