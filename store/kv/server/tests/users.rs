// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Users: what they may do, and what happens to their clients when that changes.

use std::io::Write;

use freeport_kv_server::{Options, Server};
use freeport_testbed::wait_until;

use super::client::{Client, server, server_with};

const OK: &str = "+OK\r\n";
const KEY: &str = "-NOPERM No permissions to access a key\r\n";
const CHANNEL: &str = "-NOPERM No permissions to access a channel\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

/// The refusal of a command.
fn refused(user: &str, command: &str) -> String {
    format!("-NOPERM User {user} has no permissions to run the '{command}' command\r\n")
}

/// An operator, and a client of a new user with rules.
fn with_user(server: &Server, rules: &str) -> [Client; 2] {
    let [mut operator, mut client] = std::array::from_fn(|_| Client::new(server));
    operator.check(&format!("ACL SETUSER ann on >secret {rules}"), OK);
    client.check("AUTH ann secret", OK);
    [operator, client]
}

#[test]
fn a_user_may_do_what_its_rules_say() {
    for workers in [1, 3] {
        let server = server(workers);
        let rules = "+@all -flushall -config +config|get ~a* %R~b* &news*";
        let [mut operator, mut client] = with_user(&server, rules);
        client.check("ACL WHOAMI", "$3\r\nann\r\n");
        client.check("SET a1 x", OK);
        client.check("GET b1", "$-1\r\n");
        client.check("SET b1 x", KEY);
        client.check("COPY b1 a2", ":0\r\n");
        client.check("COPY a1 b2", KEY);
        client.check("MGET a1 c", KEY);
        client.check("FLUSHALL", &refused("ann", "flushall"));
        client.check("CONFIG SET hz 5", &refused("ann", "config|set"));
        assert!(client.ask("CONFIG GET hz").starts_with('*'));
        client.check("PUBLISH news1 x", ":0\r\n");
        client.check("PUBLISH other x", CHANNEL);
        client.check("PSUBSCRIBE news?", CHANNEL);
        client.check("SUBSCRIBE other", CHANNEL);
        client.check(
            "SORT a1 BY w_*",
            "-ERR BY option of SORT denied due to insufficient ACL \
                                        permissions.\r\n",
        );
        client.check("EVAL return 1 c", KEY);
        // A client that may do everything is not concerned.
        operator.check("GET c", "$-1\r\n");
        let list = operator.ask("CLIENT LIST");
        assert!(list.contains(" user=ann ") && list.contains(" user=default "), "{list}");
    }
}

/// Requests that are sent at once are divided among workers only as far as they are allowed.
#[test]
fn requests_in_a_pipeline_are_checked_one_by_one() {
    let server = server(3);
    let [_operator, mut client] = with_user(&server, "+@all ~a*");
    let (mut pipeline, mut expected) = (String::new(), vec![]);
    for number in 0..200 {
        let (key, reply) = if number % 7 == 3 { ("b", KEY) } else { ("a", OK) };
        pipeline += &format!("SET {key}{number} x\r\n");
        expected.push(reply);
    }
    client.stream.write_all(pipeline.as_bytes()).expect("the server reads");
    for (number, reply) in expected.into_iter().enumerate() {
        assert_eq!(client.raw(), reply, "{number}");
    }
}

#[test]
fn a_change_is_followed_at_once() {
    for workers in [1, 3] {
        let server = server(workers);
        let [mut operator, mut client] = with_user(&server, "+@all ~*");
        client.check("SET a x", OK);
        for _ in 0..20 {
            operator.check("ACL SETUSER ann -get", OK);
            client.check("GET a", &refused("ann", "get"));
            operator.check("ACL SETUSER ann +get", OK);
            client.check("GET a", "$1\r\nx\r\n");
        }
        // Also by the client's own request, for those behind it.
        client.stream.write_all(b"ACL SETUSER ann -get\r\nGET a\r\n").expect("the server reads");
        assert_eq!(client.raw(), OK);
        assert_eq!(client.raw(), refused("ann", "get"));
        operator.check(
            "ACL SETUSER ann +get nosuch",
            "-ERR Error in ACL SETUSER modifier \
                                                       'nosuch': Syntax error\r\n",
        );
        client.check("GET a", &refused("ann", "get"));
    }
}

