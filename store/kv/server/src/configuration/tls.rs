// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters of encrypted connections. They are used together: each change reads all files again.

use super::{Configuration, PARAMETERS, Parameter, Refusal, parameters};
use crate::options::{Bind, Options};
use crate::tls::{ClientCertificates, TlsOptions, TlsSettings};

/// Parameters that connections depend on.
const USED: [&str; 7] = [
    "tls-cert-file",
    "tls-key-file",
    "tls-ca-cert-file",
    "tls-auth-clients",
    "tls-protocols",
    "tls-session-caching",
    "tls-session-cache-size",
];

impl Configuration {
    /// Uses changed parameters for connections from now on.
    ///
    /// # Errors
    /// Files or settings cannot be used. Nothing has changed then.
    pub(super) fn renew_tls(
        &self,
        changes: &[(usize, String)],
        values: &[String],
    ) -> Result<(), Refusal> {
        let is_used = |(at, _): &&(usize, String)| USED.contains(&PARAMETERS[*at].name);
        let Some((first, _)) = changes.iter().find(is_used) else { return Ok(()) };
        let refuse = |reason| Refusal::Value { name: PARAMETERS[*first].name.into(), reason };
        let Some(tls) = &self.tls else {
            let reason = "the server has no port for TLS; `--tls-port` opens one";
            return Err(refuse(reason.into()));
        };
        let settings = TlsSettings::from_parameters(|name| {
            let at = parameters::find(name.as_bytes()).expect("they are in the table");
            let changed = changes.iter().find(|(other, _)| *other == at);
            changed.map_or(&values[at], |(_, value)| value).clone()
        });
        tls.replace(&settings).map_err(|error| refuse(error.to_string()))
    }
}

/// Value of a parameter at the start.
pub(super) fn initial(parameter: &Parameter, options: &Options) -> String {
    let Some(tls) = &options.tls else { return parameter.default.to_owned() };
    match parameter.name {
        "tls-port" => port(tls).to_string(),
        "tls-cert-file" => tls.certificate.display().to_string(),
        "tls-key-file" => tls.key.display().to_string(),
        "tls-ca-cert-file" => {
            tls.authority.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
        }
        "tls-auth-clients" => match tls.clients {
            ClientCertificates::Required => "yes".into(),
            ClientCertificates::Optional => "optional".into(),
            ClientCertificates::Ignored => "no".into(),
        },
        _ => parameter.default.to_owned(),
    }
}

/// The port for clients of Redis, or 0.
fn port(tls: &TlsOptions) -> u16 {
    let ports = tls.resp.iter().filter_map(|bind| match bind {
        Bind::Tcp(address) => Some(address.port()),
        Bind::Unix(_) | Bind::Fabric(_) => None,
    });
    ports.into_iter().next().unwrap_or(0)
}
