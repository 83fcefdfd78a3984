// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernels: functions applied to all elements of an array in one call.
//!
//! Code of kernels has no state, so any number of threads may run it at the same time.

use crate::compile::build_kernels;
use crate::kernel::KernelKind;
use crate::{Error, Image, Options, abi};
use freeport_ir::{FunctionId, Program};

/// The kernels of one library.
#[derive(Debug)]
pub struct Kernels {
    kernels: Vec<Kernel>,
    /// Unmapped after the last call.
    _library: libloading::Library,
}

#[derive(Debug)]
struct Kernel {
    name: String,
    code: abi::Kernel,
    /// Size of an element in bytes.
    width: usize,
    /// Number of operands, each as wide as an element.
    operands: usize,
}

impl Kernels {
    /// Builds and loads kernels of functions without effects, which are numbered in their order.
    ///
    /// # Errors
    /// As for [`build`](crate::build); a function with effects, or with parameters that are not
    /// those of its kind: elements of 8, 16, 32 or 64 bits and operands of the same width.
    pub fn build(
        program: &Program,
        kernels: &[(FunctionId, KernelKind)],
        options: &Options,
    ) -> Result<Self, Error> {
        Self::load(&build_kernels(program, kernels, options)?, kernels)
    }

    fn load(image: &Image, kinds: &[(FunctionId, KernelKind)]) -> Result<Self, Error> {
        let failed = |reason: String| Error::Load { library: image.library.clone(), reason };
        // SAFETY: the library was made by `build_kernels`, and has no initialisers.
        let library = unsafe { libloading::Library::new(&image.library) };
        let library = library.map_err(|error| failed(error.to_string()))?;
        // SAFETY: the symbol is a constant structure; its version is checked before any other use.
        let symbol = unsafe { library.get::<*const abi::Kernels>(b"freeport_kernels\0") };
        let symbol = symbol.map_err(|error| failed(error.to_string()))?;
        // SAFETY: the symbol points to a constant of the library, which is kept loaded.
        let found =
            unsafe { symbol.as_ref() }.ok_or_else(|| failed("it exports nothing".into()))?;
        let methods = image.manifest.elements.first().map(|element| &element.methods[..]);
        let methods = methods.unwrap_or_default();
        let count = kinds.len();
        if found.abi != abi::VERSION || found.count != count as u64 || methods.len() != count {
            return Err(failed("its manifest belongs to other kernels".into()));
        }
        // SAFETY: the table has `count` entries, which are constants of the library.
        let table = unsafe { std::slice::from_raw_parts(found.kernels, count) };
        let kernels = table.iter().zip(methods).map(|(code, method)| Kernel {
            name: method.name.clone(),
            code: *code,
            width: method.parameters.first().map_or(1, |bits| bits.div_ceil(8) as usize),
            operands: method.parameters.len().saturating_sub(1),
        });
        Ok(Self { kernels: kernels.collect(), _library: library })
    }

    /// Replaces all elements with kernel `at`, a [`KernelKind::Map`], and the same operands for each.
    /// Elements and operands are little-endian, without alignment, and follow each other.
    ///
    /// # Panics
    /// If there is no such kernel, or the bytes are no whole elements, or not one of each operand.
    pub fn map_same(&self, at: usize, values: &mut [u8], operands: &[u8]) {
        let kernel = &self.kernels[at];
        let count = kernel.count(values);
        assert_eq!(operands.len(), kernel.operand_bytes(), "operands of `{}`", kernel.name);
        let run = kernel.code.same.unwrap_or_else(|| kernel.is_no("map"));
        // SAFETY: there are `count` elements, and the operands of one.
        unsafe { run(values.as_mut_ptr(), count as u64, operands.as_ptr()) }
    }

    /// Replaces all elements with kernel `at`, a [`KernelKind::Map`]; the operands of the first element
    /// are followed by those of the second.
    ///
    /// # Panics
    /// If there is no such kernel, or the bytes are no whole elements, or not operands for each.
    pub fn map_each(&self, at: usize, values: &mut [u8], operands: &[u8]) {
        let kernel = &self.kernels[at];
        let count = kernel.count(values);
        let wanted = count * kernel.operand_bytes();
        assert_eq!(operands.len(), wanted, "operands of `{}`", kernel.name);
        let run = kernel.code.each.unwrap_or_else(|| kernel.is_no("map"));
        // SAFETY: there are `count` elements, and the operands of that many.
        unsafe { run(values.as_mut_ptr(), count as u64, operands.as_ptr()) }
    }

    /// Folds all elements with kernel `at`, a [`KernelKind::Fold`], and returns the last sigma.
    ///
    /// # Panics
    /// If there is no such kernel, or the bytes are no whole elements.
    pub fn fold(&self, at: usize, values: &[u8], sigma: u64) -> u64 {
        let kernel = &self.kernels[at];
        let count = kernel.count(values);
        let run = kernel.code.fold.unwrap_or_else(|| kernel.is_no("fold"));
        // SAFETY: there are `count` elements.
        unsafe { run(values.as_ptr(), count as u64, sigma) }
    }

    /// Sets the flag of each element to 1 if the condition of kernel `at`, a [`KernelKind::Test`], holds
    /// for it and the operands, and else to 0.
    ///
    /// # Panics
    /// If there is no such kernel, or the bytes are no whole elements, or not one of each operand,
    /// or there is not one flag for each element.
    pub fn test(&self, at: usize, values: &[u8], operands: &[u8], flags: &mut [u8]) {
        let kernel = &self.kernels[at];
        let count = kernel.count(values);
        assert_eq!(operands.len(), kernel.operand_bytes(), "operands of `{}`", kernel.name);
        assert_eq!(flags.len(), count, "flags of `{}`", kernel.name);
        let run = kernel.code.test.unwrap_or_else(|| kernel.is_no("test"));
        // SAFETY: there are `count` elements and flags, and the operands of one element.
        unsafe { run(values.as_ptr(), count as u64, operands.as_ptr(), flags.as_mut_ptr()) }
    }
}

impl Kernel {
    /// Returns the number of elements.
    fn count(&self, values: &[u8]) -> usize {
        let is_whole = values.len().is_multiple_of(self.width);
        assert!(is_whole, "`{}` takes elements of {} bytes", self.name, self.width);
        values.len() / self.width
    }

    /// Size in bytes of the operands of one element.
    fn operand_bytes(&self) -> usize {
        self.operands * self.width
    }

    fn is_no(&self, kind: &str) -> ! {
        panic!("the kernel `{}` is no {kind}", self.name)
    }
}
