// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What accelerates in the tests of this crate.

use freeport_monitor::{Location, Options, Server};
use freeport_testbed::preload;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

/// The library: `$FREEPORT_PRELOAD`, else as the sources are now.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| match std::env::var_os("FREEPORT_PRELOAD") {
        Some(given) => given.into(),
        None => preload::library().to_owned(),
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
