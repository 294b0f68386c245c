//! Memory that the allocator keeps for later.

/// Most heaps of glibc's. It makes up to eight for each processor, and each keeps what is free in it.
#[cfg(target_env = "gnu")]
const HEAPS_MAX: libc::c_int = 2;
/// Blocks of so many bytes are the system's again as soon as they are free. By itself glibc takes larger and larger ones from
/// its heaps, where a single small block above them holds them.
#[cfg(target_env = "gnu")]
const OWN_MAPPING_BYTES: libc::c_int = 1 << 20;

/// Lets the allocator keep little for later. To be called before the first thread is started: heaps that are there stay.
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

/// Gives memory that is free back to the system. After a burst of calls glibc keeps pages that hold one small living block
/// each, and by itself returns only those at the very end of a heap.
///
/// Takes some milliseconds and a thread that may wait.
#[expect(unsafe_code, reason = "malloc_trim has no safe wrapper in libc")]
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes the allocator's own locks, may be called at any time from any thread, and touches no
    // block that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
