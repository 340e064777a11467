//! The pages of a damaged file, read without SQLite (which refuses a file whose first page is missing). The layout is
//! that of <https://www.sqlite.org/fileformat2.html>; every number read from the file is checked before use.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::open::beside;

/// Page size of files created by Outrigger, for a file without a header.
const OUR_PAGE_SIZE: usize = 4096;
const MAGIC: &[u8] = b"SQLite format 3\0";
const WAL_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;
/// Type byte of a page with rows of a table.
const TABLE_LEAF: u8 = 0x0D;
/// Type byte of a page with entries of an index.
const INDEX_LEAF: u8 = 0x0A;

/// Version of a page: as in the write-ahead log (else the main file), or as in the main file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Newest,
    Main,
}

/// The main file and its write-ahead log.
pub(super) struct Pages {
    main: File,
    main_len: u64,
    page_size: usize,
    usable: usize,
    /// Size according to the header, if it is readable.
    pub(super) expected_len: Option<u64>,
    wal: Option<(File, HashMap<u32, u64>)>,
    wal_len: u64,
}

/// One row of some table: its number and its stored columns.
pub(super) struct Cell {
    pub(super) rowid: i64,
    pub(super) payload: Vec<u8>,
}

impl Pages {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let main = File::open(path)?;
        let main_len = main.metadata()?.len();
        let mut header = [0; 100];
        let whole = main.read_exact_at(&mut header, 0).is_ok() && header.starts_with(MAGIC);
        let header: &[u8] = if whole { &header } else { &[] };
        let wal_file = match File::open(beside(path, "-wal")) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let page_size = be16(header, 16)
            .map(|n| if n == 1 { 65_536 } else { usize::from(n) })
            .filter(|n| valid_page_size(*n))
            .or_else(|| wal_file.as_ref().and_then(wal_page_size))
            .unwrap_or(OUR_PAGE_SIZE);
        let reserved = header.get(20).copied().map_or(0, usize::from);
        let mut wal_len = 0;
        let wal = match wal_file {
            Some(file) => {
                wal_len = file.metadata()?.len();
                let frames = committed_frames(&file, page_size)?;
                Some((file, frames))
            }
            None => None,
        };
        Ok(Self {
            main,
            main_len,
            page_size,
            usable: page_size.saturating_sub(reserved).max(480),
            expected_len: be32(header, 28).map(|n| u64::from(n) * page_size as u64),
            wal,
            wal_len,
        })
    }

    /// Returns the length of the main file.
    pub(super) fn main_len(&self) -> u64 {
        self.main_len
    }

    /// Returns the numbers of all pages, from 1.
    pub(super) fn numbers(&self) -> std::ops::RangeInclusive<u32> {
        let main = self.main_len.div_ceil(self.page_size as u64);
        let wal = self
            .wal
            .iter()
            .flat_map(|(_, frames)| frames.keys().copied())
            .max();
        1..=u32::try_from(main)
            .unwrap_or(u32::MAX)
            .max(wal.unwrap_or(0))
    }

    /// Returns the versions of a page that are worth reading.
    pub(super) fn versions(&self, number: u32) -> &'static [Version] {
        match &self.wal {
            Some((_, frames)) if frames.contains_key(&number) => &[Version::Newest, Version::Main],
            // Its overflow pages may still be in the log.
            Some(_) => &[Version::Newest],
            None => &[Version::Main],
        }
    }

    /// Returns a page. The last one of a truncated file is padded with zeros.
    fn page(&self, number: u32, version: Version) -> Option<Vec<u8>> {
        let mut page = vec![0; self.page_size];
        if version == Version::Newest
            && let Some((file, frames)) = &self.wal
            && let Some(offset) = frames.get(&number)
        {
            file.read_exact_at(&mut page, *offset).ok()?;
            return Some(page);
        }
        let offset = u64::from(number.checked_sub(1)?) * self.page_size as u64;
        let mut filled = 0;
        while let Some(rest) = page.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.main.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // A bad block of the disk.
                Err(_) => return None,
            }
        }
        (filled > 0).then_some(page)
    }

    /// Returns the rows on a page, if it contains any. Rows that cannot be read completely are skipped.
    pub(super) fn cells(&self, number: u32, version: Version) -> Vec<Cell> {
        self.each(number, version, TABLE_LEAF, |page, at| {
            self.cell(page, at, version)
        })
    }

    /// Returns the entries on a page, if it belongs to an index. Long ones (over about 1000 bytes) are skipped.
    pub(super) fn index_cells(&self, number: u32, version: Version) -> Vec<Vec<u8>> {
        let most = (self.usable - 12) * 64 / 255 - 23;
        self.each(number, version, INDEX_LEAF, |page, at| {
            let (size, start) = varint(page, at)?;
            let size = usize::try_from(size).ok().filter(|size| *size <= most)?;
            page.get(start..start + size).map(<[u8]>::to_vec)
        })
    }

    /// Applies `read` to each cell of a page of type `kind`.
    fn each<T>(
        &self,
        number: u32,
        version: Version,
        kind: u8,
        read: impl Fn(&[u8], usize) -> Option<T>,
    ) -> Vec<T> {
        let Some(page) = self.page(number, version) else {
            return Vec::new();
        };
        let start = if number == 1 { 100 } else { 0 };
        if page.get(start) != Some(&kind) {
            return Vec::new();
        }
        (0..usize::from(be16(&page, start + 3).unwrap_or(0)))
            .filter_map(|i| read(&page, usize::from(be16(&page, start + 8 + 2 * i)?)))
            .collect()
    }

    fn cell(&self, page: &[u8], at: usize, version: Version) -> Option<Cell> {
        let (size, rowid_at) = varint(page, at)?;
        let (rowid, start) = varint(page, rowid_at)?;
        let size = usize::try_from(size).ok()?;
        if size as u64 > self.main_len + self.wal_len {
            return None;
        }
        let local = self.local_size(size);
        let mut payload = page.get(start..start.checked_add(local)?)?.to_vec();
        if local < size {
            let next = be32(page, start + local)?;
            self.overflow(next, size, version, &mut payload)?;
        }
        Some(Cell {
            rowid: rowid.cast_signed(),
            payload,
        })
    }

    /// Returns the size of the part of a row on its own page.
    fn local_size(&self, size: usize) -> usize {
        let most = self.usable - 35;
        if size <= most {
            return size;
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let odd = least + (size - least) % (self.usable - 4);
        if odd <= most { odd } else { least }
    }

    fn overflow(
        &self,
        first: u32,
        size: usize,
        version: Version,
        payload: &mut Vec<u8>,
    ) -> Option<()> {
        let mut next = first;
        // Each page adds at least one byte, so this terminates even if the chain is circular.
        while payload.len() < size {
            let page = self.page(next, version)?;
            let take = (size - payload.len()).min(self.usable - 4);
            payload.extend_from_slice(page.get(4..4 + take)?);
            next = be32(&page, 0)?;
        }
        Some(())
    }
}

