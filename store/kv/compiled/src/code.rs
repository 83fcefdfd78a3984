// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A function in a store: which code it calls for a type of elements.

use crate::interpreted::Interpreted;
use freeport_kv_functions::{Element, Kind, UserFunction, keep_flagged};
use freeport_native::Kernels;
use std::sync::Arc;

/// The functions of a file. All threads of a server call them, at the same time.
pub(crate) enum Library {
    Native(Kernels),
    Interpreted(Interpreted),
}

/// A function of a library.
pub(crate) struct Function {
    library: Arc<Library>,
    kind: Kind,
    /// Number in the library, by the code of the type of elements.
    numbers: [Option<usize>; Element::ALL.len()],
}

/// Number of elements that a filter tests at once.
const BLOCK: usize = 512;

/// Evaluates an expression with the functions of either library.
macro_rules! in_library {
    ($library:expr, $functions:ident => $body:expr) => {
        match &*$library {
            Library::Native($functions) => $body,
            Library::Interpreted($functions) => $body,
        }
    };
}

impl Function {
    /// Returns a function with a number in the library for each of these types of elements.
    pub fn new(
        library: Arc<Library>,
        kind: Kind,
        numbers: impl IntoIterator<Item = (Element, usize)>,
    ) -> Self {
        let mut function = Self { library, kind, numbers: [None; Element::ALL.len()] };
        for (element, number) in numbers {
            function.numbers[usize::from(element.code())] = Some(number);
        }
        function
    }

    fn number(&self, element: Element) -> usize {
        let number = self.numbers[usize::from(element.code())];
        number.expect("a store calls functions only for elements for which they are registered")
    }
}

impl UserFunction for Function {
    fn call(&self, element: Element, value: u64, operands: &[u64]) -> u64 {
        let (number, width) = (self.number(element), element.width());
        let value = value.to_le_bytes();
        if self.kind == Kind::Reduce {
            return self.fold(element, &value[..width], operands[0]);
        }
        let operands: Vec<u8> =
            operands.iter().flat_map(|one| one.to_le_bytes().into_iter().take(width)).collect();
        let mut result = [0; 8];
        if self.kind == Kind::Filter {
            let flag = &mut result[..1];
            in_library!(self.library, it => it.test(number, &value[..width], &operands, flag));
        } else {
            result[..width].copy_from_slice(&value[..width]);
            in_library!(self.library, it => it.map_same(number, &mut result[..width], &operands));
        }
        u64::from_le_bytes(result)
    }

    fn update_same(&self, element: Element, values: &mut [u8], operands: &[u8]) {
        let number = self.number(element);
        in_library!(self.library, it => it.map_same(number, values, operands));
    }

    fn update_each(&self, element: Element, values: &mut [u8], operands: &[u8]) {
        let number = self.number(element);
        in_library!(self.library, it => it.map_each(number, values, operands));
    }

    fn fold(&self, element: Element, values: &[u8], sigma: u64) -> u64 {
        let number = self.number(element);
        in_library!(self.library, it => it.fold(number, values, sigma))
    }

    fn keep(&self, element: Element, values: &[u8], operands: &[u8], kept: &mut [u8]) -> usize {
        let number = self.number(element);
        let mut flags = [0; BLOCK];
        let mut end = 0;
        for block in values.chunks(BLOCK * element.width()) {
            let flags = &mut flags[..block.len() / element.width()];
            in_library!(self.library, it => it.test(number, block, operands, flags));
            end += keep_flagged(element, block, flags, &mut kept[end..]);
        }
        end
    }
}
