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
    World::new(&profile, 2, false, 1)
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
