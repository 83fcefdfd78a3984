// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handshakes that fail, stop or are refused, and files that cannot be used.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use freeport_kv_server::{ClientCertificates, Options, Server, TlsOptions};
use freeport_testbed::wait_until;

use super::certificates::{Folder, Pair};
use super::{TlsClient, address, client_config, connect, count, options, serve, session};
use crate::client::Client;

/// The client gets no reply.
fn is_refused(client: &mut TlsClient) -> bool {
    let request = b"PING\r\n";
    // With TLS 1.3 a client learns of a refusal when it reads.
    client.stream.write_all(request).is_err()
        || client.stream.read(&mut [0; 16]).map_or(true, |bytes| bytes == 0)
}

#[test]
fn certificates_of_clients_are_demanded() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (own, foreign) = (folder.pair("client"), other.pair("client"));
    for (clients, without) in [
        (ClientCertificates::Required, false),
        (ClientCertificates::Optional, true),
        (ClientCertificates::Ignored, true),
    ] {
        let tls = TlsOptions { authority: Some(folder.authority()), clients, ..options(&folder) };
        let server = serve(tls, 1);
        let to = |pair: Option<&Pair>| connect(address(&server), client_config(&folder, pair));
        assert_eq!(to(Some(&own)).call("PING"), "PONG");
        assert_eq!(!is_refused(&mut to(None)), without, "{clients:?}");
        let is_asked = clients != ClientCertificates::Ignored;
        assert_eq!(is_refused(&mut to(Some(&foreign))), is_asked, "{clients:?}");
        let failed = 2 - u64::from(without) - u64::from(!is_asked);
        let mut client = to(Some(&own));
        wait_until("the others have gone", || {
            count(&mut client, "tls_handshakes_failed") == failed
        });
    }
}

/// The client does not trust the authority of the server, and says so.
#[test]
fn a_client_refuses_the_server() {
    let (folder, other) = (Folder::new(), Folder::new());
    let server = serve(options(&folder), 1);
    assert!(is_refused(&mut connect(address(&server), client_config(&other, None))));
    let mut client = connect(address(&server), client_config(&folder, None));
    wait_until("it was counted", || count(&mut client, "tls_handshakes_failed") == 1);
    assert_eq!(count(&mut client, "tls_handshakes"), 1);
}

#[test]
fn other_protocols_are_closed_and_counted() {
    let folder = Folder::new();
    let server = serve(options(&folder), 1);
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"*1\r\n$4\r\nPING\r\n", &[0x16, 3, 1, 0xFF, 0xFF, 0]]
    {
        let mut plain = Client::connect(address(&server));
        plain.stream.write_all(bytes).expect("the server reads");
        assert!(plain.is_closed(), "{bytes:?}");
    }
    let mut client = connect(address(&server), client_config(&folder, None));
    wait_until("they were counted", || count(&mut client, "tls_handshakes_failed") == 3);
    client.call("CONFIG RESETSTAT");
    assert_eq!(count(&mut client, "tls_handshakes_failed"), 0);
}

/// One client sends nothing, another one a part of its first record.
#[test]
fn clients_that_do_not_finish_the_handshake_are_disconnected() {
    let folder = Folder::new();
    let tls = TlsOptions { handshake_timeout: Duration::from_millis(1), ..options(&folder) };
    let server = serve(tls, 2);
    let [mut silent, mut half] = [(); 2].map(|()| Client::connect(address(&server)));
    let mut hello = vec![];
    session(client_config(&folder, None)).write_tls(&mut hello).expect("memory takes bytes");
    half.stream.write_all(&hello[..hello.len() / 2]).expect("the server reads");
    assert!(silent.is_closed() && half.is_closed());
    wait_until("nothing is left of them", || server.census().connections == 0);
}

/// The time is only for the handshake.
#[test]
fn an_idle_client_stays_after_its_handshake() {
    let folder = Folder::new();
    let tls = TlsOptions { handshake_timeout: Duration::from_millis(1), ..options(&folder) };
    let server = serve(tls, 1);
    // A look at all connections may come between two steps of a handshake.
    let mut client =
        std::iter::repeat_with(|| connect(address(&server), client_config(&folder, None)))
            .find_map(|mut client| (!is_refused(&mut client)).then_some(client))
            .expect("one is fast enough");
    let mut silent = Client::connect(address(&server));
    assert!(silent.is_closed());
    assert_eq!(client.call("PING"), "PONG");
}

fn complaint(tls: TlsOptions) -> String {
    let options = Options { tls: Some(tls), ..Options::default() };
    Server::start(options).expect_err("a file is wrong").to_string()
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = Folder::new();
    let good = options(&folder);
    let write = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder is writable");
        path
    };
    let locked = ["pkey", "-in", "server.key", "-aes128", "-passout", "pass:word"];
    folder.openssl(&[&locked[..], &["-out", "locked.key"]].concat());
    let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let with_key = |key: PathBuf| TlsOptions { key, ..good.clone() };
    let with_certificate = |certificate: PathBuf| TlsOptions { certificate, ..good.clone() };
    let with_authority = |path: PathBuf| TlsOptions {
        authority: Some(path),
        clients: ClientCertificates::Required,
        ..good.clone()
    };
    let without = TlsOptions { clients: ClientCertificates::Required, ..good.clone() };
    for (tls, file, reason) in [
        (with_key(folder.path().join("none.key")), "none.key", "No such file"),
        (with_key(write("empty.key", "\n")), "empty.key", "the file is empty"),
        (with_key(folder.path().join("locked.key")), "locked.key", "openssl pkey"),
        (with_key(good.certificate.clone()), "server.pem", "BEGIN PRIVATE KEY"),
        (with_key(folder.pair("other").key), "other.key", "not the key of the certificate in"),
        (with_certificate(good.key.clone()), "server.key", "BEGIN CERTIFICATE"),
        (with_certificate(write("cut.pem", cut)), "cut.pem", "no valid PEM"),
        (with_certificate(write("garbage.pem", garbage)), "garbage.pem", "cannot be used"),
        (with_authority(good.key.clone()), "server.key", "BEGIN CERTIFICATE"),
        (with_authority(write("root.pem", garbage)), "root.pem", "certificate of an authority"),
        (without, "tls-ca-cert-file", "there is no file"),
    ] {
        let complaint = complaint(tls);
        assert!(complaint.contains(file) && complaint.contains(reason), "{file}: {complaint}");
    }
}
