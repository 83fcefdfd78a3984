// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of functions, as clients ask for it.

use freeport_kv_functions::{Kind, Registry};
use freeport_kv_protocol::batch::{FunctionEntry, FunctionKind, write_function};

use super::conditions::Replies;

/// Replies with the list of all functions.
#[cold]
pub(super) fn list(registry: &Registry, replies: &mut Replies<'_>) {
    let mut list = vec![];
    for signature in registry.signatures() {
        let kind = match signature.kind {
            Kind::Update => FunctionKind::Update,
            Kind::Reduce => FunctionKind::Reduce,
            Kind::Filter => FunctionKind::Filter,
        };
        let entry = FunctionEntry {
            id: signature.id,
            kind,
            elements: signature.elements.iter().fold(0, |mask, it| mask | 1 << it.code()),
            name: signature.name,
            operands: u8::try_from(signature.operands.len()).unwrap_or(u8::MAX),
        };
        write_function(&mut list, &entry);
    }
    replies.writer.value(replies.output, &list);
}
