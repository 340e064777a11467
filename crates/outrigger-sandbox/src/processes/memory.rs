//! How this process gives memory back to the system.

/// Blocks from this size on are mapped on their own, so that freeing one gives its pages back. By itself the C library
/// raises this limit, up to 32 MiB, to the size of whatever large block was freed last; one payload of 16 MiB then leaves a
/// server at tens of MiB more for the rest of its life (found by `cargo xtask soak`).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED: i32 = 1 << 20;
/// So much free memory at the end of the heap is kept for the next blocks.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: i32 = 4 << 20;

/// Keeps the C library's allocator from holding on to the memory of large blocks. To be called once, before threads are
/// started. Does nothing where there is another C library.
pub fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "mallopt has no safe wrapper")]
    // SAFETY: takes two numbers; what it does not know it refuses.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

/// Gives the pages of free memory back that lie between blocks in use: a thousand small answers at once leave such. Some
/// milliseconds for a heap of 100 MiB.
pub fn give_back_gaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "malloc_trim has no safe wrapper")]
    // SAFETY: takes a number; it may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of this process's own memory that are resident; 0 where that cannot be seen.
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
        // The first ones would raise the limit, and the next ones, with a small one behind each, would stay.
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
        // One in a hundred stays where it is.
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
