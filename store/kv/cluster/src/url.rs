// SPDX-License-Identifier: Apache-2.0 OR MIT
//! URLs of registries.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::etcd::{EtcdOptions, EtcdRegistry};
use crate::file::FileRegistry;
use crate::registry::{Registry, RegistryError};

/// Where a registry is: `file:FOLDER`, or
/// `etcd://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/PREFIX]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryUrl {
    /// A folder of this machine.
    File(PathBuf),
    /// An etcd cluster.
    Etcd(EtcdOptions),
}

/// A text is no URL of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUrlError(String);

/// A registry was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The URL is wrong.
    Url(ParseUrlError),
    /// The registry cannot be used.
    Registry(RegistryError),
}

/// Opens the registry with a URL, as [`RegistryUrl`] describes. etcd is not contacted yet.
///
/// # Errors
/// The text is no such URL, or the folder cannot be used.
pub fn open(url: &str) -> Result<Arc<dyn Registry>, OpenError> {
    let url: RegistryUrl = url.parse().map_err(OpenError::Url)?;
    url.open().map_err(OpenError::Registry)
}

impl RegistryUrl {
    /// Opens the registry. etcd is not contacted yet.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(&self) -> Result<Arc<dyn Registry>, RegistryError> {
        Ok(match self {
            Self::File(folder) => Arc::new(FileRegistry::open(folder)?),
            Self::Etcd(options) => Arc::new(EtcdRegistry::new(options.clone())),
        })
    }
}

impl FromStr for RegistryUrl {
    type Err = ParseUrlError;

    fn from_str(text: &str) -> Result<Self, ParseUrlError> {
        if let Some(path) = text.strip_prefix("file:") {
            // `file:///a` is the long form of `file:/a`.
            let path = path.strip_prefix("//").filter(|it| it.starts_with('/')).unwrap_or(path);
            return match path.is_empty() || path.starts_with("//") {
                true => Err(ParseUrlError(format!("there is no folder in '{text}'"))),
                false => Ok(Self::File(path.into())),
            };
        }
        match text.strip_prefix("etcd://") {
            Some(rest) => rest.parse().map(Self::Etcd).map_err(ParseUrlError),
            None => Err(ParseUrlError(format!("'{text}' begins with neither file: nor etcd://"))),
        }
    }
}

impl fmt::Display for RegistryUrl {
    /// The URL without a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(folder) => write!(formatter, "file:{}", folder.display()),
            Self::Etcd(options) => write!(formatter, "etcd://{options}"),
        }
    }
}

impl fmt::Display for ParseUrlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "no URL of a registry: {}; write file:FOLDER, or \
             etcd://HOST:PORT[,HOST:PORT...][/PREFIX]",
            self.0
        )
    }
}

impl std::error::Error for ParseUrlError {}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => fmt::Display::fmt(error, formatter),
            Self::Registry(error) => fmt::Display::fmt(error, formatter),
        }
    }
}

impl std::error::Error for OpenError {}
