// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions with any number of arguments, which the language can call but not define.

use core::ptr;

/// A list of arguments (`va_list` of the System V ABI).
pub type Arguments = *mut List;

/// The fields of such a list.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Offset of the next word among the saved registers.
    in_registers: u32,
    _in_vector_registers: u32,
    /// The address of the next word that is not in a register.
    behind: *const *const libc::c_void,
    /// The address of the saved registers.
    registers: *const u8,
}

/// Bytes of the saved registers that take words.
const WORD_REGISTERS: u32 = 48;

impl List {
    /// The next argument, which is a pointer.
    ///
    /// # Safety
    /// There is one more argument, and it is a pointer.
    pub unsafe fn next<T>(&mut self) -> *const T {
        if self.in_registers < WORD_REGISTERS {
            // SAFETY: registers were saved up to that number of bytes.
            let at = unsafe { self.registers.add(self.in_registers as usize) };
            self.in_registers += size_of::<*const T>() as u32;
            // SAFETY: the caller says that there is one more argument, and that it is a pointer.
            return unsafe { at.cast::<*const T>().read() };
        }
        // SAFETY: as above; arguments that are in no register are there.
        let word = unsafe { ptr::read(self.behind) };
        // SAFETY: at most the end of the arguments.
        self.behind = unsafe { self.behind.add(1) };
        word.cast()
    }
}

// Functions with any number of arguments: their registers become a `va_list` of the System V ABI,
// which is passed to the function that takes one.
macro_rules! variadic {
    ($(#[$about:meta])* $name:ident, $list:literal, $named:literal, $to:ident) => {
        $(#[$about])*
        #[cfg(target_arch = "x86_64")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 216",
                ".cfi_adjust_cfa_offset 216",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], ", $named),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list, ", rsp"),
                "call {to}",
                "add rsp, 216",
                ".cfi_adjust_cfa_offset -216",
                "ret",
                ".cfi_endproc",
                to = sym $to,
            )
        }
    };
}
pub(super) use variadic;
