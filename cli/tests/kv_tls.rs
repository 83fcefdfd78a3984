// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS of `freeport kv serve` and `freeport kv cli`.

use crate::kv_server::{KvServer, output_of};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with an authority (`ca`), and certificates that it signed for this host.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.openssl(
            "req -x509 -days 30 -subj /CN=authority -nodes -newkey ec \
                        -pkeyopt ec_paramgen_curve:prime256v1 -keyout ca.key -out ca.pem",
        );
        for name in ["server", "client"] {
            folder.openssl(&format!(
                "req -subj /CN={name} -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -nodes \
                 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -keyout {name}.key \
                 -out {name}.csr"
            ));
            folder.openssl(&format!(
                "x509 -req -in {name}.csr -days 30 -CA ca.pem -CAkey ca.key -CAcreateserial \
                 -copy_extensions copy -out {name}.pem"
            ));
        }
        folder
    }

    fn openssl(&self, line: &str) {
        let mut command = Command::new("openssl");
        let output = command.args(line.split_whitespace()).current_dir(&self.0).output();
        let output = output.expect("openssl is installed");
        assert!(output.status.success(), "{line}: {output:?}");
    }

    fn path(&self, name: &str) -> String {
        Path::join(self.0.path(), name).to_str().expect("text").to_owned()
    }

    /// Options of a server with more of them.
    fn serve(&self, more: &[&str]) -> KvServer {
        let [certificate, key] = ["server.pem", "server.key"].map(|name| self.path(name));
        let words = ["--tls-port", "0", "--tls-cert", &certificate, "--tls-key", &key];
        KvServer::start(&[&words[..], more].concat())
    }
}

/// Runs `PING` with words.
fn ping(server: &KvServer, words: &[&str]) -> Output {
    let port = server.port("resp_tls");
    output_of(&[&["kv", "cli", "--server", &port, "--tls"], words, &["PING"]].concat(), "")
}

fn is_answered(output: &Output) -> bool {
    output.status.success() && output.stdout == b"PONG\n"
}

#[test]
fn servers_and_clients_check_certificates() {
    let folder = Folder::new();
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|it| folder.path(it));
    let server = folder.serve(&["--tls-only", "--memcached-tls-port", "0"]);
    assert!(is_answered(&ping(&server, &["--cacert", &ca])));
    assert!(is_answered(&ping(&server, &["--cacert", &ca, "--sni", "localhost"])));
    assert!(is_answered(&ping(&server, &["--insecure"])));
    for (words, reason) in [
        (&["--cacert", &ca, "--sni", "elsewhere"][..], "elsewhere"),
        (&["--cacert", &certificate], "certificate"),
        (&["--cacert", &key], "BEGIN CERTIFICATE"),
    ] {
        let output = ping(&server, words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(reason), "{words:?}: {said}");
    }
    assert!(server.ready.contains("\"resp\":[]"), "{}", server.ready);
    assert_ne!(server.port("memcached_tls"), server.port("memcached"));

    let server = folder.serve(&["--tls-ca", &ca]);
    let output = ping(&server, &["--cacert", &ca]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("CertificateRequired"), "{output:?}");
    let own = ["--cacert", &ca, "--cert", &certificate, "--key", &key];
    assert!(is_answered(&ping(&server, &own)));
    assert_eq!(server.reply(&["PING"]), "PONG", "without TLS");

    let server = folder.serve(&["--tls-ca", &ca, "--tls-auth-clients", "optional"]);
    assert!(is_answered(&ping(&server, &["--cacert", &ca])));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = Folder::new();
    let [certificate, key, other] =
        ["server.pem", "server.key", "client.key"].map(|name| folder.path(name));
    let start = ["kv", "serve", "--port", "0", "--tls-port", "0", "--tls-cert", &certificate];
    let output = output_of(&[&start[..], &["--tls-key", &other]].concat(), "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("client.key: not the key"), "{said}");
    let without_port = ["kv", "serve", "--tls-cert", &certificate, "--tls-key", &key];
    for words in [&start[..], &without_port] {
        assert_eq!(output_of(words, "").status.code(), Some(2), "{words:?}");
    }

    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&key, open).expect("it is ours");
    let words = ["--tls-key", &key, "--tls-auth-clients", "yes"];
    let output = output_of(&[&start[..], &words].concat(), "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("tls-ca-cert-file"), "{said}");
    assert!(said.contains("every user of this machine can read the private key"), "{said}");
}
