// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Inspections of a folder beside the server that uses it find no damage, whatever it writes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use freeport_kv_server::inspection::read;
use freeport_kv_server::{Options, PersistenceOptions, Policy, Server};
use freeport_testbed::usual_or_long;
use freeport_testbed::wait::PATIENCE;

use crate::client::{Client, server_with};

#[test]
fn an_inspection_beside_a_server_finds_no_damage() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let persistence = PersistenceOptions { policy, ..PersistenceOptions::new(folder.into()) };
        let options = Options { workers: 2, persistence: Some(persistence), ..Options::default() };
        let server = server_with(options);
        let has_ended = AtomicBool::new(false);
        let inspected = thread::scope(|scope| {
            scope.spawn(|| write(&server, &has_ended));
            let inspected = inspect(folder);
            // Also after a failure, or the other thread would not end.
            has_ended.store(true, Ordering::Relaxed);
            inspected
        });
        assert_eq!(inspected, Ok(()), "{policy:?}");
    }
}

/// Changes keys, and has the log written anew now and then.
fn write(server: &Server, has_ended: &AtomicBool) {
    let mut client = Client::new(server);
    let text = "-".repeat(10_000);
    let mut number = 0;
    while !has_ended.load(Ordering::Relaxed) {
        (0..20).for_each(|key| client.send(&format!("SET {key} {number}{text}")));
        client.send(if number % 10 == 0 { "BGREWRITEAOF" } else { "PING" });
        (0..21).for_each(|_| drop(client.reply()));
        number += 1;
    }
}

/// Inspects a folder again and again, until the server has written snapshots meanwhile.
fn inspect(folder: &Path) -> Result<(), String> {
    let (mut least, mut first, begin) = (usual_or_long(30, 1000), None, Instant::now());
    loop {
        let inspection = read(folder, &mut |_| {}).map_err(|error| error.to_string())?;
        if let Some(place) = inspection.contents.bad_place.filter(|place| !place.is_torn()) {
            return Err(format!("{place:?}"));
        }
        let generation = inspection.contents.manifest.generation;
        least -= 1;
        if least <= 0 && generation > *first.get_or_insert(generation) + 4 {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            return Err("the server writes no snapshot".into());
        }
    }
}
