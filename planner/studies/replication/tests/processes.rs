// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All places as processes, which are killed at random moments.

use freeport_study_replication::{history, node};
use freeport_study_verbs::Place;
use freeport_testbed::wait::wait_until;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const BACKUPS: u16 = 2;

/// Output of the host.
#[derive(Default)]
struct Printed {
    /// The last acknowledged write of each file.
    last: BTreeMap<u32, u64>,
    /// Number of acknowledgements.
    count: u64,
    /// Chunks, bytes, and bytes on the network, by alternatives.
    carried: BTreeMap<String, [u64; 3]>,
}

impl Printed {
    /// Takes a line. One that is cut, because the process was killed, is none of these.
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
        match (words.as_slice(), numbers.as_slice()) {
            ([_, _], [file, last]) => {
                self.last.insert(*file as u32, *last);
                self.count += 1;
            }
            ([alternative, _, _, _], [chunks, raw, network]) => {
                self.carried.insert(alternative.to_string(), [*chunks, *raw, *network]);
            }
            _ => {}
        }
    }
}

/// Processes of all places.
struct Cluster {
    folder: tempfile::TempDir,
    running: BTreeMap<Place, Child>,
    printed: Arc<Mutex<Printed>>,
    readers: Vec<JoinHandle<()>>,
    seed: u64,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let places: Vec<Place> = self.running.keys().copied().collect();
        places.into_iter().for_each(|place| self.kill(place));
    }
}

impl Cluster {
    fn command(&mut self, place: Place) -> Command {
        self.seed += 1;
        let mut command = Command::new(env!("CARGO_BIN_EXE_freeport-study-replication-node"));
        command.arg(self.folder.path()).args([place.to_string(), BACKUPS.to_string()]);
        command.arg(self.seed.to_string());
        command
    }

    fn begin(&mut self, place: Place) {
        let mut command = self.command(place);
        let output = if place == Place::Host { Stdio::piped() } else { Stdio::null() };
        let mut child = command.stdout(output).spawn().expect("the program was built");
        if let Some(output) = child.stdout.take() {
            let printed = Arc::clone(&self.printed);
            self.readers.push(thread::spawn(move || {
                let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
                for line in lines {
                    let line = String::from_utf8_lossy(&line);
                    printed.lock().expect("no reader panics").take(&line);
                }
            }));
        }
        self.running.insert(place, child);
    }

