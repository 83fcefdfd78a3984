// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of `freeport kv serve` for encrypted connections.

use clap::{ArgGroup, Args, ValueEnum};
use freeport_kv_server::{Bind, ClientCertificates, TlsOptions};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Name of the group of options that open ports.
const PORTS: &str = "tls_ports";

#[derive(Args)]
#[command(group = ArgGroup::new(PORTS).multiple(true))]
pub struct TlsArguments {
    /// TCP port for clients of Redis that encrypt with TLS; 0: the system chooses one [default:
    /// none]
    #[arg(long, value_name = "PORT", group = PORTS, requires = "tls_cert")]
    tls_port: Option<u16>,
    /// TCP port for clients of memcached that encrypt with TLS; 0: the system chooses one
    /// [default: none]
    #[arg(long, value_name = "PORT", group = PORTS, requires = "tls_cert")]
    memcached_tls_port: Option<u16>,
    /// Certificate of the server, and those between it and its authority (PEM)
    #[arg(long, value_name = "FILE", requires_all = [PORTS, "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, without a password (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Certificates of the authorities that sign those of clients (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Whether clients with TLS need a certificate [default: yes with --tls-ca, else no]
    #[arg(long, value_name = "WHETHER", requires = "tls_cert")]
    tls_auth_clients: Option<Demand>,
    /// Clients of Redis connect with TLS or through the Unix socket: `--port` is not opened
    #[arg(long, requires = "tls_port")]
    tls_only: bool,
}

/// Whether clients need a certificate.
#[derive(Clone, Copy, ValueEnum)]
enum Demand {
    /// Each client needs one.
    Yes,
    /// No client is asked for one.
    No,
    /// A client may show one, which then has to be valid.
    Optional,
}

impl TlsArguments {
    /// The port for clients of Redis.
    pub fn port(&self) -> Option<u16> {
        self.tls_port
    }

    /// The port for clients of memcached.
    pub fn memcached_port(&self) -> Option<u16> {
        self.memcached_tls_port
    }

    /// There is no port for clients of Redis without TLS.
    pub fn is_only(&self) -> bool {
        self.tls_only
    }

    /// Options of a server that listens on addresses; none without a port for TLS.
    pub fn options(&self, addresses: &[IpAddr]) -> Option<TlsOptions> {
        let binds = |port: Option<u16>| -> Vec<Bind> {
            let bind = |port| move |address: &IpAddr| Bind::Tcp(SocketAddr::new(*address, port));
            port.into_iter().flat_map(|port| addresses.iter().map(bind(port))).collect()
        };
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return None };
        self.tls_port.or(self.memcached_tls_port)?;
        let clients = match (self.tls_auth_clients, &self.tls_ca) {
            (Some(Demand::Yes), _) | (None, Some(_)) => ClientCertificates::Required,
            (Some(Demand::Optional), _) => ClientCertificates::Optional,
            (Some(Demand::No), _) | (None, None) => ClientCertificates::Ignored,
        };
        Some(TlsOptions {
            resp: binds(self.tls_port),
            memcached: binds(self.memcached_tls_port),
            certificate: certificate.clone(),
            key: key.clone(),
            authority: self.tls_ca.clone(),
            clients,
            handshake_timeout: TlsOptions::HANDSHAKE_TIMEOUT,
        })
    }
}
