// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network namespace of the test's own, so that devices have known numbers and there are routes
//! to look up.

mod environment;

pub use environment::environment;

use std::io;
use std::process::Command;

/// Input of `ip`: two devices of four queues that are connected to each other, routes and
/// neighbours.
const SETTINGS: &str = "\
link set lo up
link add fp2 index 2 numrxqueues 4 numtxqueues 4 address 02:00:00:00:02:01 type veth \
    peer name fp3 index 3 numrxqueues 4 numtxqueues 4 address 02:00:00:00:03:01
link set fp2 addrgenmode none up
link set fp3 addrgenmode none up
addr add 10.9.2.1/24 dev fp2
addr add 10.9.3.1/24 dev fp3
addr add 2001:db8:902::1/64 dev fp2 nodad
neigh add 10.9.2.2 lladdr 02:00:00:00:02:02 dev fp2 nud permanent
neigh add 2001:db8:902::2 lladdr 02:00:00:00:02:02 dev fp2 nud permanent
route add 10.0.0.0/24 via 10.9.2.2
route add 10.0.1.0/24 via 10.9.3.2
route add blackhole 10.0.2.0/24
route add unreachable 192.0.2.8/32
route add prohibit 192.0.2.9/32
route add 2001:db8:0::/48 via 2001:db8:902::2
route add 2001:db8:1::/48 via 2001:db8:902::2
route add blackhole 2001:db8:2::/48
";

/// Moves the calling thread into a new network namespace, and sets it up.
pub fn enter() -> io::Result<()> {
    // SAFETY: the call only changes which network namespace this thread uses.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for line in SETTINGS.lines() {
        let output = Command::new("ip").args(line.split_whitespace()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("ip {line}: {}", said.trim())));
        }
    }
    for family in ["ipv4", "ipv6"] {
        std::fs::write(format!("/proc/sys/net/{family}/conf/all/forwarding"), "1")?;
    }
    Ok(())
}
