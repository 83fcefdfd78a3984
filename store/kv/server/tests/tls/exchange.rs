// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates are exchanged while the server runs.

use std::path::Path;

use freeport_kv_server::{ClientCertificates, TlsOptions};

use super::certificates::{Folder, Pair};
use super::{TlsClient, address, client_config, connect, options, serve};
use crate::client::{Client, server};

/// The certificate that the server has shown.
fn shown(client: &TlsClient) -> Vec<u8> {
    let chain = client.stream.conn.peer_certificates().expect("the handshake is complete");
    chain[0].to_vec()
}

fn set(client: &mut TlsClient, pairs: &[(&str, &Path)]) -> String {
    let mut words: Vec<&[u8]> = vec![b"CONFIG", b"SET"];
    for (name, path) in pairs {
        words.extend([name.as_bytes(), path.as_os_str().as_encoded_bytes()]);
    }
    client.send_arguments(&words);
    client.text()
}

#[test]
fn new_connections_get_new_certificates() {
    let folder = Folder::new();
    let first = options(&folder);
    let server = serve(first.clone(), 2);
    let new = || connect(address(&server), client_config(&folder, None));
    let mut old = new();
    assert_eq!(old.call("PING"), "PONG");
    let Pair { certificate, key } = folder.pair("second");
    let names = ["tls-cert-file", "tls-key-file"];

    // One of them alone does not fit the other.
    let refusal = set(&mut old, &[(names[0], &certificate)]);
    assert!(refusal.contains("server.key: not the key of the certificate in"), "{refusal}");
    assert!(refusal.contains("argument 'tls-cert-file'"), "{refusal}");
    let none = folder.path().join("none.pem");
    let refusal = set(&mut old, &[(names[0], &none), (names[1], &key)]);
    assert!(refusal.contains("none.pem: No such file"), "{refusal}");
    let mut client = new();
    assert_eq!(client.call("PING"), "PONG");
    assert_eq!(shown(&client), shown(&old), "nothing has changed");
    let path = first.certificate.display();
    assert_eq!(
        client.call("CONFIG GET tls-cert-file"),
        format!("1) \"{}\" 2) \"{path}\"", names[0])
    );

    assert_eq!(set(&mut old, &[(names[0], &certificate), (names[1], &key)]), "OK");
    let mut client = new();
    assert_eq!(client.call("PING"), "PONG");
    assert_ne!(shown(&client), shown(&old));
    assert_eq!(old.call("PING"), "PONG", "an old connection stays");

    // The same names with other contents.
    let third = folder.pair("third");
    std::fs::copy(&third.certificate, &certificate).expect("the folder is writable");
    std::fs::copy(&third.key, &key).expect("the folder is writable");
    assert_eq!(set(&mut old, &[(names[0], &certificate)]), "OK");
    let mut last = new();
    assert_eq!(last.call("PING"), "PONG");
    assert_ne!(shown(&last), shown(&client));
}

#[test]
fn demands_on_clients_change() {
    let folder = Folder::new();
    let tls = TlsOptions {
        authority: Some(folder.authority()),
        clients: ClientCertificates::Required,
        ..options(&folder)
    };
    let server = serve(tls, 1);
    let mut operator = Client::new(&server);
    assert_eq!(operator.call("CONFIG GET tls-auth-clients"), "1) \"tls-auth-clients\" 2) \"yes\"");
    assert_eq!(operator.call("CONFIG SET tls-auth-clients optional"), "OK");
    let mut client = connect(address(&server), client_config(&folder, None));
    assert_eq!(client.call("PING"), "PONG");
    let refusal = operator.call("CONFIG SET tls-protocols TLSv1.1");
    assert!(refusal.contains("protocol `TLSv1.1` is not supported"), "{refusal}");
    let refusal = operator.ask("CONFIG SET tls-ca-cert-file _");
    assert!(refusal.contains("there is no file of them"), "{refusal}");
    for (protocol, version) in [
        ("tlsv1.2", rustls::ProtocolVersion::TLSv1_2),
        ("TLSv1.3", rustls::ProtocolVersion::TLSv1_3),
    ] {
        assert_eq!(operator.call(&format!("CONFIG SET tls-protocols {protocol}")), "OK");
        let mut client = connect(address(&server), client_config(&folder, None));
        assert_eq!(client.call("PING"), "PONG");
        assert_eq!(client.stream.conn.protocol_version(), Some(version));
    }
    // Its own connection is the first of the present configuration.
    let config = client_config(&folder, None);
    for (caching, is_resumed) in [("yes", true), ("no", false)] {
        assert_eq!(operator.call(&format!("CONFIG SET tls-session-caching {caching}")), "OK");
        let mut first = connect(address(&server), config.clone());
        assert_eq!(first.call("PING"), "PONG");
        let mut second = connect(address(&server), config.clone());
        assert_eq!(second.call("PING"), "PONG");
        let kind = second.stream.conn.handshake_kind();
        assert_eq!(kind == Some(rustls::HandshakeKind::Resumed), is_resumed, "{caching}");
    }
}

#[test]
fn a_server_without_tls_refuses_its_parameters() {
    let server = server(1);
    let refusal = Client::new(&server).call("CONFIG SET tls-cert-file server.pem");
    assert!(refusal.contains("the server has no port for TLS"), "{refusal}");
}
