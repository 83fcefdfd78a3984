// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared parts of the tests that create hosts in network namespaces.

use freeport_port::namespace::Namespace;
use freeport_testbed::skip;

/// Whether the process may create hosts; if not, skips the test.
#[track_caller]
pub fn may_make_hosts() -> bool {
    match Namespace::new() {
        Ok(_) => true,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            skip("this process may not make network namespaces");
            false
        }
        Err(error) => panic!("{error}"),
    }
}
