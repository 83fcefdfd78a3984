// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of `freeport kv serve` for replicas, and for nodes of a cluster.

use anyhow::{Context, bail};
use clap::Args;
use freeport_kv_cluster::{Address, RegistryUrl};
use freeport_kv_server::{ClusterOptions, ReplicationOptions};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Args)]
pub struct ReplicationArguments {
    /// Server to copy, and to follow from then on; this one takes no writes. In a cluster, the
    /// registry says this
    #[arg(long, value_name = "HOST:PORT", requires = "dir", value_parser = address,
          conflicts_with = "cluster")]
    replicaof: Option<Address>,
    /// User as whom a replica logs in to its primary
    #[arg(long, value_name = "NAME", default_value = "")]
    masteruser: String,
    /// File with the password for that in its first line
    #[arg(long, value_name = "FILE")]
    masterauth_file: Option<PathBuf>,
    /// Number of replicas without which a primary takes no writes
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    min_replicas_to_write: u32,
    /// Seconds since its last answer after which a replica does not count for that
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    min_replicas_max_lag: u64,
    /// Registry of a cluster that the server is a node of: file:FOLDER for one machine, or
    /// etcd://HOST:PORT[,HOST:PORT...]/PREFIX
    #[arg(long, value_name = "URL", value_parser = registry)]
    cluster: Option<RegistryUrl>,
    /// Host, and port if it is another one, by which clients and other nodes reach this node
    /// [default: the first of --bind]
    #[arg(long, value_name = "HOST[:PORT]", requires = "cluster")]
    announce: Option<String>,
    /// Time without a sign of life after which a replica takes the place of a primary, in
    /// milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5000, requires = "cluster",
          value_parser = clap::value_parser!(u64).range(100..=600_000))]
    cluster_timeout: u64,
}

impl ReplicationArguments {
    /// The registry.
    pub fn registry(&self) -> Option<&RegistryUrl> {
        self.cluster.as_ref()
    }

    /// The server that it follows.
    pub fn follows(&self) -> Option<&Address> {
        self.replicaof.as_ref()
    }

    /// Options of the server.
    ///
    /// # Errors
    /// The file with the password cannot be read.
    pub fn replication(&self) -> anyhow::Result<ReplicationOptions> {
        Ok(ReplicationOptions {
            follows: self.replicaof.clone(),
            user: self.masteruser.clone(),
            password: self.masterauth_file.as_deref().map_or(Ok(String::new()), first_line)?,
            min_replicas: self.min_replicas_to_write,
            max_lag: Duration::from_secs(self.min_replicas_max_lag),
            ..ReplicationOptions::default()
        })
    }

    /// Options of a node with these addresses and folder.
    ///
    /// # Errors
    /// The node cannot be part of a cluster, or the registry cannot be used.
    pub fn cluster(
        &self,
        binds: &[IpAddr],
        folder: Option<&Path>,
    ) -> anyhow::Result<Option<ClusterOptions>> {
        let Some(url) = &self.cluster else { return Ok(None) };
        if folder.is_none() {
            bail!("a node of a cluster needs a folder: its log is what replicas get; add --dir");
        }
        let address = self.announced(binds)?;
        let registry = url.open().with_context(|| format!("{url} cannot be used"))?;
        let timeout = Duration::from_millis(self.cluster_timeout);
        Ok(Some(ClusterOptions { registry, address, timeout }))
    }

    /// Host and port of the node. The server replaces ports that are 0 by its own.
    fn announced(&self, binds: &[IpAddr]) -> anyhow::Result<Address> {
        let address = match &self.announce {
            Some(text) if is_host(text) => Address { host: bare(text), ..Address::default() },
            Some(text) => address(text).map_err(anyhow::Error::msg)?,
            None => {
                let Some(first) = binds.first().filter(|bind| !bind.is_unspecified()) else {
                    bail!("name the host by which others reach this node: --announce HOST");
                };
                Address { host: first.to_string(), ..Address::default() }
            }
        };
        Ok(address)
    }
}

/// The first line of a file with a password.
///
/// # Errors
/// The file cannot be read.
pub fn first_line(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(text.lines().next().unwrap_or("").to_owned())
}

/// There is no port: a name, or an address of either kind.
fn is_host(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || bare(text).parse::<IpAddr>().is_ok() || !text.contains(':')
}

/// A host without the brackets of an IPv6 address.
fn bare(host: &str) -> String {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).to_owned()
}

/// Parses `HOST:PORT`.
fn address(text: &str) -> Result<Address, String> {
    let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let parts = parts.and_then(|(host, port)| Some((bare(host), port.parse::<u16>().ok()?)));
    let (host, port) = parts.ok_or("expected HOST:PORT, such as 10.0.0.1:6379")?;
    Ok(Address { host, port, ..Address::default() })
}

fn registry(text: &str) -> Result<RegistryUrl, String> {
    text.parse::<RegistryUrl>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let of =
            |host: &str| Ok(Address { host: host.to_owned(), port: 6379, ..Address::default() });
        assert_eq!(address("kv-1.example:6379"), of("kv-1.example"));
        assert_eq!(address("[::1]:6379"), of("::1"));
        for wrong in ["", "kv-1", ":6379", "kv-1:x", "kv-1:65536"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
        for host in ["kv-1", "10.0.0.1", "::1", "[::1]"] {
            assert!(is_host(host), "{host}");
        }
        for with_port in ["kv-1:6379", "10.0.0.1:6379", "[::1]:6379"] {
            assert!(!is_host(with_port), "{with_port}");
        }
    }
}
