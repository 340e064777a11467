//! Releases memory that a copy of this program does not need. Pages shared with the program are copied as soon as the program changes them,
//! so a long-lived copy would in the end hold as much memory as the program did when it was forked.

/// Bytes of `/proc/self/maps` read at once.
const BUFFER: usize = 4096;
/// Maximum number of areas released; the rest stays.
const MAX_AREAS: usize = 512;

/// Unmaps everything private, writable and anonymous, except the current stack. Async-signal-safe. Afterwards nothing may be allocated, and
/// nothing that was allocated may be used.
#[expect(
    unsafe_code,
    reason = "the memory of a copy that only makes system calls from here on"
)]
pub(crate) unsafe fn memory() {
    let here = 0_u8;
    let here = std::ptr::addr_of!(here) as usize;
    let mut areas = [(0_usize, 0_usize); MAX_AREAS];
    let mut found = 0;
    // SAFETY: raw calls on locals of the sizes that are said. What is unmapped is nobody's: the one thread of this copy has its stack
    // and its thread-local storage in the area that is left out, and its code and constants are of files.
    unsafe {
        let file = libc::open(
            c"/proc/thread-self/maps".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        );
        if file == -1 {
            return;
        }
        let mut line = Line::default();
        let mut buffer = [0_u8; BUFFER];
        loop {
            let read = libc::read(file, buffer.as_mut_ptr().cast(), BUFFER);
            let Ok(read @ 1..) = usize::try_from(read) else {
                break;
            };
            for byte in buffer.iter().take(read) {
                let Some((from, to)) = line.take(*byte) else {
                    continue;
                };
                if !(from..to).contains(&here)
                    && let Some(area) = areas.get_mut(found)
                {
                    *area = (from, to);
                    found += 1;
                }
            }
        }
        libc::close(file);
        for (from, to) in areas.iter().take(found) {
            libc::munmap(std::ptr::with_exposed_provenance_mut(*from), to - from);
        }
    }
}

/// A parser for lines of the maps file, byte by byte: `from-to rw-p offset device inode  name`.
#[derive(Default)]
struct Line {
    field: usize,
    from: usize,
    to: usize,
    /// Position within the four permission letters.
    at: usize,
    is_private: bool,
    inode: bool,
    /// End of the last file mapping: an area that starts there holds its zero-initialised variables.
    file_end: usize,
}

impl Line {
    /// Returns the area that ends with this byte, if it may be released.
    fn take(&mut self, byte: u8) -> Option<(usize, usize)> {
        match (byte, self.field) {
            (b'\n', _) => {
                let done = std::mem::take(self);
                self.file_end = if done.inode { done.to } else { done.file_end };
                let is_anonymous = !done.inode && done.from != done.file_end;
                let fits = done.at == 4 && done.is_private && is_anonymous;
                return (fits && done.from < done.to).then_some((done.from, done.to));
            }
            (b' ', 5) => {}
            (b' ', _) => self.field += 1,
            (b'-', 0) => self.field = 1,
            (digit, 0) => self.from = self.from << 4 | hex(digit),
            (digit, 1) => self.to = self.to << 4 | hex(digit),
            (letter, 2) => {
                let wanted = b"rw-p".get(self.at) == Some(&letter);
                self.is_private = wanted && (self.at == 0 || self.is_private);
                self.at += 1;
            }
            (b'1'..=b'9', 5) => self.inode = true,
            // A name follows the inode.
            (b'/' | b'[', 5) => self.field = 6,
            _ => {}
        }
        None
    }
}

fn hex(digit: u8) -> usize {
    char::from(digit).to_digit(16).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_areas_are_given_back() {
        let table = "55d0-55d1 r--p 00000000 fe:00 1234 /bin/x\n\
            55d2-55d3 rw-p 00002000 fe:00 1234 /bin/x\n\
            55d3-55d4 rw-p 00000000 00:00 0 \n\
            55d5-55d6 rw-p 00000000 00:00 0                          [heap]\n\
            7f00-7f10 rw-p 00000000 00:00 0 \n\
            7f10-7f20 ---p 00000000 00:00 0\n\
            7f20-7f30 rw-s 00000000 00:01 99 /dev/zero (deleted)\n\
            7f31-7fff0 rw-p 00000000 00:00 0 \n\
            7fff-8fff rw-p 00000000 00:00 0                          [stack]\n";
        let mut line = Line::default();
        let areas: Vec<_> = table.bytes().filter_map(|byte| line.take(byte)).collect();
        assert_eq!(
            areas,
            [
                (0x55d5, 0x55d6),
                (0x7f00, 0x7f10),
                (0x7f31, 0x7fff0),
                (0x7fff, 0x8fff)
            ]
        );
    }
}
