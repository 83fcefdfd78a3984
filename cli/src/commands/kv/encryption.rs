// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS of `freeport kv cli`.

use anyhow::{Context, bail};
use clap::Args;
use freeport_kv_server::tls_files;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    StreamOwned,
};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files in which distributions have the public authorities.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[derive(Args)]
pub struct ClientTls {
    /// Encrypt with TLS
    #[arg(long, conflicts_with = "socket")]
    tls: bool,
    /// Certificates of authorities that may have signed the server's (PEM) [default: those of
    /// the system]
    #[arg(long, value_name = "FILE", requires = "tls")]
    cacert: Option<PathBuf>,
    /// Certificate to show to the server (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls", "cert"])]
    key: Option<PathBuf>,
    /// Accept every certificate of the server, so that anyone in between can read everything
    #[arg(long, requires = "tls", conflicts_with = "cacert")]
    insecure: bool,
    /// Name that the server's certificate must have [default: its address]
    #[arg(long, value_name = "NAME", requires = "tls")]
    sni: Option<String>,
}

impl ClientTls {
    /// The connection is encrypted.
    pub fn is_used(&self) -> bool {
        self.tls
    }

    /// Encrypts a connection to `HOST:PORT`, and waits for the handshake.
    ///
    /// # Errors
    /// A file cannot be used, or one side refuses the certificate of the other.
    pub fn connect(
        &self,
        mut stream: TcpStream,
        server: &str,
    ) -> anyhow::Result<StreamOwned<ClientConnection, TcpStream>> {
        let name = match &self.sni {
            Some(name) => ServerName::try_from(name.clone())
                .with_context(|| format!("--sni: `{name}` is no name of a host"))?,
            None => {
                let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                ServerName::try_from(host.to_owned())
                    .with_context(|| format!("`{host}` is no name of a host"))?
            }
        };
        let mut session = ClientConnection::new(Arc::new(self.config()?), name)?;
        while session.is_handshaking() {
            session.complete_io(&mut stream).with_context(|| {
                format!("the TLS handshake with {server} failed; does it serve TLS at this port?")
            })?;
        }
        Ok(StreamOwned::new(session, stream))
    }

    fn config(&self) -> anyhow::Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let builder = match self.insecure {
            true => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
            false => builder.with_root_certificates(self.authorities()?),
        };
        match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => builder
                .with_client_auth_cert(
                    tls_files::certificates(certificate)?,
                    tls_files::private_key(key)?,
                )
                .with_context(|| {
                    format!("{} and {} cannot be used", certificate.display(), key.display())
                }),
            _ => Ok(builder.with_no_client_auth()),
        }
    }

    fn authorities(&self) -> anyhow::Result<RootCertStore> {
        if let Some(path) = &self.cacert {
            return Ok(tls_files::authorities(path)?);
        }
        let Some(path) = BUNDLES.iter().map(Path::new).find(|path| path.exists()) else {
            bail!("the system has no certificates of authorities; name a file with --cacert");
        };
        let mut store = RootCertStore::empty();
        // A bundle may have some that the library does not know.
        store.add_parsable_certificates(tls_files::certificates(path)?);
        Ok(store)
    }
}

/// Accepts every certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
