// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that are no places, or break the protocol.
