// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reference for the front-end oracle: generated functions compiled as plain C23 by clang.

use super::functions::{self, GeneratedFunction};
use freeport_ir::Bits;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A shared object with one entry per function.
pub struct CLibrary {
    library: libloading::Library,
}

impl CLibrary {
    /// Compiles the functions with `compiler` (clang 19 or later, for `_BitInt`) in `folder`.
    ///
    /// # Panics
    /// If the compiler cannot be run or refuses the text: the test cannot continue.
    pub fn build(functions: &[GeneratedFunction], compiler: &str, folder: &Path) -> Self {
        let mut text = functions::c_prelude(functions);
        for function in functions {
            text += &format!("static {}", function.text);
            text += &entry(function);
        }
        let (source, object) = (folder.join("functions.c"), folder.join("functions.so"));
        std::fs::write(&source, text).expect("the folder is writable");
        let flags = ["-std=c23", "-O1", "-fwrapv", "-fno-strict-aliasing", "-w", "-fPIC"];
        let output = Command::new(compiler)
            .args(flags)
            .arg("-shared")
            .arg("-o")
            .args([&object, &source])
            .output()
            .expect("clang can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // SAFETY: the object was just made from the text above and has no initialisers.
        let library = unsafe { libloading::Library::new(&object) }.expect("clang made it");
        Self { library }
    }

    /// Calls a function.
    ///
    /// # Panics
    /// If the function is not one of those built.
    pub fn call(&self, function: &GeneratedFunction, args: &[Bits]) -> Bits {
        type Entry = unsafe extern "C" fn(*const u64, *mut u64);
        let words: Vec<u64> = args.iter().flat_map(|arg| arg.limbs().to_vec()).collect();
        let mut result = vec![0u64; function.result.width.div_ceil(64) as usize];
        let name = format!("entry_{}", function.name);
        // SAFETY: `entry` wrote this symbol with this type.
        let entry = unsafe { self.library.get::<Entry>(name.as_bytes()) }.expect("it was built");
        // SAFETY: it reads and writes the words that the types of the function's parameters and
        // result need, and both vectors have them.
        unsafe { entry(words.as_ptr(), result.as_mut_ptr()) };
        let bytes: Vec<u8> = result.iter().flat_map(|word| word.to_le_bytes()).collect();
        Bits::from_le_bytes(function.result.width, &bytes)
    }
}

/// Writes a C function that takes its arguments and returns its result as 64-bit words.
fn entry(function: &GeneratedFunction) -> String {
    let name = &function.name;
    let mut text = format!("void entry_{name}(const uint64_t *in, uint64_t *out) {{\n");
    let mut at = 0;
    for (number, ty) in function.params.iter().enumerate() {
        let words = ty.width.div_ceil(64);
        let wide = words * 64;
        let _ = writeln!(text, "    unsigned _BitInt({wide}) w{number} = 0;");
        for word in 0..words {
            let value = format!("(unsigned _BitInt({wide}))in[{}] << {}", at + word, word * 64);
            let _ = writeln!(text, "    w{number} |= {value};");
        }
        at += words;
    }
    let args: Vec<_> = function
        .params
        .iter()
        .enumerate()
        .map(|(number, ty)| format!("({})w{number}", ty.name()))
        .collect();
    let wide = function.result.width.div_ceil(64) * 64;
    let call = format!("{name}({})", args.join(", "));
    let _ = writeln!(text, "    unsigned _BitInt({wide}) r = (unsigned _BitInt({wide})){call};");
    for word in 0..wide / 64 {
        let _ = writeln!(text, "    out[{word}] = (uint64_t)(r >> {});", word * 64);
    }
    text + "}\n"
}