fn valid_page_size(n: usize) -> bool {
    n.is_power_of_two() && (512..=65_536).contains(&n)
}

fn wal_page_size(file: &File) -> Option<usize> {
    let mut header = [0; WAL_HEADER as usize];
    file.read_exact_at(&mut header, 0).ok()?;
    let size = usize::try_from(be32(&header, 8)?).ok()?;
    valid_page_size(size).then_some(size)
}

/// Returns the offset of the newest committed version of each page in a write-ahead log.
fn committed_frames(file: &File, page_size: usize) -> io::Result<HashMap<u32, u64>> {
    let len = file.metadata()?.len();
    let mut committed = HashMap::new();
    let mut header = [0; WAL_HEADER as usize];
    if file.read_exact_at(&mut header, 0).is_err() {
        return Ok(committed);
    }
    let mut open = Vec::new();
    let mut offset = WAL_HEADER;
    while offset + FRAME_HEADER + page_size as u64 <= len {
        let mut frame = [0; FRAME_HEADER as usize];
        file.read_exact_at(&mut frame, offset)?;
        // Frames of an earlier round have other salts; later frames are older still.
        if frame.get(8..16) != header.get(16..24) {
            break;
        }
        let (Some(number), Some(size)) = (be32(&frame, 0), be32(&frame, 4)) else {
            break;
        };
        open.push((number, offset + FRAME_HEADER));
        if size > 0 {
            committed.extend(open.drain(..));
        }
        offset += FRAME_HEADER + page_size as u64;
    }
    Ok(committed)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..at.checked_add(2)?)?;
    found.try_into().ok().map(u16::from_be_bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..at.checked_add(4)?)?;
    found.try_into().ok().map(u32::from_be_bytes)
}

