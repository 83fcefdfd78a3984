// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that are killed, machines that lose the end of a log, and disks without room.
