// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates and keys in PEM files.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// Bytes that a file may have. Bundles of all public authorities have some 200 KiB.
const FILE_BYTES: u64 = 4 << 20;
/// Permissions of others than the owner and its group.
const OTHERS: u32 = 0o007;

/// The certificates of a file, in its order: at least one.
///
/// # Errors
/// The file cannot be read, has no certificate, or is no PEM.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| content(path, format!("no valid PEM: {error}")))?;
    match found.is_empty() {
        true => Err(content(path, "no certificate; it needs a part `BEGIN CERTIFICATE`")),
        false => Ok(found),
    }
}

/// The private key of a file.
///
/// # Errors
/// The file cannot be read, has no key, a key with a password, or is no PEM.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path)?;
    let is_encrypted = String::from_utf8_lossy(&text).lines().any(|line| {
        line.starts_with("-----BEGIN ENCRYPTED") || line.starts_with("Proc-Type: 4,ENCRYPTED")
    });
    if is_encrypted {
        return Err(content(
            path,
            "the key has a password; remove it with `openssl pkey -in FILE -out NEWFILE`",
        ));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            content(path, "no private key; it needs a part `BEGIN PRIVATE KEY`")
        }
        error => content(path, format!("no valid PEM: {error}")),
    })
}

/// The authorities of a file, which certificates of the other side are checked with.
///
/// # Errors
/// The file cannot be read, or has a certificate that cannot be used.
pub fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store
            .add(certificate)
            .map_err(|error| content(path, format!("certificate of an authority: {error}")))?;
    }
    Ok(store)
}

/// Every user of the machine may read or change a file.
pub fn is_open_to_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & OTHERS != 0)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::Read { path: path.to_owned(), error };
    let mut text = vec![];
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(content(path, "larger than 4 MiB, so no file of certificates or keys"));
    }
    if text.trim_ascii().is_empty() {
        return Err(content(path, "the file is empty"));
    }
    Ok(text)
}

fn content(path: &Path, reason: impl Into<String>) -> TlsError {
    TlsError::Content { path: path.to_owned(), reason: reason.into() }
}
