// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts, between clients of several workers.

use std::io::Write;

use freeport_testbed::wait_until;

use crate::client::{Client, request, server};

/// A client of another worker stops a script that never ends and has not written.
#[test]
fn another_worker_stops_a_script_that_has_not_written() {
    let server = server(2);
    // Clients belong to the workers in turn.
    let mut clients: Vec<Client> = (0..4).map(|_| Client::new(&server)).collect();
    assert_eq!(
        clients[1].call("SCRIPT KILL"),
        "(error) NOTBUSY No scripts in execution right now."
    );
    clients[1].call("SUBSCRIBE begun");
    let endless = b"redis.call('PUBLISH', 'begun', '') while true do end";
    clients[0].send_arguments(&[b"EVAL", endless, b"0"]);
    assert_eq!(clients[1].text(), "1) \"message\" 2) \"begun\" 3) \"\"");
    assert_eq!(clients[3].call("SCRIPT KILL"), "OK");
    let stopped = clients[0].text();
    assert!(stopped.contains("Script killed by user with SCRIPT KILL"), "{stopped}");
    assert_eq!(clients[2].call("EVAL return(1) 0"), "(integer) 1");
}

/// With one worker, clients are answered while a script runs for too long: those that are
/// connected, and new ones. One of them stops the script.
#[test]
fn a_script_that_never_ends_lets_clients_stop_it() {
    let server = server(1);
    let (mut client, mut other) = (Client::new(&server), Client::new(&server));
    assert_eq!(client.call("CONFIG SET busy-reply-threshold 1"), "OK");
    other.call("MULTI");
    client.call("SUBSCRIBE begun");
    let mut runner = Client::new(&server);
    let endless = b"redis.call('PUBLISH', 'begun', '') while true do end";
    runner.send_arguments(&[b"EVAL", endless, b"0"]);
    let busy = "(error) BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                SHUTDOWN NOSAVE.";
    let mut stranger = Client::new(&server);
    // The script may not have begun yet.
    let mut reply = stranger.call("GET key");
    while reply != busy {
        assert_eq!(reply, "(nil)");
        reply = stranger.call("GET key");
    }
    assert_eq!(other.call("SET key 1"), busy);
    let aborted = busy.replace("BUSY", "EXECABORT Transaction discarded because of: BUSY");
    assert_eq!(other.call("EXEC"), aborted);
    assert_eq!(other.call("FUNCTION KILL"), busy);
    // Requests in one piece, of which the second stops the script.
    stranger.send("PING");
    stranger.send("SCRIPT KILL");
    assert_eq!(stranger.text(), busy);
    assert_eq!(stranger.text(), "OK");
    let stopped = runner.text();
    assert!(stopped.contains("Script killed by user with SCRIPT KILL"), "{stopped}");
    // A message of the script comes when it has ended.
    assert_eq!(client.text(), "1) \"message\" 2) \"begun\" 3) \"\"");
    assert_eq!(other.call("GET key"), "(nil)");
    assert_eq!(stranger.call("GET key"), "(nil)");
}

/// The first worker accepts clients, and hands them to the worker of an endless script too. One
/// that comes after the begin of the script is answered, and stops it.
#[test]
fn a_new_client_of_any_worker_stops_a_script_that_never_ends() {
    const WORKERS: usize = 3;
    const ENDLESS: &[u8] = b"redis.call('PUBLISH', 'begun', '') while true do end";
    let library = "#!lua name=lib\nredis.register_function{function_name='endless', \
                   flags={'no-writes'}, callback=function() while true do end end}";
    let server = server(WORKERS);
    // Clients belong to the workers in turn.
    let round = || -> Vec<Client> { (0..WORKERS).map(|_| Client::new(&server)).collect() };
    let mut first = round();
    assert_eq!(first[0].call("CONFIG SET busy-reply-threshold 1"), "OK");
    first[0].send_arguments(&[b"FUNCTION", b"LOAD", library.as_bytes()]);
    assert_eq!(first[0].text(), "\"lib\"");
    for worker in 0..WORKERS {
        let mut listener = round().swap_remove((worker + 1) % WORKERS);
        listener.call("SUBSCRIBE begun");
        for (kind, request) in
            [("SCRIPT", &[b"EVAL", ENDLESS, b"0"][..]), ("FUNCTION", &[b"FCALL", b"endless", b"0"])]
        {
            let runner = &mut first[worker];
            runner.send_arguments(request);
            if kind == "SCRIPT" {
                assert_eq!(listener.text(), "1) \"message\" 2) \"begun\" 3) \"\"");
            } else {
                let other = &mut first[(worker + 1) % WORKERS];
                wait_until("it runs", || other.call("FUNCTION STATS").contains("endless"));
            }
            let busy = format!(
                "(error) BUSY Redis is busy running a script. You can only call {kind} KILL or \
                 SHUTDOWN NOSAVE."
            );
            let mut new = round();
            assert_eq!(new[worker].call("GET key"), busy);
            assert_eq!(new[worker].call(&format!("{kind} KILL")), "OK");
            let stopped = first[worker].text();
            assert!(stopped.contains("Script killed by user"), "{stopped}");
            for client in &mut new {
                assert_eq!(client.call("GET key"), "(nil)");
            }
        }
    }
    wait_until("the others have gone", || server.census().connections == WORKERS);
}

