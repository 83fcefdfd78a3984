// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every library element behaves the same as native code and in the interpreter, on random valid
//! and invalid packets of 64 to 9,000 bytes, and on random records, fed in random pieces and with
//! random room at the outputs. Each element is connected to the outer ends as in its golden cases.

use crate::replay::{self, Driver, Traffic};
use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_golden::{Golden, run};
use freeport_ir::{Bits, Direction, Item};
use freeport_port::trace::{Sizes, Trace};
use freeport_testbed::cache::Cache;
use freeport_testbed::is_long;
use freeport_tests::oracle::seed;
use freeport_tests::{repository, side_by_side};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Number of ways to connect an element in a usual run; a long one tries all.
const WAYS: usize = 1;

#[test]
fn library_elements_run_natively_as_in_the_interpreter() {
    let first = seed(7);
    let goldens = goldens_below(&repository().join("elements"));
    assert!(!goldens.is_empty());
    let mut ways = BTreeSet::new();
    for path in goldens {
        let text = std::fs::read_to_string(&path).expect("goldens can be read");
        let golden = Golden::parse(&text).expect("goldens are well formed");
        let joined: BTreeSet<_> = golden
            .cases
            .iter()
            .map(run::configuration)
            .map(|how| how.expect("it is joined"))
            .collect();
        // An element with all parameters takes the compiler longest; its goldens cover all of them.
        let count = if is_long() { joined.len() } else { WAYS };
        ways.extend(joined.into_iter().take(count).map(|how| (path.clone(), how)));
    }
    let ways: Vec<(PathBuf, String)> = ways.into_iter().collect();
    side_by_side(&ways, |at, (path, configuration)| {
        let mut random = Rng::with_seed(first.wrapping_add(at as u64));
        for _ in 0..if is_long() { 100 } else { 1 } {
            check(path, configuration, &mut random);
        }
    });
}

fn goldens_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder).expect("the library can be read") {
        let path = entry.expect("the library can be read").path();
        if path.is_dir() {
            files.extend(goldens_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "test") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn check(path: &Path, configuration: &str, random: &mut Rng) {
    let options = Options { library: vec![repository().join("elements")] };
    let compiled = match compile_text("alone.cnp", configuration, &options) {
        Ok(compiled) => compiled,
        Err(failure) => panic!("{}: {}", path.display(), failure.render()),
    };
    let program = compiled.program;
    let cache = Cache::of("native");
    let image = replay::image(&program, &replay::options(cache.path()));
    let input = program.graph.endpoints.iter().map(|endpoint| match endpoint.direction {
        Direction::Into => traffic(random, endpoint.item),
        Direction::OutOf => Traffic::default(),
    });
    let mut driver = Driver::new(&image, input.collect());
    driver.run_in_pieces(random, 100);
    let (oracles, execution) = driver.graph.take_recording();
    driver.check_entered(&program, &execution);
    let out = replay::check(&program, oracles, &execution);
    let place = path.display();
    assert_eq!(driver.out, out, "{place}: what the host got is not what was sent");
    let firings: u64 = execution.counters.iter().map(|counters| counters.firings).sum();
    // A source sends only on request, and here it gets none.
    let is_fed = program.graph.endpoints.iter().any(|it| it.direction == Direction::Into);
    assert!(firings > 1000 || !is_fed, "{place}: only {firings} firings");
}

/// Returns packets, or records with some arbitrary bytes, the others mostly 0 or 1.
fn traffic(random: &mut Rng, item: Item) -> Traffic {
    match item {
        Item::Flit => packets(random, 200),
        Item::Packet { .. } => packets(random, 1_100),
        Item::Bits(width) => {
            let byte = |random: &mut Rng| match random.u8(..4) {
                0 => random.u8(..),
                _ => random.u8(..2),
            };
            let record = |_| (0..width.div_ceil(8)).map(|_| byte(random)).collect::<Vec<u8>>();
            let records = (0..2_000).map(record).map(|it| Bits::from_le_bytes(width, &it));
            Traffic { packets: vec![], records: records.collect() }
        }
    }
}

fn packets(random: &mut Rng, frames: usize) -> Traffic {
    let sizes = [Sizes::Uniform(64..=9_000), Sizes::InternetMix][random.usize(0..2)].clone();
    let (bad_checksum_permille, truncated_permille) = (200, 200);
    let seed = random.u64(..);
    let trace = Trace {
        seed,
        frames,
        sizes,
        bad_checksum_permille,
        truncated_permille,
        ..Trace::default()
    };
    let mut packets: Vec<_> = trace.generate().into_iter().map(|frame| frame.bytes).collect();
    // Truncated at every byte of the headers, including lengths without a complete header.
    let whole = packets[0].clone();
    packets.extend((1..whole.len().min(100)).map(|length| whole[..length].to_vec()));
    Traffic { packets, records: vec![] }
}
