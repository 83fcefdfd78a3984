// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that wait for keys, of one worker and of several.

use freeport_kv_server::Server;
use freeport_testbed::wait_until;

use crate::client::{Client, server};

/// Waits until some number of clients is blocked, so that the order of events is known.
fn wait_for_blocked(server: &Server, clients: usize) {
    wait_until("clients are blocked", || server.census().blocked == clients);
}

#[test]
fn clients_are_served_in_the_order_in_which_they_waited() {
    let server = server(1);
    let mut control = Client::new(&server);
    let mut clients: Vec<Client> = (0..5).map(|_| Client::new(&server)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send("BLPOP other list 0");
        wait_for_blocked(&server, number + 1);
    }
    // One push serves two clients, a transaction three.
    assert_eq!(control.call("RPUSH list 1 2"), "(integer) 2");
    control.call("MULTI");
    control.call("RPUSH list 3");
    control.call("RPUSH list 4 5 6");
    // All were pushed before anybody was served.
    assert_eq!(control.call("EXEC"), "1) (integer) 1 2) (integer) 4");
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.text(), format!("1) \"list\" 2) \"{}\"", number + 1));
    }
    assert_eq!(control.call("LRANGE list 0 -1"), "1) \"6\"");
    wait_for_blocked(&server, 0);
}

#[test]
fn a_wait_ends_with_its_time_or_its_client() {
    let server = server(1);
    let mut control = Client::new(&server);
    let mut client = Client::new(&server);
    assert_eq!(client.call("BLPOP list 0.01"), "(nil)");
    client.send("BRPOP list 0");
    wait_for_blocked(&server, 1);
    drop(client);
    wait_for_blocked(&server, 0);
    // The element stays, because nobody waits for it.
    assert_eq!(control.call("RPUSH list 1"), "(integer) 1");
    assert_eq!(control.call("LLEN list"), "(integer) 1");
}

#[test]
fn requests_behind_a_wait_are_executed_after_it() {
    let server = server(1);
    let (mut control, mut client) = (Client::new(&server), Client::new(&server));
    client.send("BLPOP list 0");
    client.send("SET after 1");
    wait_for_blocked(&server, 1);
    assert_eq!(control.call("GET after"), "(nil)");
    control.call("LPUSH list x");
    assert_eq!(client.text(), "1) \"list\" 2) \"x\"");
    assert_eq!(client.text(), "OK");
}

#[test]
fn elements_travel_through_waiting_clients() {
    let server = server(1);
    let mut control = Client::new(&server);
    let mut clients: Vec<Client> = (0..4).map(|_| Client::new(&server)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("BLMOVE l{number} l{} LEFT RIGHT 0", number + 1));
        wait_for_blocked(&server, number + 1);
    }
    control.call("RPUSH l0 x");
    clients.iter_mut().for_each(|client| assert_eq!(client.text(), "\"x\""));
    assert_eq!(control.call("LRANGE l4 0 -1"), "1) \"x\"");
}

/// Keys, waiting clients and those that push belong to different workers.
#[test]
fn every_element_reaches_one_client_of_several_workers() {
    const CLIENTS: usize = 8;
    const ELEMENTS: usize = 200;
    let server = server(4);
    std::thread::scope(|scope| {
        let consumers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let mut client = Client::new(&server);
                scope.spawn(move || {
                    let mut seen = vec![];
                    loop {
                        let (one, two) = (number % 5, (number + 3) % 5);
                        let reply = client.call(&format!("BLPOP list{one} list{two} stop 0"));
                        if reply.contains("\"stop\"") {
                            return seen;
                        }
                        seen.push(reply.split('"').nth(3).map(str::to_owned));
                    }
                })
            })
            .collect();
        let mut producer = Client::new(&server);
        for element in 0..ELEMENTS {
            let lists = [element % 5, (element + 1) % 5];
            producer.call("MULTI");
            producer.call(&format!("RPUSH list{} {element}a", lists[0]));
            producer.call(&format!("RPUSH list{} {element}b", lists[1]));
            producer.call("EXEC");
        }
        wait_until("all lists are empty", || {
            (0..5).all(|list| producer.call(&format!("LLEN list{list}")) == "(integer) 0")
        });
        for _ in 0..CLIENTS {
            producer.call("RPUSH stop stop");
        }
        let mut seen: Vec<String> = consumers
            .into_iter()
            .flat_map(|consumer| consumer.join().expect("clients do not panic"))
            .map(|element| element.expect("a reply names its element"))
            .collect();
        seen.sort();
        let mut expected: Vec<String> =
            (0..ELEMENTS).flat_map(|at| [format!("{at}a"), format!("{at}b")]).collect();
        expected.sort();
        assert_eq!(seen, expected);
    });
}
