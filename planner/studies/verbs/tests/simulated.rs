// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places on the simulated machine.

use crate::conformance::{Command, MEMORY_BYTES, Stage, conform, play, start};
use freeport_plan_model::profile::built_in;
use freeport_plan_model::{Load, Operation, Path, Request, simulate};
use freeport_study_verbs::simulated::{Simulated, World};
use freeport_study_verbs::{Counted, Fault, Memory, Place, Stable, Verbs, Way};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

fn world() -> World {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    World::new(&profile, 3, false, 1)
}

/// Runs a task of a place until it has ended, and returns its result.
fn result<T: 'static>(
    world: &mut World,
    place: &Simulated,
    task: impl Future<Output = T> + 'static,
) -> T {
    let result: Rc<RefCell<Option<T>>> = Rc::default();
    let into = Rc::clone(&result);
    place.spawn(async move { *into.borrow_mut() = Some(task.await) });
    assert!(world.run_until(|_| result.borrow().is_some()), "the task waits forever");
    result.take().expect("it has ended")
}

/// Runs a case that holds on every machine.
fn perform<F: Future<Output = ()> + 'static>(case: impl FnOnce(Simulated, Stage) -> F) {
    let mut world = world();
    let here = world.begin(Place::Client(0), MEMORY_BYTES);
    let stage = Stage::default();
    let has_ended = start(&here, case(here.clone(), stage.clone()));
    loop {
        let mut is_busy = false;
        let is_over = world.run_until(|world| {
            is_busy |= stage.obey(|command| match command {
                Command::Begin(place, memory_bytes, role) => {
                    let place = world.begin(place, memory_bytes);
                    place.spawn(play(place.clone(), role));
                }
                Command::Kill(place) => world.kill(place),
            });
            has_ended.get()
        });
        if is_over {
            return;
        }
        assert!(is_busy, "the case waits forever");
    }
}

conform!(perform);

#[test]
fn memory_of_another_place_is_written_and_read_in_the_time_of_its_path() {
    let mut world = world();
    let host = world.begin(Place::Host, 4096);
    let client = Counted::new(world.begin(Place::Client(0), 0));
    let (counted, inner) = (client.clone(), world.begin(Place::Client(1), 0));
    let data: Vec<u8> = (0..64).collect();
    let expected = data.clone();
    let read = result(&mut world, &inner, async move {
        client.write(Place::Host.at(128), data, Way::Nic).await?;
        let begin = client.now();
        let read = client.read(Place::Host.at(128), 64, Way::Nic).await?;
        Ok::<_, Fault>((read, client.now() - begin))
    });
    let (data, time) = read.expect("the host is alive");
    assert_eq!(data, expected);
    assert_eq!(host.memory().load(128, 64), expected);
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let request = Request::new(Path::Host, Operation::Read, 64);
    let median = simulate(&profile, &[Load::single(request)], 1).expect("a read").flows[0].median;
    assert!((time.as_nanos() as f64 - median).abs() < 2.0, "{time:?} {median}");
    let counts = counted.counts();
    assert_eq!((counts.reads, counts.writes, counts.calls), (1, 1, 0));
    assert_eq!(counts.round_trips(), 2);
}

#[test]
fn messages_are_answered_and_occupy_a_core() {
    let mut world = world();
    let soc = world.begin(Place::Soc, 64);
    let client = world.begin(Place::Client(0), 0);
    let server = soc.clone();
    soc.spawn(async move {
        loop {
            let call = server.receive().await;
            server.work(Duration::from_micros(1)).await;
            let mut answer = call.message.clone();
            answer.reverse();
            call.answer(answer);
        }
    });
    let asking = client.clone();
    let answer =
        result(&mut world, &client, async move { asking.call(Place::Soc, vec![1, 2, 3]).await });
    assert_eq!(answer, Ok(vec![3, 2, 1]));
    assert!(world.now() > Duration::from_micros(5));
}

#[test]
fn dead_places_are_noticed_and_begin_anew_with_their_file() {
    let mut world = world();
    let soc = world.begin(Place::Soc, 64);
    let host = world.begin(Place::Host, 0);
    soc.memory().store(0, &[7]);
    let writer = soc.clone();
    result(&mut world, &soc, async move { writer.stable().append(vec![1; 10]).await })
        .expect("it works");
    let writer = soc.clone();
    soc.spawn(async move {
        let _ = writer.stable().append(vec![2; 10]).await;
    });
    let asking = host.clone();
    let waiting: Rc<RefCell<Option<_>>> = Rc::default();
    let into = Rc::clone(&waiting);
    host.spawn(async move {
        *into.borrow_mut() = Some(asking.call(Place::Soc, vec![]).await);
    });
    // In the middle of the append.
    let steps = world.steps();
    world.run_until(|world| world.steps() == steps);
    world.kill(Place::Soc);
    assert!(world.run_until(|_| waiting.borrow().is_some()));
    assert_eq!(waiting.take(), Some(Err(Fault::Gone(Place::Soc))));
    let asking = host.clone();
    let read = async move { asking.read(Place::Soc.at(0), 8, Way::Nic).await };
    assert_eq!(result(&mut world, &host, read), Err(Fault::Gone(Place::Soc)));
    let soc = world.begin(Place::Soc, 64);
    assert_eq!(soc.memory().load(0, 1), [0]);
    let contents = soc.stable().read().expect("it works");
    assert_eq!(contents, [[1; 10].as_slice(), [2; 5].as_slice()].concat(), "half of the append");
    let asking = host.clone();
    let read = async move { asking.read(Place::Soc.at(60), 8, Way::Nic).await };
    let fault = result(&mut world, &host, read).expect_err("too far");
    assert_eq!(fault.to_string(), "soc has 64 B of memory, and not 8 B at 60");
}

