//! Not part of the program: `build.rs` compiles it to a library, which the lab loads into a Redis node (`clock.rs`). It
//! replaces functions of the C library and adds an offset to the time of day, in microseconds, read from the file that
//! `OVERSELL_CLOCK` names.

#![no_std]

use core::{
    ffi::{CStr, c_char, c_int, c_long, c_void},
    ptr::null_mut,
    sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed},
};

/// The variable with the path of the file that holds the offset.
const OFFSET_FILE_VARIABLE: &CStr = c"OVERSELL_CLOCK";

/// C's `timespec` or `timeval`, which have the same layout.
#[repr(C)]
pub struct Time {
    seconds: i64,
    /// Nanoseconds; microseconds in the structure of `gettimeofday`.
    parts: i64,
}

const CLOCK_REALTIME: c_int = 0;
const CLOCK_REALTIME_COARSE: c_int = 5;
const READ_ONLY: c_int = 0;
const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const MAP_FAILED: isize = -1;

/// The system call's number on platforms with two 64-bit words in a time.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const CLOCK_GETTIME: c_long = 228;
#[cfg(all(target_os = "linux", any(target_arch = "aarch64", target_arch = "riscv64")))]
const CLOCK_GETTIME: c_long = 113;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn mmap(at: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, from: i64) -> *mut c_void;
}

/// The mapped file; null until it is mapped.
static MAPPED_OFFSET: AtomicPtr<AtomicI64> = AtomicPtr::new(null_mut());

/// Makes the loader call [`map_the_file`] when it loads the library.
#[used]
#[unsafe(link_section = ".init_array")]
static RUN_AT_LOAD: extern "C" fn() = map_the_file;

/// Maps the file that the variable names. Without a file the offset stays 0.
extern "C" fn map_the_file() {
    // SAFETY: the file has the eight bytes of a number, and exists as long as the lab.
    unsafe {
        let path = getenv(OFFSET_FILE_VARIABLE.as_ptr());
        if path.is_null() {
            return;
        }
        let file = open(path, READ_ONLY);
        let memory = mmap(null_mut(), 8, PROT_READ, MAP_SHARED, file, 0);
        if memory.addr().cast_signed() != MAP_FAILED {
            MAPPED_OFFSET.store(memory.cast(), Relaxed);
        }
    }
}

/// The offset of the clock in microseconds.
fn offset_us() -> i64 {
    // SAFETY: the pointer is null, or points to the mapping, which is never removed.
    unsafe { MAPPED_OFFSET.load(Relaxed).as_ref() }.map_or(0, |number| number.load(Relaxed))
}

/// Uses the system call directly: looking up the C library's function would allocate, and jemalloc asks for the time
/// before it can allocate.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Time) -> c_int {
    // SAFETY: the caller passes a pointer that the system call would accept.
    unsafe {
        let failed = syscall(CLOCK_GETTIME, clock, time);
        if failed == 0 && matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE) {
            // Read once: it may change between two reads.
            let offset_us = offset_us();
            let nanos = (*time).parts + offset_us % 1_000_000 * 1_000;
            (*time).seconds += offset_us / 1_000_000 + nanos / 1_000_000_000;
            (*time).parts = nanos % 1_000_000_000;
        }
        failed as c_int
    }
}

/// Replaces the C library's function: the time with the offset, in microseconds.
#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(time: *mut Time, _zone: *mut c_void) -> c_int {
    // SAFETY: as above; both structures have two words.
    unsafe {
        let failed = clock_gettime(CLOCK_REALTIME, time);
        (*time).parts /= 1_000;
        failed
    }
}

/// Replaces the C library's function: the time with the offset, in seconds.
#[unsafe(no_mangle)]
unsafe extern "C" fn time(seconds: *mut i64) -> i64 {
    let mut now = Time { seconds: 0, parts: 0 };
    // SAFETY: the first pointer is to `now`; the caller's is null or valid.
    unsafe {
        clock_gettime(CLOCK_REALTIME_COARSE, &mut now);
        if let Some(seconds) = seconds.as_mut() {
            *seconds = now.seconds;
        }
    }
    now.seconds
}

/// Runs for ever: this library never panics.
#[panic_handler]
fn never(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