    fn kill(&mut self, place: Place) {
        let Some(mut child) = self.running.remove(&place) else { return };
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn count(&self) -> u64 {
        self.printed.lock().expect("no reader panics").count
    }

    fn log(&self, place: Place) -> Vec<u8> {
        let path = self.folder.path().join(format!("{place}.log"));
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

const PLACES: [Place; 4] = [Place::Peer(0), Place::Peer(1), Place::Soc, Place::Host];

impl Cluster {
    fn new(seed: u64) -> Self {
        let mut cluster = Self {
            folder: tempfile::tempdir().expect("a folder"),
            running: BTreeMap::new(),
            printed: Arc::default(),
            readers: vec![],
            seed,
        };
        PLACES.into_iter().for_each(|place| cluster.begin(place));
        cluster
    }

    /// Ends the host's writers, compares all logs, and returns what the host has printed.
    fn end(mut self) -> Printed {
        fs::write(node::end_file(self.folder.path()), "").expect("a file");
        let host = self.running.get_mut(&Place::Host).expect("it was begun");
        wait_until("the host ends", || host.try_wait().expect("a child").is_some());
        let status = host.try_wait().expect("a child").expect("it has ended");
        assert!(status.success(), "{status}");
        PLACES.into_iter().for_each(|place| self.kill(place));
        self.readers.drain(..).for_each(|reader| reader.join().expect("it does not panic"));
        let logs = [Place::Host, Place::Peer(0), Place::Peer(1)].map(|place| self.log(place));
        let printed = std::mem::take(&mut *self.printed.lock().expect("no reader panics"));
        assert_eq!(printed.last.len(), node::FILES as usize);
        let chunk_bytes = node::options(BACKUPS).chunk_bytes;
        history::check(&logs, &printed.last, chunk_bytes).unwrap();
        printed
    }

    /// Waits until a number of further writes is acknowledged.
    fn wait_for(&self, writes: u64) {
        let goal = self.count() + writes;
        wait_until("writes are acknowledged", || self.count() >= goal);
    }
}

/// Kills places while the host writes, lets them begin anew, and compares all logs in the end.
fn kills(kills: u32, seed: u64) {
    let mut cluster = Cluster::new(seed);
    let mut random = fastrand::Rng::with_seed(seed);
    for number in 0..kills {
        cluster.wait_for(random.u64(1..8));
        // At any moment between two acknowledgements.
        thread::sleep(Duration::from_micros(random.u64(0..2000)));
        let place = PLACES[number as usize % PLACES.len()];
        cluster.kill(place);
        let other = PLACES[random.usize(0..PLACES.len())];
        if random.u8(0..3) == 0 && other != place {
            cluster.kill(other);
            cluster.begin(other);
        }
        cluster.begin(place);
    }
    cluster.end();
}

#[test]
fn processes_use_all_alternatives_and_save_network_by_compression() {
    let cluster = Cluster::new(5);
    cluster.wait_for(100);
    let carried = cluster.end().carried;
    for (alternative, [chunks, raw, network]) in &carried {
        assert!(*chunks > 0, "{carried:?}");
        assert_eq!(network < raw, alternative != "A3", "{carried:?}");
    }
    assert_eq!(carried.len(), 3);
}

#[test]
fn a_dozen_kills_of_processes_lose_nothing() {
    kills(12, 1);
}

#[test]
#[ignore = "long: two hundred kills of processes"]
fn two_hundred_kills_of_processes_lose_nothing() {
    kills(200, 2);
}

/// If a backup has lost its log, the host ends with the reason, whichever backup it is.
#[test]
fn a_host_ends_with_the_reason_of_its_writers() {
    let mut cluster = Cluster::new(9);
    cluster.wait_for(100);
    for lost in [Place::Peer(1), Place::Peer(0)] {
        PLACES.into_iter().for_each(|place| cluster.kill(place));
        let file = cluster.folder.path().join(format!("{lost}.log"));
        fs::remove_file(&file).expect("the backup had a file");
        PLACES[..3].iter().for_each(|place| cluster.begin(*place));
        let mut host = cluster.command(Place::Host);
        host.stdout(Stdio::null()).stderr(Stdio::piped());
        cluster.running.insert(Place::Host, host.spawn().expect("the program was built"));
        let host = cluster.running.get_mut(&Place::Host).expect("it was begun");
        wait_until("the host ends", || host.try_wait().expect("a child").is_some());
        assert!(!host.wait().expect("a child").success());
        let stderr = host.stderr.take().expect("it is a pipe");
        let error = std::io::read_to_string(stderr).expect("a text");
        let expected = format!("{lost} has 0 chunks, and has held ");
        assert!(error.contains(&expected) && error.contains("copy the file"), "{error}");
    }
}

/// A process that is given nonsense says what it needs.
#[test]
fn wrong_arguments_are_explained() {
    let program = env!("CARGO_BIN_EXE_freeport-study-replication-node");
    let run = |arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().expect("it was built");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("a text")
    };
    assert!(run(&[]).contains("give a folder"));
    let folder = Path::new("/nowhere").display().to_string();
    assert!(run(&[&folder, "moon", "2", "1"]).contains("moon is no place"));
    assert!(run(&[&folder, "soc", "0", "1"]).contains("backups is 0, and at least 1"));
    assert!(run(&[&folder, "soc", "2", "1"]).contains("/nowhere"));
}
