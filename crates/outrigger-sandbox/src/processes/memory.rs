//! Returns memory of this process to the system.

/// Blocks of at least this size are mapped separately, so that freeing one returns its pages. By default the C library
/// raises this limit, up to 32 MiB, to the size of the largest block freed so far; a single payload of 16 MiB then leaves a
/// server tens of MiB larger for the rest of its life (found by `cargo xtask soak`).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED: i32 = 1 << 20;
/// Free memory at the end of the heap that is kept for the next blocks.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: i32 = 4 << 20;

/// Keeps the C library's allocator from holding on to the memory of large blocks. Call it once, before threads are started.
/// Does nothing with another C library.
pub fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "mallopt has no safe wrapper")]
    // SAFETY: takes two numbers and rejects unknown ones.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

/// Returns the pages of free memory between blocks in use, which a thousand small responses at once leave behind. Takes
/// some milliseconds for a heap of 100 MiB.
pub fn give_back_gaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "malloc_trim has no safe wrapper")]
    // SAFETY: takes a number; it may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the resident bytes of this process's own memory; 0 if unknown.
#[must_use]
pub fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.map_or("", |line| line.trim().trim_end_matches(" kB"));
    kib.parse::<u64>().map_or(0, |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn what_large_blocks_took_is_given_back() {
        give_back_large_blocks();
        let before = resident();
        // The first blocks would raise the limit, and the next ones, each followed by a small one, would stay.
        for _ in 0..4 {
            drop(vec![1_u8; 16 << 20]);
        }
        let mut small = Vec::new();
        for _ in 0..4 {
            let large = vec![1_u8; 16 << 20];
            small.push(vec![1_u8; 1000]);
            drop(large);
        }
        let after = resident();
        assert!(
            after < before + (8 << 20),
            "{before} {after} {}",
            small.len()
        );
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn gaps_between_blocks_are_given_back() {
        let before = resident();
        let mut blocks: Vec<Vec<u8>> = (0..6400).map(|_| vec![1_u8; 10_000]).collect();
        let full = resident();
        assert!(full > before + (48 << 20), "{before} {full}");
        // One in a hundred stays allocated.
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 100 == 0
        });
        give_back_gaps();
        let after = resident();
        let kept = blocks.len();
        assert!(
            after < before + (16 << 20),
            "{before} {full} {after} {kept}"
        );
    }
}
