//! Old spreadsheets (`.xls`): records of cells, in a container with sectors. Their reader allocates all cells between the first and the
//! last one of every sheet while it opens the file, and follows the sectors as the file specifies. So both are checked before, in the
//! same way as it reads them.

use super::{Extent, unreadable};
use crate::MAX_CELLS;
use crate::error::TableError;

/// The start of such a container.
const SIGNATURE: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
/// Sector numbers from here on are special.
const LAST_SECTOR: u32 = 0xFFFF_FFFA;
const END_OF_CHAIN: u32 = 0xFFFF_FFFE;
/// Shorter streams are in the small sectors.
const SMALL: usize = 4096;
const SMALL_SECTOR: usize = 64;
/// Rows times columns of the format.
const MAX_SHEET_CELLS: u64 = 65_536 * 256;

const BOUND_SHEET: u16 = 0x0085;
const BEGIN: u16 = 0x0809;
const END: u16 = 0x000A;
const DIMENSIONS: u16 = 0x0200;
const FORMULA: u16 = 0x0006;
/// The text result of a formula.
const FORMULA_TEXT: u16 = 0x0207;
/// Several cells of a row.
const ROW_OF_NUMBERS: u16 = 0x00BD;
/// Number, text, rich text, boolean, short number, shared text.
const CELLS: [u16; 6] = [0x0203, 0x0204, 0x00D6, 0x0205, 0x027E, 0x00FD];

/// Checks a file: fails if its reader would need too much memory.
pub(super) fn check(bytes: &[u8]) -> Result<(), TableError> {
    if !bytes.starts_with(SIGNATURE) {
        return Ok(());
    }
    let damaged = || unreadable("it is damaged");
    let container = Container::open(bytes).ok_or_else(damaged)?;
    let Some(book) = container
        .stream("Workbook")
        .or_else(|| container.stream("Book"))
    else {
        return Ok(());
    };
    let book = book.ok_or_else(damaged)?;
    let mut cells = 0;
    for sheet in sheets(&book).ok_or_else(damaged)? {
        let sheet = book.get(sheet..).ok_or_else(damaged)?;
        cells += size(sheet)?;
        if cells > MAX_CELLS as u64 {
            return Err(TableError::TooLarge {
                what: "the number of cells of all sheets",
                size: cells,
                limit: MAX_CELLS as u64,
            });
        }
    }
    Ok(())
}

struct Container<'a> {
    body: &'a [u8],
    sector: usize,
    next: Vec<u32>,
    small: Vec<u8>,
    small_next: Vec<u32>,
    /// Name, first sector, length.
    streams: Vec<(String, u32, usize)>,
}

impl<'a> Container<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let sector = match word(bytes, 30)? {
            9 => 512,
            12 => 4096,
            _ => return None,
        };
        let body = bytes.get(sector..)?;
        let most = body.len() / sector + 2;
        let mut tables: Vec<u32> = numbers(bytes.get(76..512)?).collect();
        let mut more = double(bytes, 68)?;
        for _ in 0..most {
            if more >= LAST_SECTOR {
                break;
            }
            tables.extend(numbers(at(body, sector, more)?));
            more = tables.pop()?;
        }
        let mut next = Vec::new();
        // Numbers after the last sector are invalid; many repetitions are, too.
        let tables: Vec<u32> = tables.into_iter().filter(|it| *it < LAST_SECTOR).collect();
        if tables.len() > most {
            return None;
        }
        for table in tables {
            next.extend(numbers(at(body, sector, table)?));
        }
        let directory = chain(body, sector, &next, double(bytes, 48)?, usize::MAX)?;
        let streams: Vec<(String, u32, usize)> = directory
            .chunks_exact(128)
            .filter_map(|entry| {
                let name = entry.get(..64)?.chunks_exact(2);
                let name = name.map(|it| u16::from_le_bytes([it[0], it[1]]));
                let name: Vec<u16> = name.take_while(|it| *it != 0).collect();
                let length = match sector {
                    512 => double(entry, 120)?.into(),
                    _ => u64::from(double(entry, 120)?) | u64::from(double(entry, 124)?) << 32,
                };
                let length = usize::try_from(length).ok()?;
                Some((String::from_utf16_lossy(&name), double(entry, 116)?, length))
            })
            .collect();
        let (mut small, mut small_next) = (Vec::new(), Vec::new());
        let sectors = double(bytes, 64)? as usize;
        if sectors > 0 {
            let (_, start, length) = streams.first()?;
            small = chain(body, sector, &next, *start, *length)?;
            let length = sectors.checked_mul(sector)?;
            let table = chain(body, sector, &next, double(bytes, 60)?, length)?;
            small_next = numbers(&table).collect();
        }
        Some(Self {
            body,
            sector,
            next,
            small,
            small_next,
            streams,
        })
    }

    /// Returns the content of the first stream of this name; `None` if there is none. The inner `None`: it is damaged.
    fn stream(&self, name: &str) -> Option<Option<Vec<u8>>> {
        let mut all = self.streams.iter();
        let (_, start, length) = all.find(|(it, ..)| it.eq_ignore_ascii_case(name))?;
        Some(if *length < SMALL {
            chain(&self.small, SMALL_SECTOR, &self.small_next, *start, *length)
        } else {
            chain(self.body, self.sector, &self.next, *start, *length)
        })
    }
}

