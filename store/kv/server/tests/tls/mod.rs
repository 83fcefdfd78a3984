// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Encrypted connections: clients in this process, and programs with OpenSSL.

mod certificates;
mod exchange;
mod handshakes;
mod programs;
mod traffic;

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use freeport_kv_server::{Bind, ClientCertificates, Options, Server, TlsOptions};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::Client;
use certificates::{Folder, Pair};

/// A client that encrypts.
type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// Options with a certificate of the folder's authority, on free ports.
fn options(folder: &Folder) -> TlsOptions {
    let address = Bind::Tcp("127.0.0.1:0".parse().expect("it is an address"));
    let Pair { certificate, key } = folder.pair("server");
    TlsOptions {
        resp: vec![address.clone()],
        memcached: vec![address],
        certificate,
        key,
        authority: None,
        clients: ClientCertificates::Ignored,
        handshake_timeout: Duration::from_secs(600),
    }
}

/// A server for clients that encrypt, and one that does not.
fn serve(tls: TlsOptions, workers: usize) -> Server {
    crate::client::server_with(Options { tls: Some(tls), workers, ..Options::default() })
}

/// Address for clients of Redis that encrypt.
fn address(server: &Server) -> SocketAddr {
    server.addresses()[1]
}

/// Address for clients of memcached that encrypt.
fn memcached_address(server: &Server) -> SocketAddr {
    server.addresses()[2]
}

/// The settings of clients that trust the folder's authority.
fn client_config(folder: &Folder, pair: Option<&Pair>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(folder.authority()).expect("it was written");
    roots.add(authority).expect("it is an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has suites")
        .with_root_certificates(roots);
    Arc::new(match pair {
        None => builder.with_no_client_auth(),
        Some(Pair { certificate, key }) => {
            let certificate = CertificateDer::from_pem_file(certificate).expect("it was written");
            let key = PrivateKeyDer::from_pem_file(key).expect("it was written");
            builder.with_client_auth_cert(vec![certificate], key).expect("the key is right")
        }
    })
}

/// A session of a client.
fn session(config: Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").expect("it is a name");
    ClientConnection::new(config, name).expect("the configuration is complete")
}

/// Connects a client whose handshake happens with its first bytes.
fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> TlsClient {
    let stream = Client::connect(address).stream;
    Client::over(StreamOwned::new(session(config), stream))
}

/// The number of a line of `INFO`.
fn count(client: &mut TlsClient, name: &str) -> u64 {
    let text = client.ask("INFO stats");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("{name} is in {text}")).parse().expect("it is a number")
}
