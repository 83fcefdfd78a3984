// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tests need that make hosts in network namespaces.

use freeport_port::namespace::Namespace;
use freeport_testbed::skip;

/// Whether the process may make hosts; if not, says that the test is skipped.
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
