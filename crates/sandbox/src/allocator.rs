//! Memory that the allocators keep for later: mimalloc for our own code, which is half as fast again as glibc's where many
//! calls are answered at once, and glibc's for the libraries in C.

/// The allocator of the program.
pub use mimalloc::MiMalloc as Allocator;

/// mimalloc's options, by their places in `mi_option_e` of its version 3; its Rust crate names only some.
const ARENA_EAGER_COMMIT: libmimalloc_sys::mi_option_t = 4;
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// How long mimalloc keeps a page that is free.
const PURGE_DELAY_MS: libc::c_long = 1;

/// The linker's list of what runs before `main`. mimalloc reserves its first gibibyte there, and by itself makes all of it
/// usable at once: the kernel then backs it with pages of 2 MiB, and a host at rest has 42 MiB instead of 24.
#[expect(unsafe_code, reason = "what runs before `main` stands in a section of its own")]
// SAFETY: the section is a list of functions that the C runtime calls without reading a result.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: [extern "C" fn(); 1] = [choose_options];

#[expect(unsafe_code, reason = "mi_option_set has no safe wrapper")]
extern "C" fn choose_options() {
    // SAFETY: `mi_option_set` writes one number of a table; it needs no other part of mimalloc or of the Rust runtime, and
    // no other thread runs yet.
    unsafe {
        libmimalloc_sys::mi_option_set(ARENA_EAGER_COMMIT, 0);
        libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS);
    }
}

/// Most heaps of glibc's. It makes up to eight for each processor, and each keeps what is free in it.
#[cfg(target_env = "gnu")]
const HEAPS_MAX: libc::c_int = 2;
/// Blocks of so many bytes are the system's again as soon as they are free. By itself glibc takes larger and larger ones from
/// its heaps, where a single small block above them holds them.
#[cfg(target_env = "gnu")]
const OWN_MAPPING_BYTES: libc::c_int = 1 << 20;

/// Lets glibc's allocator keep little for later. To be called before the first thread is started: heaps that are there stay.
#[expect(unsafe_code, reason = "mallopt has no safe wrapper in libc")]
pub fn keep_little_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `mallopt` takes the allocator's own lock and changes two numbers that later allocations look at. One that it
    // does not take leaves all as it is.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS_MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
    }
}

/// Gives memory that is free back to the system. After a burst of calls both allocators keep pages for the next one.
///
/// Takes some milliseconds and a thread that may wait.
#[expect(unsafe_code, reason = "neither function has a safe wrapper")]
pub fn give_memory_back() {
    // SAFETY: `mi_collect` may be called at any time from any thread, and touches no block that is in use.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes the allocator's own locks, may be called at any time from any thread, and touches no
    // block that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are places in an enumeration that the C library may change.
    #[test]
    #[expect(unsafe_code, reason = "mi_option_get has no safe wrapper")]
    fn the_options_are_set_before_main() {
        // The first two options of the same table that its Rust crate names, around ours.
        const { assert!(ARENA_EAGER_COMMIT < libmimalloc_sys::mi_option_large_os_pages) };
        const { assert!(PURGE_DELAY < libmimalloc_sys::mi_option_use_numa_nodes) };
        // SAFETY: `mi_option_get` reads one number of a table.
        let values = unsafe { [ARENA_EAGER_COMMIT, PURGE_DELAY].map(|option| libmimalloc_sys::mi_option_get(option)) };
        assert_eq!(values, [0, PURGE_DELAY_MS]);
    }
}