/// Returns the sectors from `start` on, up to `length` bytes. `None` if they are invalid or cyclic.
fn chain(data: &[u8], size: usize, next: &[u32], start: u32, length: usize) -> Option<Vec<u8>> {
    let (mut out, mut sector) = (Vec::new(), start);
    for _ in 0..data.len() / size + 2 {
        if sector == END_OF_CHAIN || out.len() >= length {
            return Some(out);
        }
        let found = at(data, size, sector)?;
        let left = length - out.len();
        out.extend_from_slice(found.get(..left).unwrap_or(found));
        if out.len() >= length {
            return Some(out);
        }
        sector = *next.get(sector as usize)?;
    }
    None
}

/// Returns a sector; the last one may be truncated.
fn at(data: &[u8], size: usize, sector: u32) -> Option<&[u8]> {
    let rest = data.get((sector as usize).checked_mul(size)?..)?;
    Some(rest.get(..size).unwrap_or(rest))
}

/// Returns where the sheets of a book start.
fn sheets(book: &[u8]) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for (kind, data) in records(book) {
        match kind {
            BOUND_SHEET => found.push(double(data, 0)? as usize),
            END => break,
            _ => {}
        }
    }
    Some(found)
}

/// Returns the number of cells between the first and the last one of a sheet, including those of its formulas.
fn size(sheet: &[u8]) -> Result<u64, TableError> {
    let damaged = || unreadable("a record of it is damaged");
    let mut extent = Extent::default();
    let (mut has_begun, mut nested, mut formula) = (false, 0_usize, None);
    for (kind, data) in records(sheet) {
        let place = |column: usize| {
            let place = word(data, 0).zip(word(data, column));
            let place = place.map(|(row, column)| (row.into(), column.into()));
            place.ok_or_else(damaged)
        };
        match kind {
            BEGIN if nested > 0 || has_begun => nested += 1,
            BEGIN => has_begun = true,
            END if nested == 0 => break,
            END => nested -= 1,
            // Embedded charts have their own cells.
            _ if nested > 0 => {}
            DIMENSIONS => check_dimensions(data).ok_or_else(damaged)?,
            FORMULA => {
                formula = Some(place(2)?);
                extent.add(place(2)?)?;
            }
            FORMULA_TEXT => extent.add(formula.unwrap_or_default())?,
            ROW_OF_NUMBERS => {
                extent.add(place(2)?)?;
                extent.add(place(data.len().saturating_sub(2))?)?;
            }
            kind if CELLS.contains(&kind) => extent.add(place(2)?)?,
            _ => {}
        }
    }
    Ok(extent.cells() << u32::from(formula.is_some()))
}

/// Checks a sheet's declared dimensions, for which memory is allocated. `None`: they are impossible.
fn check_dimensions(data: &[u8]) -> Option<()> {
    let wide = data.len() >= 14;
    let row = |at: usize| {
        if wide {
            double(data, at * 4)
        } else {
            word(data, at * 2).map(u32::from)
        }
    };
    let column = |at: usize| word(data, at * 2 + if wide { 8 } else { 4 }).map(u32::from);
    let (top, bottom, mut left, right) = (row(0)?, row(1)?, column(0)?, column(1)?);
    if left > 0xFF || right < left {
        left = 0;
    }
    if bottom == 0 || right == 0 {
        return Some(());
    }
    let cells = u64::from(bottom.wrapping_sub(top)) * u64::from(right.wrapping_sub(left));
    (cells <= MAX_SHEET_CELLS).then_some(())
}