/// Data longer than a word may be torn by a write at the same time, and words are not.
#[test]
fn concurrent_writes_tear_long_data() {
    let mut world = world();
    world.begin(Place::Host, 64);
    let (first, second) = (world.begin(Place::Client(0), 0), world.begin(Place::Client(1), 0));
    first.clone().spawn(async move {
        for round in 1..=100_u8 {
            first.write(Place::Host.at(0), vec![round; 64], Way::Nic).await.expect("alive");
        }
    });
    let reader = second.clone();
    let torn = result(&mut world, &second, async move {
        let mut torn = 0;
        for _ in 0..100 {
            let data = reader.read(Place::Host.at(0), 64, Way::Nic).await.expect("alive");
            torn += u32::from(data.first() != data.last());
            assert!(data[..8].iter().all(|byte| *byte == data[0]), "{data:?}");
        }
        torn
    });
    assert!(torn > 0);
}

#[test]
fn equal_seeds_give_equal_times() {
    let run = || {
        let mut world = world();
        world.begin(Place::Soc, 1 << 20);
        for number in 0..2 {
            let client = world.begin(Place::Client(number), 0);
            for task in 0..10 {
                let client = client.clone();
                client.clone().spawn(async move {
                    for at in 0..50 {
                        let from = Place::Soc.at(at * 4096 + task * 64);
                        client.read(from, 64, Way::Nic).await.expect("alive");
                    }
                });
            }
        }
        assert!(!world.run_until(|_| false));
        let outcome = world.outcome();
        assert_eq!(outcome.links[0].1.bytes, 2 * 10 * 50 * 64);
        (world.now(), outcome)
    };
    assert_eq!(run(), run());
}

/// Operations of a place on another one: a read and a write by each way, and a call.
async fn faults(here: Simulated, to: Place) -> Vec<Option<Fault>> {
    let mut faults = vec![];
    for way in [Way::Nic, Way::Dma] {
        faults.push(here.read(to.at(0), 8, way).await.err());
        faults.push(here.write(to.at(0), vec![1; 8], way).await.err());
    }
    faults.push(here.call(to, vec![]).await.err());
    faults
}

/// Begins all places, which answer calls, and returns the operations that fail between two.
fn faults_between(is_plain: bool, from: Place, to: Place) -> Vec<Option<Fault>> {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let mut world = World::new(&profile, 2, is_plain, 1);
    let [client, peer] = [Place::Client, Place::Peer].map(|place| [place(0), place(1)]);
    let begun = [client, peer, [Place::Host, Place::Soc]].concat().into_iter().map(|place| {
        let here = world.begin(place, 64);
        let server = here.clone();
        here.spawn(async move {
            loop {
                server.receive().await.answer(vec![]);
            }
        });
        here
    });
    let begun: Vec<Simulated> = begun.collect();
    let here = begun.into_iter().find(|here| here.place() == from).expect("it was begun");
    result(&mut world, &here.clone(), faults(here, to))
}

#[test]
fn places_without_a_connection_say_so() {
    use Place::{Client, Host, Peer, Soc};
    let none = |from, to| {
        let fault = |operation| Some(Fault::NoPath { from, to, operation });
        ["read", "write", "read", "write", "call"].map(fault).to_vec()
    };
    let all = vec![None; 5];
    for is_plain in [false, true] {
        assert_eq!(faults_between(is_plain, Client(0), Client(1)), none(Client(0), Client(1)));
        for (from, to) in [(Client(0), Host), (Host, Client(0)), (Peer(0), Peer(1))] {
            assert_eq!(faults_between(is_plain, from, to), all, "{from} {to}");
        }
        for place in [Client(0), Host, Soc, Peer(0)] {
            assert_eq!(faults_between(is_plain, place, place), all, "{place}");
        }
    }
    for (from, to) in [(Client(1), Soc), (Soc, Client(1)), (Soc, Host), (Host, Soc), (Peer(0), Soc)]
    {
        assert_eq!(faults_between(false, from, to), all, "{from} {to}");
        assert_eq!(faults_between(true, from, to), none(from, to));
    }
    for from in [Host, Soc] {
        let read = Some(Fault::NoPath { from, to: Peer(1), operation: "read" });
        let written = vec![read.clone(), None, read, None, None];
        assert_eq!(faults_between(false, from, Peer(1)), written, "other machines are written to");
        assert_eq!(faults_between(true, from, Peer(1)), none(from, Peer(1)));
    }
    assert_eq!(
        none(Client(1), Soc)[4].as_ref().expect("a fault").to_string(),
        "client-1 has no call to soc"
    );
}

#[test]
#[should_panic(expected = "client-3, but 3 machines of clients")]
fn a_machine_of_clients_that_does_not_exist_cannot_begin() {
    world().begin(Place::Client(3), 0);
}

#[test]
fn an_endless_sleep_does_not_end_first() {
    let mut world = world();
    let place = world.begin(Place::Host, 0);
    for _ in 0..3 {
        let sleeping = place.clone();
        place.spawn(async move { sleeping.sleep(Duration::MAX).await });
    }
    let waiting = place.clone();
    result(&mut world, &place, async move { waiting.sleep(Duration::from_secs(1)).await });
    assert_eq!(world.now(), Duration::from_secs(1));
}