#[test]
fn clients_of_a_removed_user_are_disconnected() {
    let server = server(3);
    let [mut operator, mut client] = with_user(&server, "+@all ~* &*");
    let [mut blocked, mut own] = std::array::from_fn(|_| Client::new(&server));
    blocked.check("AUTH ann secret", OK);
    blocked.send("BLPOP nothing 0");
    wait_until("a client waits", || operator.ask("CLIENT LIST").contains(" flags=b "));
    operator.check("ACL DELUSER ann nobody", ":1\r\n");
    assert!(client.is_closed() && blocked.is_closed());
    operator.check("ACL DELUSER default", "-ERR The 'default' user cannot be removed\r\n");
    // A client that removes its own user gets the reply, and nothing behind it.
    operator.check("ACL SETUSER bob on nopass +@all ~*", OK);
    own.check("AUTH bob x", OK);
    own.stream.write_all(b"ACL DELUSER bob\r\nSET a x\r\n").expect("the server reads");
    assert_eq!(own.raw(), ":1\r\n");
    assert!(own.is_closed());
    operator.check("EXISTS a", ":0\r\n");
    // Nor does its transaction continue.
    let mut own = Client::new(&server);
    operator.check("ACL SETUSER bob on nopass +@all ~*", OK);
    own.check("AUTH bob x", OK);
    let lines = b"MULTI\r\nACL DELUSER bob\r\nSET a x\r\nEXEC\r\n";
    own.stream.write_all(lines).expect("the server reads");
    (0..3).for_each(|_| _ = own.raw());
    let reply = own.raw();
    assert!(reply.starts_with("*2\r\n:1\r\n-NOPERM"), "{reply}");
    assert!(own.is_closed());
    operator.check("EXISTS a", ":0\r\n");
}

#[test]
fn listeners_are_disconnected_when_they_lose_a_channel() {
    let server = server(2);
    let [mut operator, mut lost] = with_user(&server, "+@all ~* &one &two*");
    let mut kept = Client::new(&server);
    kept.check("AUTH ann secret", OK);
    assert!(lost.ask("SUBSCRIBE one").contains("subscribe"));
    assert!(kept.ask("PSUBSCRIBE two*").contains("psubscribe"));
    operator.check("ACL SETUSER ann resetchannels &two*", OK);
    assert!(lost.is_closed());
    operator.check("PUBLISH two2 text", ":1\r\n");
    assert!(kept.raw().contains("text"));
}

#[test]
fn a_client_that_waits_is_checked_when_it_continues() {
    let server = server(2);
    let [mut operator, mut client] = with_user(&server, "+@all ~*");
    client.send("BLPOP list 0");
    wait_until("a client waits", || operator.ask("CLIENT LIST").contains(" flags=b "));
    operator.check("ACL SETUSER ann resetkeys", OK);
    operator.check("RPUSH list x", ":1\r\n");
    assert_eq!(client.raw(), KEY);
    client.check("PING", "+PONG\r\n");
    operator.check("LLEN list", ":1\r\n");
}

#[test]
fn transactions_and_scripts_are_checked() {
    let server = server(2);
    let [mut operator, mut client] = with_user(&server, "+@all -incr ~a*");
    client.check("MULTI", OK);
    client.check("SET b x", KEY);
    client.check("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n");
    client.check("MULTI", OK);
    client.check("SET a x", "+QUEUED\r\n");
    client.check("GET a", "+QUEUED\r\n");
    operator.check("ACL SETUSER ann -set", OK);
    assert_eq!(
        client.ask("EXEC"),
        "*2\r\n-NOPERM ACLs rules changed between the moment the transaction was accumulated and \
         the EXEC call. This command is no longer allowed for the following reason: no permission \
         to execute the command or subcommand\r\n$-1\r\n"
    );
    client.check("MULTI", OK);
    operator.check("ACL SETUSER ann -exec", OK);
    let reply = client.ask("EXEC");
    assert!(reply.starts_with("-EXECABORT Transaction discarded because of: NOPERM"), "{reply}");
    operator.check("ACL SETUSER ann +exec", OK);
    client.check("EXEC", "-ERR EXEC without MULTI\r\n");
    client.send_arguments(&[b"EVAL", b"return redis.call('incr', 'a')", b"0"]);
    let reply = client.raw();
    let text = "ACL failure in script: User ann has no permissions to run the 'incr' command";
    assert!(reply.starts_with("-ERR ") && reply.contains(text), "{reply}");
    client.send_arguments(&[b"EVAL", b"return redis.acl_check_cmd('incr', 'a')", b"0"]);
    assert_eq!(client.raw(), "$-1\r\n");
    let log = operator.ask("ACL LOG");
    assert!(log.contains(" cmd=exec ") && log.contains(" cmd=eval "), "{log}");
    for part in ["multi", "lua", "toplevel"] {
        assert!(log.contains(part) == (part != "toplevel"), "{log}");
    }
}