/// Reads a number of one to nine bytes; returns it with its end.
pub(super) fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for i in 0..9 {
        let byte = *bytes.get(at.checked_add(i)?)?;
        if i == 8 {
            return Some(((value << 8) | u64::from(byte), at + 9));
        }
        value = (value << 7) | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            return Some((value, at + i + 1));
        }
    }
    None
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// Decodes the values of a row, if it is one: every type is known, it is complete, and nothing is left over.
pub(super) fn record(payload: &[u8]) -> Option<Vec<Value<'_>>> {
    let (header_end, mut at) = varint(payload, 0)?;
    let header_end = usize::try_from(header_end).ok()?;
    let mut values = Vec::new();
    let mut body = header_end;
    while at < header_end {
        let (kind, next) = varint(payload, at)?;
        at = next;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 => 8,
            12.. => usize::try_from((kind - 12) / 2).ok()?,
            // Floats, which none of our tables has, and unused types.
            _ => return None,
        };
        let bytes = payload.get(body..body.checked_add(size)?)?;
        body += size;
        values.push(match kind {
            0 => Value::Null,
            8 => Value::Int(0),
            9 => Value::Int(1),
            1..=6 => Value::Int(integer(bytes)),
            _ if kind % 2 == 0 => Value::Blob(bytes),
            _ => Value::Text(std::str::from_utf8(bytes).ok()?),
        });
    }
    (at == header_end && body == payload.len()).then_some(values)
}

/// Decodes a signed number of at most eight bytes.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    bytes
        .iter()
        .fold(if negative { -1i64 } else { 0 }, |value, byte| {
            (value << 8) | i64::from(*byte)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_as_sqlite_writes_them() {
        for (bytes, want) in [
            (&[0x07][..], Some((7, 1))),
            (&[0x81, 0x00], Some((128, 2))),
            (&[0xFF; 9], Some((u64::MAX, 9))),
            (&[0x81], None),
            (&[], None),
        ] {
            assert_eq!(varint(bytes, 0), want, "{bytes:x?}");
        }
        for (bytes, want) in [
            (&[0xFF][..], -1),
            (&[0x7F], 127),
            (&[0x80, 0x00], -32_768),
            (&[0, 0, 0, 0, 1, 0], 256),
        ] {
            assert_eq!(integer(bytes), want, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..9000)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            let mut file = bytes.clone();
            // Half of the time a page that claims to have rows.
            if file.len() > 4200 && file.first().is_some_and(|b| b % 2 == 0) {
                file[4096] = TABLE_LEAF;
            }
            std::fs::write(&path, &file).unwrap();
            std::fs::write(beside(&path, "-wal"), &bytes).unwrap();
            let pages = Pages::open(&path).unwrap();
            for number in pages.numbers().take(64) {
                for version in [Version::Newest, Version::Main] {
                    for cell in pages.cells(number, version) {
                        let _ = record(&cell.payload);
                    }
                }
            }
            let _ = record(&bytes);
        }
    }
}