/// A request may come in parts, and requests in large numbers.
#[test]
fn clients_are_heard_to_the_end_while_a_script_runs_for_long() {
    const REQUESTS: usize = 2_000;
    let server = server(1);
    let [mut runner, mut client] = [(); 2].map(|()| Client::new(&server));
    assert_eq!(client.call("CONFIG SET busy-reply-threshold 1"), "OK");
    runner.send_arguments(&[b"EVAL", b"while true do end", b"0"]);
    wait_until("the script runs for long", || client.call("GET key").contains("BUSY"));
    let mut many = Client::new(&server);
    let requests = request(&[b"GET", b"key"]).repeat(REQUESTS);
    many.stream.write_all(&requests).expect("the server reads");
    for _ in 0..REQUESTS {
        assert!(many.text().contains("BUSY"));
    }
    let mut parts = Client::new(&server);
    let kill = request(&[b"SCRIPT", b"KILL"]);
    let (begin, end) = kill.split_at(10);
    parts.stream.write_all(begin).expect("the server reads");
    // The begin is read in front of this.
    assert!(client.call("GET key").contains("BUSY"));
    parts.stream.write_all(end).expect("the server reads");
    assert_eq!(parts.text(), "OK");
    assert!(runner.text().contains("Script killed by user"));
    assert_eq!([parts.call("PING"), many.call("PING")], ["PONG", "PONG"]);
}

/// One that has written cannot be stopped by a client, but the server can.
#[test]
fn a_script_that_has_written_is_ended_with_the_server() {
    let server = server(1);
    let mut control = Client::new(&server);
    assert_eq!(control.call("CONFIG SET busy-reply-threshold 1"), "OK");
    let mut runner = Client::new(&server);
    let endless = b"redis.call('SET', 'key', 1) while true do end";
    runner.send_arguments(&[b"EVAL", endless, b"0"]);
    // The script may not have begun yet.
    let mut reply = control.call("SCRIPT KILL");
    while !reply.starts_with("(error) UNKILLABLE ") {
        assert!(reply.starts_with("(error) NOTBUSY "), "{reply}");
        reply = control.call("SCRIPT KILL");
    }
    control.send("SHUTDOWN NOSAVE");
    server.join().expect("the worker ends");
}

/// Scripts and functions that one worker was given are known to the others.
#[test]
fn scripts_belong_to_the_server() {
    let server = server(3);
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&server)).collect();
    let hash = clients[0].call("SCRIPT LOAD return(7)").trim_matches('"').to_owned();
    for client in &mut clients {
        assert_eq!(client.call(&format!("EVALSHA {hash} 0")), "(integer) 7");
        assert_eq!(client.call(&format!("SCRIPT EXISTS {hash}")), "1) (integer) 1");
    }
    let library = b"#!lua name=lib\nredis.register_function('f', function(keys, arguments)
        return redis.call('INCRBY', keys[1], arguments[1]) end)";
    clients[1].send_arguments(&[b"FUNCTION", b"LOAD", library]);
    assert_eq!(clients[1].text(), "\"lib\"");
    for (number, client) in clients.iter_mut().enumerate() {
        let expected = format!("(integer) {}", (number + 1) * 5);
        assert_eq!(client.call("FCALL f 1 counter 5"), expected);
    }
    assert_eq!(clients[2].call("SCRIPT FLUSH"), "OK");
    assert_eq!(clients[2].call("FUNCTION FLUSH"), "OK");
    for client in &mut clients {
        let reply = client.call(&format!("EVALSHA {hash} 0"));
        assert_eq!(reply, "(error) NOSCRIPT No matching script. Please use EVAL.");
        assert_eq!(client.call("FCALL f 0"), "(error) ERR Function not found");
    }
}

/// As in Redis 7.2.
#[test]
fn time_stands_still_in_a_script() {
    let server = server(1);
    let mut client = Client::new(&server);
    let script = "local begin, first = os.clock(), redis.call('TIME') \
                  repeat until os.clock() - begin > 0.002 \
                  local second = redis.call('TIME') \
                  return first[1] == second[1] and first[2] == second[2]";
    client.send_arguments(&[b"EVAL", script.as_bytes(), b"0"]);
    assert_eq!(client.text(), "(integer) 1");
    let mut time = || client.call("TIME");
    assert_ne!(time(), time());
}

/// A script that says it only reads may not tell others anything either.
#[test]
fn scripts_that_only_read_do_not_publish() {
    let server = server(1);
    let mut client = Client::new(&server);
    for command in ["'SET', 'a', '1'", "'PUBLISH', 'a', '1'", "'PFCOUNT', 'a'"] {
        let script = format!("return redis.call({command})");
        client.send_arguments(&[b"EVAL_RO", script.as_bytes(), b"0"]);
        let refused = client.text();
        let begin = "(error) ERR Write commands are not allowed from read-only scripts.";
        assert!(refused.starts_with(begin), "{command}: {refused}");
    }
    client.send_arguments(&[b"EVAL_RO", b"return redis.call('GET', 'a')", b"0"]);
    assert_eq!(client.text(), "(nil)");
}
