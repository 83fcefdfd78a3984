// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A kernel filter (seccomp) for system calls that a monitor must not make.
//!
//! The filter lists refused calls, not allowed ones. The C library and Rust's choose between calls
//! by their own version and the kernel's: `poll` or `ppoll`, `clone` or `clone3`, `rseq`,
//! `futex_waitv`. A list of allowed calls would fit the libraries of one machine only, and an
//! update that stops a monitor in operation costs more than such a list would prevent beyond this
//! one: the calls named here lead out of the process, to other programs, other processes, other
//! privileges, and the kernel's own code. A call that a newer kernel adds for this is not in the
//! list; it finds a process without capabilities.
//!
//! Calls that cannot be a mistake end the process. Calls that a library may try and can do without
//! fail. The kernel logs both. For calls that are allowed regardless of their arguments, the kernel
//! uses a table, so the length of the list costs nothing.

use crate::Error;
use libc::c_long;

/// Calls that end the process: those that execute another program, access another process, or
/// change the kernel.
const ENDING: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_bpf,
    libc::SYS_reboot,
];

/// Calls that fail with `EPERM`.
const FAILING: &[c_long] = &[
    // Other users and privileges.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_personality,
    // Other namespaces and file systems.
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    // The machine.
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // Kernel interfaces with many past vulnerabilities, which are of no use here.
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kcmp,
    libc::SYS_fanotify_init,
];

/// Calls of one architecture only, which fail as well.
#[cfg(target_arch = "x86_64")]
const FAILING_HERE: &[c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const FAILING_HERE: &[c_long] = &[];

/// Number of the architecture in the kernel (`AUDIT_ARCH_*`); `None`: there is no filter for it.
#[cfg(target_arch = "x86_64")]
const PROCESSOR: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const PROCESSOR: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const PROCESSOR: Option<u32> = None;

/// Call numbers from here on are of another ABI (x32) with the same calls.
const OTHER_KIND: u32 = 0x4000_0000;

/// Offsets in the data that a filter sees: the call's number, the architecture, and the lower half
/// of the first argument.
const NUMBER: u32 = 0;
const KIND: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// Installs the filter.
///
/// # Errors
/// [`Error::System`] if the kernel has no such filters, or does not let this process install one.
pub fn install() -> Result<(), Error> {
    let Some(processor) = PROCESSOR else { return Ok(()) };
    let mut steps = steps(processor);
    let length = u16::try_from(steps.len()).expect("a filter has far fewer steps");
    let program = libc::sock_fprog { len: length, filter: steps.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_LOG);
    // SAFETY: the program and its steps outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    if result == 0 { Ok(()) } else { Err(Error::system("seccomp")) }
}

fn steps(processor: u32) -> Vec<libc::sock_filter> {
    let end = || give(libc::SECCOMP_RET_KILL_PROCESS);
    let fail = |error: i32| give(libc::SECCOMP_RET_ERRNO | error as u32);
    // A process that switches to another ABI cannot be checked by these numbers.
    let mut steps = vec![load(KIND), jump(libc::BPF_JEQ, processor, 1, 0), end(), load(NUMBER)];
    steps.extend([jump(libc::BPF_JGE, OTHER_KIND, 0, 1), end()]);
    for call in ENDING {
        steps.extend([is(*call, 1), end()]);
    }
    for call in FAILING.iter().chain(FAILING_HERE) {
        steps.extend([is(*call, 1), fail(libc::EPERM)]);
    }
    // The flags of `clone3` are in memory, where a filter cannot look. Libraries fall back to
    // `clone` where it is missing.
    steps.extend([is(libc::SYS_clone3, 1), fail(libc::ENOSYS)]);
    // Threads, but no processes.
    steps.extend([is(libc::SYS_clone, 3), load(FIRST_ARGUMENT)]);
    steps.extend([jump(libc::BPF_JSET, libc::CLONE_THREAD as u32, 1, 0), fail(libc::EPERM)]);
    steps.push(give(libc::SECCOMP_RET_ALLOW));
    steps
}

/// Skips `others` steps if it is another call.
fn is(call: c_long, others: u8) -> libc::sock_filter {
    let number = u32::try_from(call).expect("calls have small numbers");
    jump(libc::BPF_JEQ, number, 0, others)
}

fn load(from: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, from, 0, 0)
}

fn jump(condition: u32, value: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    step(libc::BPF_JMP | condition | libc::BPF_K, value, if_so, if_not)
}

fn give(action: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, action, 0, 0)
}

fn step(code: u32, value: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_so, jf: if_not, k: value }
}
