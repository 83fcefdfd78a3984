// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registries in etcd: members that stop, die and come back, lost answers, users, and contents that
//! others have changed.

use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use freeport_kv_cluster::{
    NodeId, Registry, RegistryError, Revision, State, SwapError, boot_time, open,
};
use freeport_testbed::etcd::EtcdServer;
use freeport_testbed::wait::PATIENCE;
use freeport_testbed::{skip, wait_until};
use tempfile::TempDir;

use crate::fixture::{LONG, etcd_url, presence, start_etcd, topology, wait_for};
use crate::patient::Patient;
use crate::proxy::Proxy;

/// A running etcd and its registry; none if etcd is not installed.
#[track_caller]
fn registry() -> Option<(TempDir, EtcdServer, Arc<dyn Registry>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_etcd(folder.path())?;
    let registry = open(&etcd_url(&server)).expect("a URL");
    Some((folder, server, registry))
}

/// Runs etcdctl on a server.
fn control(server: &EtcdServer, arguments: &[&str]) {
    let endpoint = format!("--endpoints=http://{}", server.address());
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").arg(endpoint).args(arguments);
    wait_until("etcdctl succeeds", || {
        let output = command.output().expect("etcdctl is installed with etcd");
        output.status.success()
    });
}

fn is_unavailable<T>(result: &Result<T, RegistryError>) -> bool {
    matches!(result, Err(RegistryError::Unavailable(_)))
}

#[test]
fn calls_end_while_etcd_is_stopped() {
    let Some((_folder, server, registry)) = registry() else { return };
    let node = NodeId::random();
    let patient = Patient(registry.clone());
    let first = patient.swap(None, None, &topology(1)).expect("there is none");
    let seen = patient.read().expect("it answers");
    // Once with kept connections, once without.
    for session in 0..2 {
        server.pause();
        let begin = Instant::now();
        assert!(is_unavailable(&registry.read()));
        assert!(is_unavailable(&registry.wait(&seen, Duration::from_secs(3))));
        assert!(is_unavailable(&registry.keep(node, &presence(session, 0), LONG)));
        assert!(is_unavailable(&registry.leave(node, session)));
        let swapped = registry.swap(Some(first), None, &topology(2));
        assert!(
            matches!(swapped, Err(SwapError::Unknown(_) | SwapError::Failed(_))),
            "{swapped:?}"
        );
        assert!(begin.elapsed() < PATIENCE, "no call waits for etcd");
        server.resume();
        patient.keep(node, &presence(session, 0), LONG).expect("nobody else has it");
        patient.leave(node, session).expect("it answers");
    }
}

#[test]
fn contents_survive_a_killed_etcd() {
    let Some((_folder, mut server, registry)) = registry() else { return };
    let node = NodeId::random();
    let patient = Patient(registry.clone());
    for round in 1..4 {
        let expected = patient.read().expect("it answers").topology.map(|stored| stored.revision);
        let revision = patient.swap(expected, None, &topology(round)).expect("nobody else swaps");
        patient.keep(node, &presence(1, round), LONG).expect("nobody else has it");
        let before = patient.wait(&State::default(), PATIENCE).expect("it answers");
        server.kill();
        assert!(is_unavailable(&registry.read()));
        assert!(is_unavailable(&registry.wait(&before, PATIENCE)));
        let swapped = registry.swap(Some(revision), None, &topology(round));
        assert!(matches!(swapped, Err(SwapError::Failed(_))), "{swapped:?}");
        server.restart();
        assert_eq!(patient.read(), Ok(before.clone()));
        let other = patient.swap(Some(revision), Some(node), &topology(round));
        assert_eq!(other, Err(SwapError::Present), "the lease lasts");
        // The watch begins again.
        thread::scope(|scope| {
            let waiting = scope.spawn(|| patient.wait(&before, PATIENCE));
            patient.leave(node, 1).expect("it answers");
            let state = waiting.join().expect("no panic").expect("it answers");
            assert!(state.nodes.is_empty());
        });
    }
}

#[test]
fn a_lease_lasts_its_time_across_a_restart() {
    let Some((_folder, mut server, registry)) = registry() else { return };
    let (node, time) = (NodeId::random(), Duration::from_secs(3));
    let patient = Patient(registry);
    let begin = boot_time();
    patient.keep(node, &presence(1, 0), time).expect("nobody has it");
    server.kill();
    server.restart();
    // Without any look in between, a restart that forgets the lease would not be noticed.
    let first = loop {
        match patient.swap(None, Some(node), &topology(1)) {
            Ok(revision) => break revision,
            Err(error) => assert_eq!(error, SwapError::Present),
        }
        assert!(boot_time() - begin < PATIENCE, "the lease does not end");
        thread::sleep(Duration::from_millis(10));
    };
    assert!(boot_time() - begin >= time, "{first:?}");
}

