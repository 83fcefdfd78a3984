// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hello: users, databases, and the worker that a client wants.

use freeport_kv_protocol::batch::{Hello, HelloReply, Operation, Status};
use freeport_testbed::wait_until;

use super::client::{WAYS, Way, served};

#[test]
fn a_client_chooses_its_worker_and_its_database() {
    for way in WAYS {
        let served = served(3);
        let mut resp = served.resp();
        for worker in 0..3 {
            let mut client = served.client(way);
            let hello = Hello { database: 2, worker: Some(worker), ..Hello::default() };
            let payload_limit = 64 << 20;
            let expected = HelloReply { worker, workers: 3, payload_limit, token: 0 };
            assert_eq!(client.hello(&hello), Ok(expected));
            client.put(b"a", b"1");
            client.put(b"b", b"2");
            assert_eq!(client.get(b"a"), Some(b"1".to_vec()));
        }
        assert_eq!(resp.call("EXISTS a b"), "(integer) 0");
        assert_eq!(resp.call("SELECT 2"), "OK");
        assert_eq!(resp.call("EXISTS a b"), "(integer) 2");
        wait_until("only one client is left", || served.server.census().connections == 1);
        assert_eq!(resp.call("CLIENT LIST").matches("id=").count(), 1);
    }
}

/// The packet with the hello has more operations, and further packets follow it at once.
#[test]
fn packets_behind_a_hello_move_with_the_connection() {
    for way in WAYS {
        let served = served(4);
        for worker in [3, 2, 1, 0] {
            let mut client = served.client(way);
            let value = Hello { worker: Some(worker), ..Hello::default() }.value();
            let key = format!("key{worker}");
            let first =
                client.send(&[Operation::hello(b"", &value), Operation::put(key.as_bytes(), b"1")]);
            let second = client.send(&[Operation::get(key.as_bytes())]);
            let replies = client.replies(first);
            let reply = replies[0].1.as_deref().and_then(HelloReply::decode);
            assert_eq!(reply.map(|reply| reply.worker), Some(worker));
            assert_eq!(replies[1], (Status::Done, None));
            assert_eq!(client.replies(second), [(Status::Done, Some(b"1".to_vec()))]);
        }
    }
}

#[test]
fn a_wrong_hello_says_what_is_wrong() {
    let served = served(2);
    let error = |hello: Hello<'_>| {
        let mut client = served.client(Way::Tcp);
        let error = client.hello(&hello).expect_err("it is refused");
        // The connection remains as it was.
        client.put(b"a", b"1");
        error
    };
    let failed = |text: &str| (Status::Failed, text.to_owned());
    let worker = Hello { worker: Some(2), ..Hello::default() };
    assert_eq!(error(worker), failed("ERR there is no worker 2; the last is 1"));
    let database = Hello { database: 16, ..Hello::default() };
    assert_eq!(error(database), failed("ERR there is no database 16; the last is 15"));
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.".to_owned();
    let user = Hello { user: b"ann", password: b"x", ..Hello::default() };
    assert_eq!(error(user), (Status::Denied, wrong));
    let mut client = served.client(Way::Fabric);
    client.put(b"a", b"1");
    let late = "ERR hello has to be the first operation of a connection";
    assert_eq!(client.hello(&Hello::default()), Err(failed(late)));
    let (status, _) = served.client(Way::Tcp).one(Operation::hello(b"", b"abc"));
    assert_eq!(status, Status::Failed);
}

#[test]
fn operations_need_a_password_if_the_default_user_has_one() {
    for workers in [1, 3] {
        let served = served(workers);
        let mut resp = served.resp();
        assert_eq!(resp.call("CONFIG SET requirepass secret"), "OK");
        let mut client = served.client(Way::Tcp);
        let replies = client.run(&[Operation::get(b"a"), Operation::put(b"b", b"1")]);
        assert!(replies.iter().all(|(status, _)| *status == Status::Denied), "{replies:?}");
        let mut client = served.client(Way::Fabric);
        let hello = Hello { password: b"secret", ..Hello::default() };
        assert!(client.hello(&hello).is_ok());
        client.put(b"a", b"1");
        assert_eq!(resp.call("AUTH secret"), "OK");
        assert_eq!(resp.call("EXISTS a b"), "(integer) 1");
    }
}

#[test]
fn a_user_with_few_rights_gets_only_those() {
    for workers in [1, 3] {
        let served = served(workers);
        let mut resp = served.resp();
        assert_eq!(resp.call("ACL SETUSER ann on >pw +get +set %R~r* ~w*"), "OK");
        let mut client = served.client(Way::Tcp);
        let hello = Hello { user: b"ann", password: b"pw", ..Hello::default() };
        assert!(client.hello(&hello).is_ok());
        let replies = client.run(&[
            Operation::put(b"w1", b"1"),
            Operation::put(b"r1", b"1"),
            Operation::get(b"w1"),
            Operation::delete(b"w1"),
            Operation::get(b"other"),
            Operation::get(b"r1"),
        ]);
        let statuses: Vec<Status> = replies.iter().map(|(status, _)| *status).collect();
        use Status::{Denied, Done, NotFound};
        assert_eq!(statuses, [Done, Denied, Done, Denied, Denied, NotFound]);
        let text = |at: usize| String::from_utf8_lossy(replies[at].1.as_ref().expect("a text"));
        assert_eq!(text(1), "NOPERM No permissions to access a key");
        let expected = "NOPERM User ann has no permissions to run the 'del' command";
        assert_eq!(text(3), expected);
        assert!(resp.ask("ACL LOG").contains("other"));
        // A user who is removed is disconnected.
        assert_eq!(resp.call("ACL DELUSER ann"), "(integer) 1");
        assert!(client.is_closed());
    }
}
