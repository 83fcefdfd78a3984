// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rounds of a trial: a server starts, its keys are compared with what the clients know, the
//! clients write, and the server is killed. Kills also come while it recovers and while it writes
//! its log anew.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use freeport_kv_protocol::resp::Value;

use super::explain::{Knowledge, explain};
use super::process::{Launch, Process};
use super::reading::{Reading, array, ask, now_ms, read};
use super::step::{COUNTERS, Maker, Request, Step, counter, prefix};
use super::writing::Writer;
use crate::client::Client;

const CLIENTS: usize = 5;
/// Keys that never change: they make a recovery and a new log take a while.
const BALLAST: usize = 3000;
const BALLAST_BYTES: usize = 500;

/// A server that is killed again and again.
pub struct Trial {
    pub launch: Launch,
    pub rounds: u64,
    pub seed: u64,
    /// Called with the folder after each kill, to show that the comparison can fail.
    pub after_kill: fn(&Path),
}

/// Counts of a trial.
#[derive(Debug, Default, PartialEq)]
pub struct Totals {
    pub acknowledged: u64,
    /// Requests without a reply at a kill.
    pub unknown: u64,
    pub kills: u64,
    pub kills_of_recoveries: u64,
    pub new_logs: u64,
}

/// Runs all rounds, and compares after the last one too.
///
/// # Errors
/// The server has lost a write, or has something that nobody wrote.
///
/// # Panics
/// The server does not start, ends by itself, or replies wrongly.
pub fn run(trial: &Trial) -> Result<Totals, String> {
    let mut random = Rng::with_seed(trial.seed);
    let has_functions = trial.launch.program.has_functions();
    let writer = |client| Writer::new(Maker::new(client, has_functions), trial.seed);
    let mut writers: Vec<_> = (0..CLIENTS).map(writer).collect();
    let mut known: Vec<Knowledge> = vec![];
    let mut is_ordered = true;
    let mut counters = [0; COUNTERS];
    let mut totals = Totals::default();
    for round in 0..=trial.rounds {
        let began_ms = now_ms();
        let begin = Instant::now();
        let launch = trial.launch.next(&mut random);
        let mut process = launch.begin();
        let place = || format!("seed {}, round {round}", trial.seed);
        let address = process.ready().unwrap_or_else(|error| panic!("{}: {error}", place()));
        let recovery = begin.elapsed();
        match round {
            0 => write_ballast(address),
            _ => compare(address, (&known, is_ordered), &mut writers, &mut counters)
                .map_err(|error| format!("{}: {error}", place()))?,
        }
        if round == trial.rounds {
            break;
        }
        is_ordered = launch.program.is_ordered();
        let moment = Moment::choose(&mut random, round);
        let killed = write_until_killed(process, address, began_ms, &mut writers, moment);
        let (acknowledged, now_known) =
            killed.unwrap_or_else(|error| panic!("{}: {error}", place()));
        known = now_known;
        totals.kills += 1;
        totals.acknowledged += acknowledged;
        totals.unknown += known.iter().map(|one| one.unknown.len() as u64).sum::<u64>();
        totals.new_logs += u64::from(moment.new_log_at.is_some());
        (trial.after_kill)(&trial.launch.folder);
        for _ in 0..round % 2 + random.u64(..2) {
            let process = trial.launch.next(&mut random).begin();
            thread::sleep(recovery.mul_f64(random.f64()));
            drop(process);
            totals.kills_of_recoveries += 1;
        }
    }
    Ok(totals)
}

fn write_ballast(address: SocketAddr) {
    let mut client = Client::connect(address);
    for number in 0..BALLAST {
        let (key, text) = ballast(number);
        assert_eq!(ask(&mut client, &["SET", &key, &text]), Value::Status(b"OK".to_vec()));
    }
}

fn ballast(number: usize) -> (String, String) {
    (format!("ballast:{number}"), format!("{number:-<BALLAST_BYTES$}"))
}

/// When a server is killed.
#[derive(Clone, Copy)]
struct Moment {
    /// Number of replies after which the server is asked to write its log anew.
    new_log_at: Option<u64>,
    /// Number of replies after which it is killed, and a time in addition.
    kill_at: u64,
    pause: Duration,
}

impl Moment {
    fn choose(random: &mut Rng, round: u64) -> Self {
        let kill_at = random.u64(1..2000);
        let before = [kill_at, 100][usize::from(random.bool())];
        let new_log_at = kill_at.saturating_sub(random.u64(..before)).max(1);
        let writes_new_log = round.is_multiple_of(2) || random.bool();
        let pause = Duration::from_micros(random.u64(..3000));
        Self { new_log_at: writes_new_log.then_some(new_log_at), kill_at, pause }
    }
}