#[test]
fn a_swap_whose_answer_is_lost_is_unknown() {
    let Some((_folder, server, direct)) = registry() else { return };
    let proxy = Proxy::start(server.address());
    let registry = open(&format!("etcd://{}/test", proxy.address())).expect("a URL");
    let direct = Patient(direct);
    proxy.lose_answers(true);
    let (one, node) = (topology(1), NodeId::random());
    let swapped = registry.swap(None, None, &one);
    assert!(matches!(swapped, Err(SwapError::Unknown(_))), "{swapped:?}");
    wait_until("the request takes effect", || {
        let stored = direct.read().expect("it answers").topology;
        stored.is_some_and(|stored| stored.topology == one)
    });
    // Another member or a repetition helps calls that may be executed twice.
    let both = format!("etcd://{},{}/test", proxy.address(), server.address());
    let both = open(&both).expect("a URL");
    Patient(both.clone()).keep(node, &presence(1, 5), LONG).expect("one member answers");
    assert_eq!(direct.read().expect("it answers").nodes[&node], presence(1, 5));
    proxy.lose_answers(false);
    Patient(registry).keep(node, &presence(1, 6), LONG).expect("it is the same session");
    Patient(both).leave(node, 1).expect("it answers");
    assert!(direct.read().expect("it answers").nodes.is_empty());
}

#[test]
fn waiting_costs_few_requests() {
    let Some((_folder, server, direct)) = registry() else { return };
    let proxy = Proxy::start(server.address());
    let registry = Patient(open(&format!("etcd://{}/test", proxy.address())).expect("a URL"));
    let (direct, node) = (Patient(direct), NodeId::random());
    direct.keep(node, &presence(1, 0), LONG).expect("nobody has it");
    let seen = registry.read().expect("it answers");
    let (before, begin) = (proxy.requests(), Instant::now());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| registry.wait(&seen, PATIENCE));
        // Positions reach the waiting thread, and are no news.
        for position in 1..100 {
            direct.keep(node, &presence(1, position), LONG).expect("it is its own");
        }
        direct.leave(node, 1).expect("it answers");
        waiting.join().expect("no panic").expect("it answers")
    });
    // A read and a watch, and a comparison only after a second of silence.
    let (requests, time) = (proxy.requests() - before, begin.elapsed());
    let limit = 10 + 2 * time.as_secs() as usize;
    assert!(requests <= limit, "{requests} requests for 100 changes in {time:?}");
}

#[test]
fn calls_succeed_while_most_members_live() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut servers) = EtcdServer::start_cluster(folder.path(), 3) else {
        return skip("etcd is not installed");
    };
    let addresses: Vec<_> = servers.iter().map(|server| server.address().to_string()).collect();
    let registry = open(&format!("etcd://{}/test", addresses.join(","))).expect("a URL");
    wait_for(&*registry);
    let (patient, node) = (Patient(registry.clone()), NodeId::random());
    // A swap whose result is unknown may take effect later, so the present revision is looked for.
    let swap = || {
        let mut revision = None;
        wait_until("the topology is replaced", || {
            let stored = patient.read().expect("it answers").topology;
            let expected = stored.map(|stored| stored.revision);
            revision = patient.swap(expected, None, &topology(1)).ok();
            revision.is_some()
        });
        revision
    };
    for at in 0..3 {
        servers[at].kill();
        patient.keep(node, &presence(1, 0), LONG).expect("two members live");
        let revision = swap();
        servers[(at + 1) % 3].kill();
        let swapped = registry.swap(revision, None, &topology(3));
        let is_failure = matches!(swapped, Err(SwapError::Failed(_) | SwapError::Unknown(_)));
        assert!(is_failure, "one member is no majority: {swapped:?}");
        servers[at].restart();
        servers[(at + 1) % 3].restart();
        assert!(swap() > revision);
    }
    // A member that is stopped costs time, and no failure.
    servers[1].pause();
    let before = patient.read().expect("it answers");
    swap();
    assert!(patient.wait(&before, PATIENCE).expect("it answers").is_news(&before));
    servers[1].resume();
}

#[test]
fn a_key_that_others_removed_is_put_again() {
    let Some((_folder, server, registry)) = registry() else { return };
    let (patient, node) = (Patient(registry), NodeId::random());
    patient.keep(node, &presence(1, 0), LONG).expect("nobody has it");
    let seen = patient.read().expect("it answers");
    control(&server, &["del", "--prefix", "/test/nodes/"]);
    let state = patient.wait(&seen, PATIENCE).expect("it answers");
    assert!(state.nodes.is_empty());
    patient.keep(node, &presence(1, 1), LONG).expect("nobody has it");
    assert!(patient.read().expect("it answers").nodes.contains_key(&node));
}