/// Iterates over records: type and content. A truncated last one is skipped: the reader reports it.
fn records(mut stream: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (kind, length) = (word(stream, 0)?, word(stream, 2)?);
        let data = stream.get(4..4 + usize::from(length))?;
        stream = stream.get(4 + usize::from(length)..)?;
        Some((kind, data))
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(found.try_into().ok()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(found.try_into().ok()?))
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).filter_map(|it| double(it, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, read};

    fn record(kind: u16, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(data.len()).unwrap();
        [&kind.to_le_bytes(), &length.to_le_bytes(), data].concat()
    }

    fn words(all: &[u16]) -> Vec<u8> {
        all.iter().flat_map(|it| it.to_le_bytes()).collect()
    }

    /// Creates a number cell.
    fn cell(row: u16, column: u16) -> Vec<u8> {
        let data = [words(&[row, column, 0]), 7_f64.to_le_bytes().to_vec()].concat();
        record(0x0203, &data)
    }

    /// Creates a file with this many sheets of these records; with a cycle of sectors if `is_round`.
    fn xls(records: &[u8], sheets: usize, is_round: bool) -> Vec<u8> {
        let begin = record(BEGIN, &words(&[0x0600, 5, 0, 0, 0, 0, 0, 0]));
        let end = record(END, &[]);
        let bound = |at: usize, number: usize| {
            let at = u32::try_from(at).unwrap().to_le_bytes();
            record(
                BOUND_SHEET,
                &[&at[..], &[0, 0, 1, 0, b'a' + u8::try_from(number).unwrap()]].concat(),
            )
        };
        let head = begin.len() + end.len() + sheets * bound(0, 0).len();
        let bounds: Vec<u8> = (0..sheets).flat_map(|it| bound(head, it)).collect();
        let mut book = [
            begin.clone(),
            bounds,
            end.clone(),
            begin,
            records.to_vec(),
            end,
        ]
        .concat();
        book.resize(book.len().max(SMALL).next_multiple_of(512), 0);
        let count = u32::try_from(book.len() / 512).unwrap();
        // Sector 0 is the allocation table, 1 the directory, the rest the book.
        let mut next = vec![0xFFFF_FFFD, END_OF_CHAIN];
        next.extend((3..2 + count).chain([if is_round { 2 } else { END_OF_CHAIN }]));
        let mut table: Vec<u8> = next.iter().flat_map(|it| it.to_le_bytes()).collect();
        table.resize(512, 0xFF);
        let entry = |name: &str, start: u32, length: u32| {
            let mut entry = words(&name.encode_utf16().collect::<Vec<_>>());
            entry.resize(116, 0);
            entry.extend([start.to_le_bytes(), length.to_le_bytes(), [0; 4]].concat());
            entry
        };
        let length = if is_round {
            0x7000_0000
        } else {
            u32::try_from(book.len()).unwrap()
        };
        let mut directory = [
            entry("Root Entry", END_OF_CHAIN, 0),
            entry("Workbook", 2, length),
        ]
        .concat();
        directory.resize(512, 0);
        let mut header = SIGNATURE.to_vec();
        header.resize(512, 0);
        for (at, value) in [
            (26, 3),
            (30, 9),
            (32, 6),
            (44, 1),
            (48, 1),
            (60, END_OF_CHAIN),
            (68, END_OF_CHAIN),
            (76, 0),
        ] {
            let bytes = value.to_le_bytes();
            let length = if at < 44 { 2 } else { 4 };
            header[at..at + length].copy_from_slice(&bytes[..length]);
        }
        header[80..].fill(0xFF);
        [header, table, directory, book].concat()
    }

    #[test]
    fn old_files_cost_no_more_than_their_cells() {
        let near = [cell(0, 0), cell(1, 2)].concat();
        let table = read(&xls(&near, 1, false), Format::Spreadsheet, None).unwrap();
        assert_eq!((table.rows.len(), table.columns.len()), (1, 3));
        let far = [cell(0, 0), cell(65_535, 65_535)].concat();
        let wide = [cell(0, 0), cell(999, 2_999)].concat();
        let row = record(ROW_OF_NUMBERS, &words(&[65_535, 65_535, 0, 0, 0, 65_535]));
        let says = record(
            DIMENSIONS,
            &[0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0xFF, 0, 0, 0],
        );
        for (records, sheets, is_round) in [
            (far, 1, false),
            (wide.clone(), 4, false),
            ([cell(0, 0), row].concat(), 1, false),
            ([says, near.clone()].concat(), 1, false),
            (near, 1, true),
        ] {
            let read = read(&xls(&records, sheets, is_round), Format::Spreadsheet, None);
            assert!(read.is_err());
        }
        assert!(check(&xls(&wide, 3, false)).is_ok());
    }
}
