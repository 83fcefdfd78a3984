// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A disk that is really full: a small file system in memory, in namespaces of its own. Writes are
//! refused and reads are answered until there is room again, and nothing acknowledged is lost.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use freeport_kv_protocol::resp::Value;
use freeport_testbed::{skip, wait_until};

use super::process::{Launch, Program};
use super::reading::ask;
use crate::client::Client;

/// Bytes of the file system, and of the file that takes most of them.
const DISK_BYTES: usize = 48 << 20;
const FILLER_BYTES: usize = 30 << 20;
/// Mounts the file system at the first argument. The namespaces end with this process, and the
/// process ends with its input.
const HOLD: &str = "mount -t tmpfs -o size=$2 tmpfs \"$1\" && echo mounted && exec cat >/dev/null";

/// A small disk, which other processes reach below `/proc`.
struct Disk {
    holder: Child,
    folder: PathBuf,
    _place: tempfile::TempDir,
}

impl Disk {
    /// None if this process may not make namespaces; then the test is skipped.
    fn new() -> Option<Self> {
        let place = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", HOLD, "sh"]);
        command.arg(place.path()).arg(DISK_BYTES.to_string());
        let holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut holder) = holder else {
            skip("there is no unshare");
            return None;
        };
        let mut line = String::new();
        let output = holder.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it can be read");
        let root = format!("/proc/{}/root", holder.id());
        let inside = place.path().strip_prefix("/").expect("it is absolute");
        let folder = Path::new(&root).join(inside);
        let disk = Self { holder, folder, _place: place };
        if line != "mounted\n" {
            skip("this process may not make namespaces, or not mount in them");
            return None;
        }
        Some(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn value(number: usize) -> String {
    format!("{number:-<10000}")
}

fn set(client: &mut Client, number: usize) -> Result<(), String> {
    match ask(client, &["SET", &format!("key:{number}"), &value(number)]) {
        Value::Status(_) => Ok(()),
        Value::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
        other => panic!("{other:?}"),
    }
}

/// All acknowledged values are there, and the refused one is not.
fn check(address: SocketAddr, count: usize) {
    let mut client = Client::connect(address);
    for number in 0..count {
        let got = ask(&mut client, &["GET", &format!("key:{number}")]);
        assert_eq!(got, Value::Bulk(value(number).into()), "key:{number}");
    }
    assert_eq!(ask(&mut client, &["DBSIZE"]).to_string(), format!("(integer) {count}"));
}

/// Fills the disk, frees it, and restarts the server.
fn fill(program: Program, policy: &'static str) {
    let Some(disk) = Disk::new() else { return };
    let filler = disk.folder.join("filler");
    std::fs::write(&filler, vec![1; FILLER_BYTES]).expect("there is room for it");
    let folder = disk.folder.join("data");
    std::fs::create_dir(&folder).expect("it can be made");
    let launch = Launch { program, policy: Some(policy), folder, follows: None };

    let mut process = launch.begin();
    let address = process.ready().expect("it starts");
    let mut client = Client::connect(address);
    let limit = (DISK_BYTES - FILLER_BYTES) / 10_000 + 1;
    let refused = (0..=limit).find_map(|number| Some((number, set(&mut client, number).err()?)));
    let (count, reason) = refused.expect("the disk is full at some time");
    assert!(reason.starts_with("MISCONF Errors writing to the AOF file"), "{reason}");
    assert!(reason.contains("No space left on device"), "{reason}");
    assert!(count > 0);
    check(address, count);

    std::fs::remove_file(filler).expect("it is there");
    wait_until("writes work again", || set(&mut client, count).is_ok());
    set(&mut client, count + 1).expect("and go on to work");
    drop(process);
    let mut process = launch.begin();
    check(process.ready().expect("it starts again"), count + 2);
}

#[test]
fn redis_refuses_writes_while_the_disk_is_full() {
    if super::has_redis() {
        fill(Program::Redis, "no");
    }
}

#[test]
fn writes_are_refused_while_the_disk_is_full() {
    for policy in ["always", "everysec"] {
        fill(Program::Freeport { workers: 2 }, policy);
    }
}
