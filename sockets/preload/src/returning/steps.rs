// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The step that each operation takes to move its connection out of the kernel, or back.

use crate::state::connection::phase;
use crate::state::connections::Stream;
use freeport_sockets_proto::Reason;

impl Stream {
    /// Moves the connection out of the kernel, or back, as far as that is possible now. Each
    /// operation calls it until both streams are in rings.
    #[inline]
    pub fn proceed(&self, descriptor: i32) {
        let phase = self.shared.phase();
        if self.is_returning(phase) {
            self.proceed_returning(descriptor);
        } else if phase & (phase::LOOKS | phase::CLAIMED) == phase::CLAIMED {
            self.proceed_from(descriptor, phase);
        } else if self.is_recalled(phase) {
            self.bring_back(descriptor, Reason::Recalled);
        }
    }
}
