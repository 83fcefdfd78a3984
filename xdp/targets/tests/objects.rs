// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs of `programs/xdp` as objects.

use freeport_ebpf::object::Object;
use std::path::Path;

/// Returns the bytes of the object of a source, named without its `.bpf.c`.
pub fn compiled(source: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/xdp");
    freeport_testbed::object(&folder.join(format!("{source}.bpf.c")), freeport_xdp::compiler())
}

/// Returns the parsed object of a source.
pub fn object(source: &str) -> Object {
    Object::parse(&compiled(source)).expect("clang makes such objects")
}
