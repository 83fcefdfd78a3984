// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients introduce themselves, and operators manage them.

use std::io::Write;

use freeport_testbed::wait_until;

use super::client::{Client, server};

/// A client on each of several workers.
fn clients<const COUNT: usize>(server: &freeport_kv_server::Server) -> [Client; COUNT] {
    std::array::from_fn(|_| Client::connect(server.addresses()[0]))
}

#[test]
fn a_driver_introduces_itself() {
    let server = server(2);
    let [mut client, mut other] = clients(&server);
    let request = "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n$0\r\n\r\n";
    client.stream.write_all(request.as_bytes()).expect("the server reads");
    assert_eq!(client.raw(), "-ERR Syntax error in HELLO option ''\r\n");
    assert!(client.ask("HELLO 3 SETNAME me").starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
    client.check("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n");
    client.check("CLIENT SETINFO lib-ver 5.0.1", "+OK\r\n");
    client.check(
        "CLIENT SETINFO lib-ver a\tb",
        "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n",
    );
    client.check("CLIENT SETINFO x y", "-ERR Unrecognized option 'x'\r\n");
    client.check("CLIENT NO-EVICT ON", "+OK\r\n");
    client.check("CLIENT NO-TOUCH ON", "+OK\r\n");
    client.check("CLIENT GETNAME", "$2\r\nme\r\n");
    let id = client.ask("CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    let info = client.ask("CLIENT INFO");
    for part in [
        format!("id={id} addr=127.0.0.1:"),
        " name=me ".into(),
        " flags=eT db=0 ".into(),
        " cmd=client|info user=default redir=-1 resp=3 lib-name=redis-py lib-ver=5.0.1\n".into(),
    ] {
        assert!(info.contains(&part), "{info} has no {part}");
    }
    let line = other.ask(&format!("CLIENT LIST ID {id} 999"));
    assert!(line.contains(" name=me ") && line.contains(" cmd=client|info "), "{line}");
    assert_eq!(line.matches(" addr=").count(), 1, "{line}");
}

#[test]
fn clients_of_any_worker_are_disconnected() {
    let server = server(3);
    let [mut one, mut two, mut three, mut operator] = clients(&server);
    one.check("CLIENT SETNAME one", "+OK\r\n");
    // Its worker knows it from now on.
    two.check("PING", "+PONG\r\n");
    let address = two.stream.local_addr().expect("it is connected");
    operator.check(&format!("CLIENT KILL {address}"), "+OK\r\n");
    assert!(two.is_closed());
    three.check("SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    operator.check("CLIENT KILL TYPE pubsub", ":1\r\n");
    assert!(three.is_closed());
    operator.check("CLIENT KILL TYPE normal SKIPME no MAXAGE 1000", ":0\r\n");
    operator.check("CLIENT KILL TYPE normal SKIPME no", ":2\r\n");
    assert!(one.is_closed() && operator.is_closed());
}

#[test]
fn a_blocked_client_is_released() {
    let server = server(2);
    let [mut one, mut operator] = clients(&server);
    let id = one.ask("CLIENT ID");
    let id = id.trim_start_matches(':').trim_end().to_owned();
    operator.check(&format!("CLIENT UNBLOCK {id}"), ":0\r\n");
    for (word, reply) in [
        ("", "*-1\r\n"),
        (" TIMEOUT", "*-1\r\n"),
        (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"),
    ] {
        one.send("BLPOP none 0");
        wait_until("the client is blocked", || {
            operator.ask(&format!("CLIENT UNBLOCK {id}{word}")) == ":1\r\n"
        });
        assert_eq!(one.raw(), reply);
        one.check("PING", "+PONG\r\n");
    }
}

#[test]
fn requests_wait_for_the_end_of_a_pause() {
    let server = server(2);
    let [mut one, mut two, mut operator] = clients(&server);
    operator.check("CLIENT PAUSE 1000000 WRITE", "+OK\r\n");
    for client in [&mut one, &mut two] {
        client.check("GET a", "$-1\r\n");
        client.send("SET a 1");
        client.send("GET a");
    }
    wait_until("both wait", || operator.ask("INFO clients").contains("blocked_clients:2\r\n"));
    operator.check("GET a", "$-1\r\n");
    operator.check("CLIENT UNPAUSE", "+OK\r\n");
    for client in [&mut one, &mut two] {
        assert_eq!((client.raw(), client.raw()), ("+OK\r\n".into(), "$1\r\n1\r\n".into()));
    }
    assert!(operator.ask("INFO clients").contains("blocked_clients:0\r\n"));
    operator.check("CLIENT PAUSE 10", "+OK\r\n");
    operator.check("GET a", "$1\r\n1\r\n");
}

#[test]
fn replies_are_left_out_on_demand() {
    let server = server(1);
    let [mut client] = clients(&server);
    for line in ["CLIENT REPLY SKIP", "SET a 1", "GET a", "CLIENT REPLY OFF", "NOSUCH", "GET a"] {
        client.send(line);
    }
    assert_eq!(client.raw(), "$1\r\n1\r\n");
    client.check("CLIENT REPLY ON", "+OK\r\n");
    client.check("PING", "+PONG\r\n");
    client.send("CLIENT REPLY SKIP");
    client.check("CLIENT REPLY ON", "+OK\r\n");
    client.check("PING", "+PONG\r\n");
}

#[test]
fn a_monitor_sees_the_commands_of_all_workers() {
    let server = server(2);
    let [mut monitor, mut one, mut two] = clients(&server);
    one.check("SELECT 3", "+OK\r\n");
    monitor.check("MONITOR", "+OK\r\n");
    one.check("SET a \"b\"", "+OK\r\n");
    let line = monitor.raw();
    let address = one.stream.local_addr().expect("it is connected");
    let end = format!(" [3 {address}] \"SET\" \"a\" \"\\\"b\\\"\"\r\n");
    assert!(line.starts_with('+') && line.ends_with(&end), "{line}");
    two.ask("AUTH default secret");
    assert!(monitor.raw().ends_with("\"AUTH\" \"(redacted)\" \"(redacted)\"\r\n"));
    one.check("CONFIG GET nosuch", "*0\r\n");
    for line in ["MULTI", "SET b 1", "EXEC"] {
        two.ask(line);
    }
    assert!(monitor.raw().ends_with("\"MULTI\"\r\n"));
    assert!(monitor.raw().ends_with("\"SET\" \"b\" \"1\"\r\n"));
    assert!(monitor.raw().ends_with("\"EXEC\"\r\n"));
    one.check("EVAL redis.call('incr',KEYS[1]) 1 b", "$-1\r\n");
    assert!(monitor.raw().contains("] \"EVAL\" "));
    assert!(monitor.raw().ends_with(" [3 lua] \"incr\" \"b\"\r\n"));
    monitor.check("RESET", "+RESET\r\n");
}

#[test]
fn a_password_is_wanted_of_new_clients() {
    let server = server(2);
    let [mut operator] = clients(&server);
    operator.check("CONFIG SET requirepass secret", "+OK\r\n");
    operator.check("PING", "+PONG\r\n");
    let [mut client, mut other] = clients(&server);
    client.check("GET a", "-NOAUTH Authentication required.\r\n");
    client.check("GET", "-ERR wrong number of arguments for 'get' command\r\n");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    client.check("AUTH wrong", wrong);
    client.check("AUTH nobody secret", wrong);
    assert!(client.ask("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    // A long request right behind the password has the limits of a client that has given it.
    let words = (0..20).map(|number| format!("{number} {number}")).collect::<Vec<_>>().join(" ");
    let mut pipeline = "AUTH secret\r\n".to_owned();
    pipeline += &format!("HSET h {words}\r\n");
    client.stream.write_all(pipeline.as_bytes()).expect("the server reads");
    assert_eq!((client.raw(), client.raw()), ("+OK\r\n".into(), ":20\r\n".into()));
    assert!(other.ask("HELLO 3 AUTH default secret SETNAME x").starts_with("%7\r\n"));
    other.check("CLIENT GETNAME", "$1\r\nx\r\n");
    other.check("RESET", "+RESET\r\n");
    other.check("GET a", "-NOAUTH Authentication required.\r\n");
    operator.check("CONFIG SET requirepass _", "+OK\r\n");
    let [mut last] = clients(&server);
    last.check("GET a", "$-1\r\n");
}

#[test]
fn an_unauthenticated_client_sends_little() {
    let server = server(1);
    let [mut operator] = clients(&server);
    operator.check("CONFIG SET requirepass secret", "+OK\r\n");
    let [mut client] = clients(&server);
    client.stream.write_all(b"*11\r\n").expect("the server reads");
    assert_eq!(client.raw(), "-ERR Protocol error: unauthenticated multibulk length\r\n");
    assert!(client.is_closed());
}

#[test]
fn too_many_clients_are_refused() {
    let server = server(1);
    let [mut operator] = clients(&server);
    operator.check("CONFIG SET maxclients 1", "+OK\r\n");
    let [mut refused] = clients(&server);
    assert_eq!(refused.raw(), "-ERR max number of clients reached\r\n");
    operator.check("CONFIG SET maxclients 2", "+OK\r\n");
    let [mut second] = clients(&server);
    second.check("PING", "+PONG\r\n");
}
