// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions without an owning element, called by the host on bit vectors.

use crate::compile::build_functions;
use crate::graph::argument_bytes;
use crate::library::Instance;
use crate::manifest::MethodInfo;
use crate::{Error, Image, Options};
use freeport_ir::{Bits, FunctionId, Program, TrapCode};

/// The functions of one library.
pub struct Functions {
    code: Instance,
    signatures: Vec<MethodInfo>,
    traps: Vec<TrapCode>,
}

/// Outcome of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Returned {
    /// Result, if the function has one; 0 after a trap.
    pub result: Option<Bits>,
    /// Trap that ended it early, if any.
    pub trap: Option<TrapCode>,
    /// Number of loads and stores out of range.
    pub out_of_range: u64,
}

/// Builds and loads one function, which has number 0.
///
/// # Errors
/// As for [`build`](crate::build) and [`Functions::load`].
pub fn build_function(
    program: &Program,
    function: FunctionId,
    options: &Options,
) -> Result<Functions, Error> {
    Functions::load(&build_functions(program, &[function], options)?)
}

impl Functions {
    /// Loads an image made by [`build_functions`].
    ///
    /// # Errors
    /// A library that cannot be loaded, or an image of another kind.
    pub fn load(image: &Image) -> Result<Self, Error> {
        let code = Instance::load(image, 0)?;
        let element = image.manifest.elements.first();
        let signatures = element.map(|element| element.methods.clone()).unwrap_or_default();
        let traps = image.manifest.traps.iter().map(|code| TrapCode::from(*code)).collect();
        Ok(Self { code, signatures, traps })
    }

    /// Calls function number `at` of those that were built.
    ///
    /// # Errors
    /// There is no such function, or the arguments do not fit its parameters.
    pub fn call(&mut self, at: usize, arguments: &[Bits]) -> Result<Returned, Error> {
        let signature = self.signatures.get(at);
        let unknown = || Error::unknown("the library", format!("function {at}"));
        let MethodInfo { name, parameters, result } = signature.ok_or_else(unknown)?;
        let given = argument_bytes(name, parameters, arguments)?;
        let result = *result;
        let mut bytes = vec![0; result.map_or(0, |width| width.div_ceil(8) as usize)];
        let before = self.code.instance(0).out_of_range;
        let trap = self.code.call(0, at as u32, &given, &mut bytes);
        Ok(Returned {
            result: result.map(|width| Bits::from_le_bytes(width, &bytes)),
            trap: self.traps.get((trap as usize).wrapping_sub(1)).copied(),
            out_of_range: self.code.instance(0).out_of_range - before,
        })
    }
}
