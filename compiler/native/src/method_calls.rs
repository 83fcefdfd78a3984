// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Method calls between instances, taken from the code's record and stored as the interpreter
//! records them: as a choice of the caller and as a host event of the callee.

use crate::Graph;
use crate::library::take;
use freeport_ir::oracle::{HostAction, HostEvent, MethodCall};
use freeport_ir::{Bits, InstanceId, MethodId};

impl Graph {
    /// Records the calls since it was last called. It runs after every action that can cause calls,
    /// so they are in order with the host's own actions.
    pub(crate) fn note_method_calls(&mut self) {
        let bytes = take(&mut self.code.runtime().calls);
        let mut left = &bytes[..];
        while let Some(rest) = self.note_method_call(left) {
            left = rest;
        }
    }

    /// Records the first call; returns the remaining bytes.
    fn note_method_call<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let (head, mut left) = bytes.split_at_checked(32)?;
        let [caller, callee, at, before_firing] =
            [0, 8, 16, 24].map(|at| Bits::from_le_bytes(64, &head[at..at + 8]).to_u64());
        let manifest = self.manifest().clone();
        let (caller, callee, at) = (caller as usize, callee as usize, at as usize);
        let element = manifest.instances.get(callee)?.element;
        let method = manifest.elements.get(element)?.methods.get(at)?;
        let mut next = |width: u32| {
            let (bytes, rest) = left.split_at_checked(width.div_ceil(8) as usize)?;
            left = rest;
            Some(Bits::from_le_bytes(width, bytes))
        };
        let args =
            method.parameters.iter().map(|width| next(*width)).collect::<Option<Vec<_>>>()?;
        let result = match method.result {
            Some(width) => Some(next(width)?),
            None => None,
        };
        let action = HostAction::Method(at, args.clone());
        self.host_events[callee].push(HostEvent { before_firing, action });
        self.answers[callee].extend(result.clone());
        let (instance, method) = (InstanceId::new(callee), MethodId::new(at));
        self.method_calls[caller].push(MethodCall { instance, method, args, result });
        Some(left)
    }
}
