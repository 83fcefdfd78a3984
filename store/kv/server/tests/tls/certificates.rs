// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates and keys, made by the program `openssl` in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// A certificate with its key.
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A folder with an authority, and the certificates that it has signed.
pub struct Folder {
    folder: TempDir,
}

impl Folder {
    /// A new authority.
    pub fn new() -> Self {
        let folder = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let request = ["req", "-x509", "-days", "30", "-subj", "/CN=authority"];
        let files = ["-keyout", "authority.key", "-out", "authority.pem"];
        folder.openssl(&[&request[..], &NEW_KEY, &files].concat());
        folder
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The certificate of the authority.
    pub fn authority(&self) -> PathBuf {
        self.path().join("authority.pem")
    }

    /// A new certificate for this host.
    pub fn pair(&self, name: &str) -> Pair {
        let [key, request, certificate] =
            ["key", "request", "pem"].map(|ending| format!("{name}.{ending}"));
        let subject = format!("/CN={name}");
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
        let words = ["req", "-subj", &subject, "-addext", names];
        self.openssl(&[&words[..], &NEW_KEY, &["-keyout", &key, "-out", &request]].concat());
        let authority = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"];
        let words = ["x509", "-req", "-days", "30", "-copy_extensions", "copy"];
        let files = ["-in", &request, "-out", &certificate];
        self.openssl(&[&words[..], &authority, &files].concat());
        Pair { certificate: self.path().join(certificate), key: self.path().join(key) }
    }

    /// Runs `openssl` in the folder.
    pub fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl").args(arguments).current_dir(self.path()).output();
        let output = output.expect("openssl is installed");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments:?}: {said}");
    }
}
