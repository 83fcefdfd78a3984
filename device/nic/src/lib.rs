// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where packet programs run: the ports that frames come from and go to, the devices that hold a
//! program, and the manager that steers them.

pub mod packet;
pub mod port;
pub mod trace;
