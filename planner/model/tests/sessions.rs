// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Machines that a driver uses step by step.

use freeport_plan_model::profile::built_in;
use freeport_plan_model::route::{Step, ns};
use freeport_plan_model::simulator::Session;
use freeport_plan_model::{Load, Operation, Path, Profile, Request, Side, bounds, simulate};

fn bluefield2() -> Profile {
    built_in("bluefield2").expect("the default").expect("a profile")
}

/// Time of steps after each other in nanoseconds, without contention.
fn time(steps: &[Step]) -> f64 {
    let profile = bluefield2();
    let mut session = Session::new(&profile, 1, false, 1);
    for step in steps {
        let begun = session.begin(*step, 0).expect("the path has it");
        assert_eq!(session.next(), Some(begun));
    }
    session.now() as f64 / 1000.0
}

#[test]
fn a_step_takes_as_long_as_the_request_of_a_load() {
    let profile = bluefield2();
    for path in Path::ALL.into_iter().filter(|path| *path != Path::Rnic) {
        for operation in Operation::ALL.into_iter().filter(|operation| path.has(*operation)) {
            let request = Request::new(path, operation, 64);
            let load = simulate(&profile, &[Load::single(request)], 1).expect("it has it");
            let step = Step::Request(request);
            // Cores that post and answer are busy with the doorbell meanwhile.
            let doorbell = if path.requester() == Side::Soc { profile.soc.doorbell } else { 0.0 };
            let expected = load.flows[0].median + doorbell;
            let found = time(&[step]);
            assert!((found - expected).abs() < 1.0, "{path} {operation}: {found} {expected}");
        }
    }
}

#[test]
fn a_message_with_its_work_and_answer_is_a_send() {
    let profile = bluefield2();
    for path in [Path::Host, Path::Soc, Path::HostToSoc, Path::SocToHost] {
        let side = path.target();
        let echo = if side == Side::Soc { profile.soc.echo } else { profile.host.echo };
        let whole = time(&[Step::Request(Request::new(path, Operation::Send, 64))]);
        let parts = time(&[
            Step::Message { path, bytes: 64 },
            Step::Work { side, time: ns(echo) },
            Step::Answer { path, bytes: 64 },
        ]);
        assert!((whole - parts).abs() < 1.0, "{path}: {whole} {parts}");
    }
}

/// The rate of a driver that keeps many requests in flight does not exceed the shares of a step.
#[test]
fn drivers_are_limited_by_the_shares_of_their_steps() {
    let profile = bluefield2();
    for (path, operation, bytes) in [
        (Path::Host, Operation::Read, 64),
        (Path::Soc, Operation::Read, 64),
        (Path::Soc, Operation::Write, 64),
        (Path::SocToPeer, Operation::Write, 65_536),
        (Path::HostToPeer, Operation::Write, 65_536),
    ] {
        let step = Step::Request(Request::new(path, operation, bytes));
        let mut session = Session::new(&profile, 11, false, 1);
        let in_flight = if bytes > 1024 { 64 } else { 1000 };
        for client in 0..in_flight {
            session.begin(step, client);
        }
        let goal = 5000;
        for done in 0..goal {
            session.next().expect("something is in flight");
            session.begin(step, done);
        }
        let rate = f64::from(goal) / (session.now() as f64 / 1e6);
        let shares = bounds::step_shares(&profile, &step, 11);
        let most = shares.iter().map(|(_, share)| 1.0 / share).fold(f64::INFINITY, f64::min);
        assert!(rate < 1.001 * most, "{path} {operation}: {rate} {most}");
        assert!(rate > 0.85 * most, "{path} {operation}: {rate} {most}");
    }
}

#[test]
fn times_are_over_in_order_and_unknown_operations_do_not_begin() {
    let profile = bluefield2();
    let mut session = Session::new(&profile, 1, false, 1);
    let later = session.wait(2000);
    let sooner = session.wait(1000);
    assert_eq!(session.next(), Some(sooner));
    assert_eq!(session.next(), Some(later));
    assert_eq!(session.now(), 2000);
    assert_eq!(session.next(), None);
    let messages = Step::Message { path: Path::DmaToHost, bytes: 8 };
    assert_eq!(session.begin(messages, 0), None);
}
