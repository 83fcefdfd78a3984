// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs with OpenSSL as clients: `openssl s_client`, `redis-cli` and `redis-benchmark`.

use std::io::Write;
use std::process::{Command, Stdio};

use freeport_kv_server::{ClientCertificates, TlsOptions};
use freeport_testbed::skip;

use super::certificates::{Folder, Pair};
use super::{address, memcached_address, options, serve};

/// Output of a program that ends well; none if it is not installed.
fn output(command: &mut Command, input: &str) -> Option<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    // It may end before it has read.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it is a child");
    assert!(output.status.success(), "{command:?}: {output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn openssl_connects_with_both_versions() {
    let folder = Folder::new();
    let server = serve(options(&folder), 1);
    for version in ["-tls1_2", "-tls1_3"] {
        for (address, request, reply) in [
            (address(&server), "PING\r\nQUIT\r\n", "+PONG\r\n+OK\r\n"),
            (memcached_address(&server), "mn\r\nquit\r\n", "MN\r\n"),
        ] {
            let mut command = Command::new("openssl");
            command.args(["s_client", "-quiet", "-verify_quiet", "-verify_return_error", version]);
            command.args(["-connect", &address.to_string(), "-CAfile"]).arg(folder.authority());
            let said = output(&mut command, request).expect("openssl is installed");
            assert_eq!(said, reply, "{version}");
        }
    }
}

#[test]
fn redis_programs_connect() {
    let folder = Folder::new();
    let tls = TlsOptions {
        authority: Some(folder.authority()),
        clients: ClientCertificates::Required,
        ..options(&folder)
    };
    let server = serve(tls, 2);
    let Pair { certificate, key } = folder.pair("client");
    let port = address(&server).port().to_string();
    let run = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(["--tls", "-p", &port, "--cacert"]).arg(folder.authority());
        command.arg("--cert").arg(&certificate).arg("--key").arg(&key).args(words);
        output(&mut command, "")
    };
    let Some(said) = run("redis-cli", &["SET", "key", "value"]) else {
        return skip("redis-cli is not installed");
    };
    assert_eq!(said, "OK\n");
    for pipeline in ["1", "16"] {
        let words = ["-n", "2000", "-c", "10", "-P", pipeline, "-d", "3000", "-t", "set,get", "-q"];
        let Some(said) = run("redis-benchmark", &words) else {
            return skip("redis-benchmark is not installed");
        };
        assert!(said.contains("GET:") && !said.contains("rror"), "{said}");
    }
    assert_eq!(run("redis-cli", &["GET", "key:__rand_int__"]).map(|it| it.len()), Some(3_001));
}