/// Has all clients write until the server is killed; returns the number of replies, and what the
/// clients know.
fn write_until_killed(
    process: Process,
    address: SocketAddr,
    began_ms: u64,
    writers: &mut [Writer],
    moment: Moment,
) -> Result<(u64, Vec<Knowledge>), String> {
    let count = AtomicU64::new(0);
    let (report, reports) = mpsc::channel();
    let known: Vec<_> = thread::scope(|scope| {
        let start = |writer| {
            let (count, report) = (&count, report.clone());
            let acknowledged = move || {
                let now = count.fetch_add(1, Ordering::Relaxed) + 1;
                if now == moment.kill_at || Some(now) == moment.new_log_at {
                    // Nobody listens after the kill.
                    let _ = report.send(now);
                }
            };
            scope.spawn(move || Writer::write(writer, address, began_ms, acknowledged))
        };
        let clients: Vec<_> = writers.iter_mut().map(start).collect();
        drop(report);
        let is_killed = reports.iter().any(|now| {
            if Some(now) == moment.new_log_at
                && let Ok(mut client) = Client::try_connect(address)
            {
                client.send("BGREWRITEAOF");
            }
            now == moment.kill_at
        });
        thread::sleep(moment.pause);
        drop(process);
        let known = clients.into_iter().map(|client| client.join().expect("no client panics"));
        let ended = (!is_killed).then(|| Err("the server has ended by itself".to_owned()));
        known.chain(ended).collect()
    });
    let known = known.into_iter().collect::<Result<_, _>>()?;
    Ok((count.into_inner(), known))
}

/// Compares the keys of a server with what clients know, and has the clients start from those keys.
fn compare(
    address: SocketAddr,
    (known, is_ordered): (&[Knowledge], bool),
    writers: &mut [Writer],
    counters: &mut [i64; COUNTERS],
) -> Result<(), String> {
    let reading = read(address);
    for (client, knowledge) in known.iter().enumerate() {
        let entries = explain(knowledge, &reading, &prefix(client), is_ordered)
            .map_err(|error| format!("client {client}: {error}"))?;
        writers[client].model.entries = entries;
    }
    for (number, before) in counters.iter_mut().enumerate() {
        *before = count(number, *before, known, address)?;
    }
    writers.iter_mut().for_each(|writer| writer.model.counted = [0; COUNTERS]);
    only_known_keys(&reading)?;
    check_ballast(address)
}

/// The value of a counter of all clients, which was `before` when they began.
fn count(
    number: usize,
    before: i64,
    known: &[Knowledge],
    address: SocketAddr,
) -> Result<i64, String> {
    let value = match ask(&mut Client::connect(address), &["INCRBY", &counter(number), "0"]) {
        Value::Integer(value) => value,
        other => return Err(format!("{}: {other:?}", counter(number))),
    };
    let is_addition = |step: &&Step| matches!(step, Step::Count { counter } if *counter == number);
    let of_request = |request: &Request| request.steps().iter().filter(is_addition).count();
    let unknown: usize = known.iter().flat_map(|one| &one.unknown).map(of_request).sum();
    let acknowledged: i64 = known.iter().map(|one| one.model.counted[number]).sum();
    let seen = known.iter().map(|one| one.model.seen[number]).max().unwrap_or_default();
    let least = (before + acknowledged).max(seen);
    let most = before + acknowledged + i64::try_from(unknown).expect("few");
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "{} is {value}; it was {before}, {acknowledged} additions are acknowledged, {unknown} \
         have no reply, and a client has seen {seen}",
        counter(number)
    ))
}

fn only_known_keys(reading: &Reading) -> Result<(), String> {
    let known: Vec<String> = (0..CLIENTS).map(prefix).collect();
    let counters: Vec<String> = (0..COUNTERS).map(counter).collect();
    let is_known = |key: &String| {
        known.iter().any(|prefix| key.starts_with(prefix))
            || counters.contains(key)
            || key.starts_with("ballast:")
    };
    match reading.entries.keys().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => Err(format!("nobody has written {key}")),
    }
}

fn check_ballast(address: SocketAddr) -> Result<(), String> {
    let (keys, texts): (Vec<_>, Vec<_>) = (0..BALLAST).map(ballast).unzip();
    let words: Vec<&str> = ["MGET"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let values = array(ask(&mut Client::connect(address), &words));
    let mut pairs = values.iter().zip(texts);
    match pairs.position(|(value, text)| *value != Value::Bulk(text.into())) {
        None => Ok(()),
        Some(number) => Err(format!("ballast:{number} is {:?}", values[number])),
    }
}
