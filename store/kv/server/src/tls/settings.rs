// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Settings of encrypted connections, from options at the start and from parameters later.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

use super::{ClientCertificates, TlsError, TlsOptions, files};

/// Settings of encrypted connections, as parameters have them.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    certificate: PathBuf,
    key: PathBuf,
    authority: Option<PathBuf>,
    clients: ClientCertificates,
    /// Names of versions, or nothing for all.
    protocols: String,
    /// Number of sessions that clients can resume.
    sessions: usize,
}

/// Sessions that clients can resume, unless another number is chosen; that of Redis.
const SESSIONS: usize = 20_480;

impl TlsSettings {
    /// Settings at the start.
    pub fn new(options: &TlsOptions) -> Self {
        Self {
            certificate: options.certificate.clone(),
            key: options.key.clone(),
            authority: options.authority.clone(),
            clients: options.clients,
            protocols: String::new(),
            sessions: SESSIONS,
        }
    }

    /// Settings from values of parameters, which are of their kinds.
    pub fn from_parameters(value: impl Fn(&str) -> String) -> Self {
        let sessions = match value("tls-session-caching").as_str() {
            "no" => 0,
            // Redis limits the number as well when it is 0, to the same one.
            _ => match value("tls-session-cache-size").parse().unwrap_or(0) {
                0 => SESSIONS,
                number => number,
            },
        };
        Self {
            certificate: value("tls-cert-file").into(),
            key: value("tls-key-file").into(),
            authority: Some(value("tls-ca-cert-file")).filter(|it| !it.is_empty()).map(Into::into),
            clients: match value("tls-auth-clients").as_str() {
                "no" => ClientCertificates::Ignored,
                "optional" => ClientCertificates::Optional,
                _ => ClientCertificates::Required,
            },
            protocols: value("tls-protocols"),
            sessions,
        }
    }

    /// Reads the files, and makes what connections begin with.
    pub(super) fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let certificates = files::certificates(&self.certificate)?;
        let key = files::private_key(&self.key)?;
        if files::is_open_to_others(&self.key) {
            tracing::warn!(
                path = %self.key.display(),
                "every user of this machine can read the private key; `chmod 600` protects it"
            );
        }
        let unusable =
            |path: &Path, reason: String| TlsError::Content { path: path.to_owned(), reason };
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&self.versions()?)
            .map_err(|error| TlsError::Settings(error.to_string()))?;
        let builder = match (self.clients, &self.authority) {
            (ClientCertificates::Ignored, _) => builder.with_no_client_auth(),
            (_, None) => {
                return Err(TlsError::Settings(
                    "certificates of clients are checked with those of authorities, and there is \
                     no file of them (tls-ca-cert-file)"
                        .into(),
                ));
            }
            (clients, Some(path)) => {
                let roots = Arc::new(files::authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = match clients {
                    ClientCertificates::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build();
                let verifier = verifier.map_err(|error| unusable(path, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(certificates, key);
        let mut config = config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => unusable(
                &self.key,
                format!("not the key of the certificate in {}", self.certificate.display()),
            ),
            rustls::Error::InvalidCertificate(reason) => unusable(
                &self.certificate,
                format!(
                    "the first certificate cannot be used ({reason:?}); it has to be of \
                         version 3 (X.509)"
                ),
            ),
            error => unusable(&self.key, error.to_string()),
        })?;
        config.session_storage = match self.sessions {
            0 => Arc::new(NoServerSessionStorage {}),
            number => ServerSessionMemoryCache::new(number),
        };
        Ok(Arc::new(config))
    }

    fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        let mut versions = vec![];
        for word in self.protocols.split_whitespace() {
            versions.push(match word.to_ascii_lowercase().as_str() {
                "tlsv1.2" => &TLS12,
                "tlsv1.3" => &TLS13,
                _ => {
                    return Err(TlsError::Settings(format!(
                        "protocol `{word}` is not supported; TLSv1.2 and TLSv1.3 are"
                    )));
                }
            });
        }
        match versions.is_empty() {
            true => Ok(vec![&TLS13, &TLS12]),
            false => Ok(versions),
        }
    }
}
