// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that connect while the server reads its folder.

use std::io::Write;
use std::net::SocketAddr;

use freeport_kv_server::{Bind, Options, Policy, Server};
use freeport_testbed::port::free_port;
use tempfile::TempDir;

use super::{folder, options, start, stop};
use crate::client::Client;

const LOADING: &str = "-LOADING Redis is loading the dataset in memory\r\n";

/// Starts a server on a folder with more bytes than between two reports of its progress, and calls
/// a function at the first report.
fn load(workers: usize, at_first: impl FnOnce(SocketAddr)) -> (Server, TempDir) {
    let folder = folder();
    let server = start(folder.path(), workers);
    let mut client = Client::new(&server);
    for number in 0..10 {
        let value = vec![b'x'; 1 << 20];
        client.send_arguments(&[b"SET", format!("large{number}").as_bytes(), &value]);
        assert_eq!(client.raw(), "+OK\r\n");
    }
    client.check("SET a 1", "+OK\r\n");
    stop(server);
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let options = Options {
        resp: vec![Bind::Tcp(address)],
        ..options(folder.path(), workers, Policy::EverySecond)
    };
    let mut at_first = Some(at_first);
    let progress = &mut |_| at_first.take().into_iter().for_each(|call| call(address));
    let server = Server::recover(options, progress).expect("the folder is complete");
    assert!(at_first.is_none(), "its progress was reported");
    (server, folder)
}

#[test]
fn commands_on_data_are_refused_until_it_is_there() {
    for workers in [1, 3] {
        let mut clients = None;
        let (server, _folder) = load(workers, |address| {
            let (mut one, mut other) = (Client::connect(address), Client::connect(address));
            one.check("PING", LOADING);
            one.check("GET a", LOADING);
            one.check("NONSENSE", LOADING);
            let info = one.ask("INFO persistence");
            let field = |name: &str| {
                let line = info.lines().find_map(|line| line.strip_prefix(name));
                let line = line.unwrap_or_else(|| panic!("{name} is in {info}"));
                line.parse::<f64>().expect("a number")
            };
            assert_eq!(field("loading:"), 1.0);
            assert!(field("loading_total_bytes:") > f64::from(10 << 20));
            one.check("INFO server", "$0\r\n\r\n");
            // Half a request has come when the workers begin.
            other.stream.write_all(b"PING\r\n*2\r\n$3\r\nGET\r\n$1\r\n").expect("it is read");
            assert_eq!(other.raw(), LOADING);
            clients = Some((one, other));
        });
        let (mut one, mut other) = clients.expect("they have connected");
        one.check("GET a", "$1\r\n1\r\n");
        other.stream.write_all(b"a\r\n").expect("it is read");
        assert_eq!(other.raw(), "$1\r\n1\r\n");
        let list = one.ask("CLIENT LIST");
        assert_eq!(list.lines().filter(|line| line.starts_with("id=")).count(), 2, "{list}");
        let info = one.ask("INFO");
        assert!(
            info.contains("connected_clients:2\r\n") && info.contains("loading:0\r\n"),
            "{info}"
        );
        stop(server);
    }
}

/// Their replies come when the data is there, and so do those to what is behind them.
#[test]
fn commands_of_the_server_wait() {
    let mut client = None;
    let (server, _folder) = load(1, |address| {
        let mut one = Client::connect(address);
        one.stream.write_all(b"GET a\r\nCLIENT SETNAME me\r\nGET a\r\n").expect("it is read");
        assert_eq!(one.raw(), LOADING);
        client = Some(one);
    });
    let mut client = client.expect("it has connected");
    assert_eq!(client.raw(), "+OK\r\n");
    assert_eq!(client.raw(), "$1\r\n1\r\n");
    client.check("CLIENT GETNAME", "$2\r\nme\r\n");
    stop(server);
}

#[test]
fn clients_that_vanish_leave_nothing() {
    let (server, _folder) = load(1, |address| {
        for _ in 0..10 {
            Client::connect(address).check("PING", LOADING);
        }
    });
    let mut client = Client::new(&server);
    freeport_testbed::wait_until("only one client is left", || {
        client.ask("INFO clients").contains("connected_clients:1\r\n")
    });
    stop(server);
}
