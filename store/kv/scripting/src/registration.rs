// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions that a library has registered.

use crate::header::Flags;
use mlua::Function;
use std::rc::Rc;

/// A function of a library.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) callback: Function,
    pub(crate) description: Option<Rc<[u8]>>,
    pub(crate) flags: Flags,
}

/// Functions of the library that is being loaded.
pub(crate) type Registration = Vec<Registered>;
