// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of the disk: writes are refused with the reason, nothing that was released is lost, and
//! the journal works again when the fault ends.
