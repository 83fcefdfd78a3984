// SPDX-License-Identifier: Apache-2.0 OR MIT
//! nginx in front of PHP (`php-fpm`), with wrk as the client of a page that is generated for each
//! request: three programs in a row, all or none of them accelerated.

use super::nginx;
use super::{Cell, Site};
use anyhow::{Context, Result};
use std::process::Command;

/// Name of the page.
pub const PAGE: &str = "page.php";
/// Connections to the backend that each process of nginx keeps.
const KEPT: usize = 2;
/// Processes that generate the page. Each serves one connection until that is closed, so there must
/// be more of them than kept connections.
const MAKERS: usize = 8;

/// Returns the name of the program, which contains its version; `None` if it is not installed.
pub fn program() -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let of_folder = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let found = path.split(':').flat_map(of_folder).filter(|name| name.starts_with("php-fpm"));
    found.max()
}

/// Returns the command of the backend, which listens on `port`.
pub fn backend(new: impl Fn(&str) -> Command, site: &Site<'_>, port: u16) -> Result<Command> {
    let folder = site.folder.join("site");
    std::fs::create_dir_all(&folder)?;
    let page = "<?php $sum = 0; for ($i = 0; $i < 100; $i++) $sum += $i; echo \"sum $sum\";";
    std::fs::write(folder.join(PAGE), page)?;
    let configuration = format!(
        "[global]\nerror_log = /dev/stderr\ndaemonize = no\n[www]\nlisten = 127.0.0.1:{port}\n\
         user = {user}\npm = static\npm.max_children = {MAKERS}\n",
        user = user_name(),
    );
    let file = site.folder.join("php-fpm.conf");
    std::fs::write(&file, configuration).context("php-fpm's configuration")?;
    let mut command = new(&program().context("php-fpm is not installed")?);
    command.args(["--nodaemonize", "--allow-to-run-as-root", "--fpm-config"]).arg(file).arg("-n");
    Ok(command)
}

/// Returns the command of the server in front of it, which keeps its connections to the backend.
pub fn server(
    new: impl Fn(&str) -> Command,
    site: &Site<'_>,
    cell: &Cell,
    backend: u16,
) -> Result<Command> {
    let page = site.folder.join("site").join(PAGE);
    let outside = format!("    upstream php {{ server 127.0.0.1:{backend}; keepalive {KEPT}; }}\n");
    let inside = format!(
        "location /{PAGE} {{ fastcgi_pass php; fastcgi_keep_conn on; fastcgi_param \
         SCRIPT_FILENAME {page}; fastcgi_param REQUEST_METHOD GET; }}",
        page = page.display(),
    );
    nginx::configured(new, site, cell, &outside, &inside)
}

/// Returns the name of the bench's user.
fn user_name() -> String {
    // SAFETY: the call returns a number.
    let own = unsafe { libc::geteuid() };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_own = |line: &&str| line.split(':').nth(2).and_then(|it| it.parse().ok()) == Some(own);
    users.lines().find(is_own).and_then(|line| line.split(':').next()).unwrap_or("root").to_owned()
}
