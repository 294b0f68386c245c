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
///
/// Not `#[used]`: that would bring mimalloc, and what it does at its start, into the helper, too, which starts once for each
/// command. [`keep_little_memory`] names it, so the program has it.
#[expect(unsafe_code, reason = "what runs before `main` stands in a section of its own")]
// SAFETY: the section is a list of functions that the C runtime calls without reading a result.
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
    std::hint::black_box(&BEFORE_MAIN);
    #[cfg(target_env = "gnu")]
    // SAFETY: `mallopt` takes the allocator's own lock and changes two numbers that later allocations look at. One that it
    // does not take leaves all as it is.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS_MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
    }
}

/// Gives back what this thread's own heap keeps: no other thread can.
#[expect(unsafe_code, reason = "mi_collect has no safe wrapper")]
pub fn give_thread_memory_back() {
    // SAFETY: `mi_collect` may be called at any time from any thread, and touches no block that is in use.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

/// Gives memory that is not in use back to the system: what the allocators keep for the next burst of calls, and the pages
/// of the program's code, most of which only its start needed. What of them is needed again comes from the file.
///
/// Takes some milliseconds and a thread that may wait.
#[expect(unsafe_code, reason = "malloc_trim has no safe wrapper in libc")]
pub fn give_memory_back() {
    give_code_back();
    give_thread_memory_back();
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes the allocator's own locks, may be called at any time from any thread, and touches no
    // block that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Takes the pages of the program's code out of this process. They are those of its file, so nothing of them is lost.
fn give_code_back() {
    // Without `/proc` they stay.
    let (Ok(maps), Ok(program)) = (std::fs::read_to_string("/proc/self/maps"), std::fs::read_link("/proc/self/exe"))
    else {
        return;
    };
    for (first, last) in maps.lines().filter_map(|line| code_of(line, &program)) {
        #[expect(unsafe_code, reason = "madvise on a mapping that no value owns")]
        // SAFETY: the mapping is of a file, may not be written and never was, so each page comes back as it is. One that is
        // unmapped meanwhile is an error that changes nothing: this program unloads no code.
        unsafe {
            libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_DONTNEED);
        }
    }
}

/// The addresses of a line of `/proc/self/maps`, if it is code of this program's file. What may be written, or was before it
/// was made read-only, as tables of addresses are, has no other copy.
fn code_of(line: &str, program: &std::path::Path) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    let is_own = rest.starts_with("r-xp ") && rest.ends_with(program.to_str()?);
    let (first, last) = range.split_once('-').filter(|_| is_own)?;
    Some((usize::from_str_radix(first, 16).ok()?, usize::from_str_radix(last, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_itself_is_given_back() {
        let program = std::path::Path::new("/usr/bin/toolhost");
        let code = "55d0f000-55d10000 r-xp 03bb0000 fe:00 8053549                    /usr/bin/toolhost";
        assert_eq!(code_of(code, program), Some((0x55d0_f000, 0x55d1_0000)));
        for other in [
            code.replace("r-xp", "r--p"),
            code.replace("r-xp", "rwxp"),
            code.replace("r-xp", "r-xs"),
            code.replace("toolhost", "libc.so.6"),
            "7ffe1000-7ffe3000 r-xp 00000000 00:00 0                          [vdso]".to_owned(),
        ] {
            assert_eq!(code_of(&other, program), None, "{other}");
        }
        give_memory_back();
        assert_eq!(code_of(code, program), Some((0x55d0_f000, 0x55d1_0000)), "it still runs");
    }

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