#[test]
fn contents_of_another_version_are_refused() {
    let Some((_folder, server, registry)) = registry() else { return };
    let node = NodeId::random();
    let patient = Patient(registry);
    let refused = |result: Result<State, RegistryError>, place: &str| {
        let error = result.expect_err("it is of another version");
        let text = error.to_string();
        assert!(matches!(error, RegistryError::Contents(_)), "{text}");
        assert!(text.contains(place), "{text}");
    };
    let seen = patient.read().expect("it answers");
    control(&server, &["put", "/test/topology", "{\"format\": 2}"]);
    refused(patient.read(), "/test/topology: format 2 of another version");
    refused(patient.wait(&seen, PATIENCE), "/test/topology: format 2 of another version");
    control(&server, &["put", "/test/topology", "nothing of ours"]);
    refused(patient.read(), "/test/topology: expected");
    control(&server, &["del", "/test/topology"]);
    control(&server, &["put", "/test/nodes/me", "{\"format\": 1}"]);
    refused(patient.read(), "/test/nodes/me: an id has 40 hexadecimal digits");
    control(&server, &["del", "/test/nodes/me"]);
    control(&server, &["put", "/test/others", "who knows"]);
    assert_eq!(patient.read(), Ok(State::default()), "other keys belong to others");
    control(&server, &["put", &format!("/test/nodes/{node}"), "{\"format\": 2}"]);
    let error = patient.keep(node, &presence(1, 0), LONG);
    assert!(matches!(error, Err(RegistryError::Contents(_))), "{error:?}");
}

#[test]
fn registries_with_other_prefixes_are_apart() {
    let Some((_folder, server, registry)) = registry() else { return };
    let other = open(&format!("etcd://{}/test/more", server.address())).expect("a URL");
    let (registry, other, node) = (Patient(registry), Patient(other), NodeId::random());
    let first = registry.swap(None, None, &topology(1)).expect("there is none");
    other.swap(None, None, &topology(1)).expect("there is none");
    other.keep(node, &presence(1, 0), LONG).expect("nobody has it");
    let state = registry.read().expect("it answers");
    assert!(state.nodes.is_empty());
    assert_eq!(state.topology.map(|stored| stored.revision), Some(first));
    let waited = registry.wait(&State::default(), PATIENCE).expect("it answers");
    assert!(waited.nodes.is_empty());
}

#[test]
fn a_user_is_authenticated() {
    let Some((_folder, mut server, open_registry)) = registry() else { return };
    wait_for(&*open_registry);
    control(&server, &["user", "add", "root:top"]);
    control(&server, &["user", "grant-role", "root", "root"]);
    control(&server, &["user", "add", "node:p@ss"]);
    control(&server, &["role", "add", "nodes"]);
    control(&server, &["role", "grant-permission", "nodes", "readwrite", "/mine/", "--prefix"]);
    control(&server, &["user", "grant-role", "node", "nodes"]);
    control(&server, &["auth", "enable"]);
    let address = server.address();
    let as_user = |user: &str, prefix: &str| {
        open(&format!("etcd://{user}{address}/{prefix}")).expect("a URL")
    };
    // Until the error is the expected one: a loaded etcd may have others before.
    let fails_with = |registry: Arc<dyn Registry>, reason: &str| {
        wait_until(reason, || match registry.read() {
            Err(error) => error.to_string().contains(reason),
            Ok(_) => panic!("{reason} is expected"),
        });
    };
    fails_with(as_user("", "mine"), "etcd wants a user: etcd://USER:PASSWORD@HOST:PORT/PREFIX");
    fails_with(as_user("node:wrong@", "mine"), "invalid user ID or password");
    fails_with(as_user("node:p%40ss@", "yours"), "grant the user all keys");

    let (registry, node) = (as_user("node:p%40ss@", "mine"), NodeId::random());
    let patient = Patient(registry);
    for round in 0..2 {
        let expected = patient.read().expect("it answers").topology.map(|stored| stored.revision);
        let seen = patient.read().expect("it answers");
        patient.swap(expected, None, &topology(round)).expect("nobody else swaps");
        let state = patient.wait(&seen, PATIENCE).expect("it answers");
        assert!(state.is_news(&seen));
        patient.keep(node, &presence(1, round), LONG).expect("nobody else has it");
        // etcd forgets its sessions.
        server.kill();
        server.restart();
    }
    assert!(patient.read().expect("it answers").nodes.contains_key(&node));
}

#[test]
fn names_are_resolved_and_reasons_name_each_member() {
    let Some((_folder, server, _)) = registry() else { return };
    let port = server.address().port();
    let registry = open(&format!("etcd://localhost:{port}/test")).expect("a URL");
    Patient(registry).swap(None, None, &topology(1)).expect("there is none");
    let closed = freeport_testbed::port::free_port();
    let url = format!("etcd://127.0.0.1:{closed},no-host.invalid:{port}");
    let registry = open(&url).expect("a URL");
    let error = registry.swap(Some(Revision(1)), None, &topology(2)).expect_err("nobody is there");
    assert!(matches!(error, SwapError::Failed(_)), "nothing was sent: {error:?}");
    let text = error.to_string();
    for part in [format!("127.0.0.1:{closed}: "), format!("no-host.invalid:{port}: ")] {
        assert!(text.contains(&part), "{text}");
    }
}