#[test]
fn refusals_are_logged_and_counted() {
    let server = server(1);
    let [mut operator, mut client] = with_user(&server, "+@all -incr ~a* &x");
    client.check("AUTH ann wrong", WRONG);
    client.check("AUTH nobody wrong", WRONG);
    client.ask("INCR a");
    client.ask("INCR a");
    client.ask("GET b");
    client.ask("PUBLISH y z");
    let log = operator.call("ACL LOG 2");
    assert!(log.contains("channel") && log.contains("key") && !log.contains("auth"), "{log}");
    let log = operator.ask("ACL LOG 20");
    assert_eq!(log.matches("entry-id").count(), 5, "{log}");
    assert!(log.contains(" cmd=incr user=ann ") && !log.contains("wrong"), "{log}");
    let counts = operator.ask("INFO stats");
    for (name, count) in [("auth", 2), ("cmd", 2), ("key", 1), ("channel", 1)] {
        assert!(counts.contains(&format!("acl_access_denied_{name}:{count}\r\n")), "{counts}");
    }
    operator.check("CONFIG SET acllog-max-len 1", OK);
    client.ask("GET c");
    assert_eq!(operator.ask("ACL LOG").matches("entry-id").count(), 1);
    operator.check("ACL LOG RESET", OK);
    operator.check("ACL LOG", "*0\r\n");
}

#[test]
fn the_default_user_decides_who_has_to_log_in() {
    let server = server(2);
    let [mut operator, mut client] = with_user(&server, "+@all ~*");
    operator.check("ACL SETUSER default off", OK);
    let mut stranger = Client::new(&server);
    stranger.check("GET a", "-NOAUTH Authentication required.\r\n");
    stranger.check("AUTH default x", WRONG);
    assert!(stranger.ask("HELLO 3 AUTH ann secret").starts_with("%7\r\n"));
    stranger.check("GET a", "_\r\n");
    client.check("RESET", "+RESET\r\n");
    client.check("GET a", "-NOAUTH Authentication required.\r\n");
    operator.check("ACL SETUSER default on", OK);
    client.check("GET a", "$-1\r\n");
    operator.check("CONFIG SET requirepass word", OK);
    let list = operator.ask("ACL LIST");
    assert!(list.contains("user default on sanitize-payload #") && !list.contains("nopass"));
    let mut other = Client::new(&server);
    other.check("AUTH wrong", WRONG);
    other.check("AUTH word", OK);
    operator.check("CLIENT KILL USER ann", ":1\r\n");
    assert!(stranger.is_closed());
}

#[test]
fn users_are_saved_and_loaded() {
    let folder = tempfile::tempdir().expect("a folder is made");
    let path = folder.path().join("users");
    let start = || Server::start(Options { access_file: Some(path.clone()), ..Options::default() });
    let error = start().expect_err("there is no file").to_string();
    assert!(error.starts_with("Error loading ACLs, opening file"), "{error}");
    let line = "user ann on nopass sanitize-payload ~a resetchannels -@all +get (%R~b &c +@read)";
    let wrong = "\nuser bob on +nosuch >x\nuser ann\nperson eve\n";
    std::fs::write(&path, format!("{line}\n{wrong}")).expect("a file is written");
    let error = start().expect_err("the file is wrong").to_string();
    for part in [
        "users:3: Error in applying operation '+nosuch': Unknown command or category name in ACL.",
        "WARNING: Duplicate user 'ann' found on line 4.",
        "users:5 should start with user keyword followed by the username.",
    ] {
        assert!(error.contains(part), "{error}");
    }
    std::fs::write(&path, line).expect("a file is written");
    let server =
        server_with(Options { access_file: Some(path.clone()), workers: 2, ..Options::default() });
    let [mut operator, mut ann, mut bob] = std::array::from_fn(|_| Client::new(&server));
    ann.check("AUTH ann any", OK);
    operator.check("ACL SETUSER bob on nopass +@all", OK);
    bob.check("AUTH bob any", OK);
    operator.check("ACL SETUSER eve on >secret ~x &y -@all +@set (+select|0 ~*)", OK);
    let list = operator.ask("ACL LIST");
    operator.check("ACL SAVE", OK);
    operator.check("ACL LOAD", OK);
    assert_eq!(operator.ask("ACL LIST"), list);
    bob.check("PING", "+PONG\r\n");
    std::fs::write(&path, format!("{line} +ping\nuser bob (")).expect("a file is written");
    assert!(operator.ask("ACL LOAD").contains("users:2: Unmatched parenthesis"));
    ann.check("PING", &refused("ann", "ping"));
    std::fs::write(&path, format!("{line} +ping\n")).expect("a file is written");
    operator.check("ACL LOAD", OK);
    ann.check("PING", "+PONG\r\n");
    assert!(bob.is_closed());
    assert_eq!(std::fs::read_dir(folder.path()).expect("it exists").count(), 1);
}
