//! Memory that the allocator keeps for later.

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
