//! Spreadsheets.

mod old;
mod repeated;

use std::io::{self, Cursor};

use calamine::{Data, Reader, Sheets, open_workbook_auto_from_rs};
use rust_xlsxwriter::Workbook;
use serde_json::{Number, Value};
use zip::ZipArchive;

use crate::error::TableError;
use crate::{MAX_UNPACKED, Table, bounded, named, shown};

const FORMAT: &str = "a spreadsheet";
/// Maximum rows and columns of an Excel sheet.
const ROWS: usize = 1_048_576;
const COLUMNS: usize = 16_384;
/// Maximum characters of an Excel cell.
const TEXT: usize = 32_767;

fn unreadable(why: impl ToString) -> TableError {
    TableError::Unreadable {
        format: FORMAT,
        why: why.to_string(),
    }
}

pub(crate) fn read(bytes: &[u8], sheet: Option<&str>) -> Result<Table, TableError> {
    unpacks(bytes, MAX_UNPACKED)?;
    repeated::check(bytes)?;
    old::check(bytes)?;
    let mut book = open_workbook_auto_from_rs(Cursor::new(bytes)).map_err(unreadable)?;
    let sheets = book.sheet_names();
    let name = match sheet {
        Some(name) => sheets.iter().find(|sheet| *sheet == name),
        None => sheets.first(),
    };
    let Some(name) = name.cloned() else {
        return Err(TableError::Sheet {
            name: sheet.unwrap_or("at all").to_owned(),
            sheets: sheets.join(", "),
        });
    };
    extent(&mut book, &name)?;
    let range = book.worksheet_range(&name).map_err(unreadable)?;
    let (height, width) = range.get_size();
    bounded(height, width)?;
    let mut rows = range.rows();
    let first = rows.next().unwrap_or_default();
    let columns = named(first.iter().map(|cell| shown(&value(cell))));
    let rows = rows.map(|row| row.iter().map(value).collect());
    Ok(Table {
        columns,
        rows: rows.collect(),
    })
}

/// Checks the number of cells between the first and the last filled one: memory is allocated for all of them, and two cells of a
/// small file may be as far apart as a sheet is large.
fn extent<R: io::Read + io::Seek>(book: &mut Sheets<R>, name: &str) -> Result<(), TableError> {
    let mut extent = Extent::default();
    match book {
        Sheets::Xlsx(book) => {
            let mut cells = book.worksheet_cells_reader(name).map_err(unreadable)?;
            while let Some(cell) = cells.next_cell().map_err(unreadable)? {
                extent.add(cell.get_position())?;
            }
        }
        Sheets::Xlsb(book) => {
            let mut cells = book.worksheet_cells_reader(name).map_err(unreadable)?;
            while let Some(cell) = cells.next_cell().map_err(unreadable)? {
                extent.add(cell.get_position())?;
            }
        }
        // These have been read with the book, after checks in `old` and `repeated`.
        Sheets::Xls(_) | Sheets::Ods(_) => {}
    }
    Ok(())
}

/// The extent of filled cells: the first and the last row, the first and the last column, and their number.
#[derive(Default)]
struct Extent {
    around: Option<[u32; 4]>,
    count: usize,
}

impl Extent {
    fn add(&mut self, (row, column): (u32, u32)) -> Result<(), TableError> {
        let [top, bottom, left, right] = self.around.unwrap_or([row, row, column, column]);
        let (top, bottom) = (top.min(row), bottom.max(row));
        let (left, right) = (left.min(column), right.max(column));
        self.around = Some([top, bottom, left, right]);
        self.count += 1;
        let length = |from: u32, to: u32| (to - from) as usize + 1;
        bounded(length(top, bottom), length(left, right))?;
        // The same position may occur many times.
        bounded(self.count, 1)
    }

    /// Returns the number of cells between the first and the last one.
    fn cells(&self) -> u64 {
        self.around
            .map(|[top, bottom, left, right]| {
                (u64::from(bottom - top) + 1) * (u64::from(right - left) + 1)
            })
            .unwrap_or_default()
    }
}

/// Checks the unpacked size. A few kilobytes of a compressed file may expand to more than the memory, and a file's own size field
/// may be wrong, so it is unpacked once without storing it.
fn unpacks(bytes: &[u8], limit: u64) -> Result<(), TableError> {
    // The old formats are not compressed.
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
        return Ok(());
    };
    let mut total = 0;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(unreadable)?;
        let mut entry = io::Read::take(entry, limit + 1 - total);
        total += io::copy(&mut entry, &mut io::sink()).map_err(unreadable)?;
        if total > limit {
            return Err(TableError::TooLarge {
                what: "the spreadsheet, unpacked,",
                size: total,
                limit,
            });
        }
    }
    Ok(())
}

fn value(cell: &Data) -> Value {
    match cell {
        Data::Empty => Value::Null,
        Data::Int(number) => Value::from(*number),
        Data::Float(number) => self::number(*number),
        Data::Bool(yes) => Value::from(*yes),
        Data::String(text) if text.is_empty() => Value::Null,
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => {
            Value::from(text.as_str())
        }
        Data::DateTime(time) if time.is_duration() => number(time.as_f64()),
        Data::DateTime(time) => {
            let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
            let date = format!("{year:04}-{month:02}-{day:02}");
            match (hour, minute, second, milli) {
                (0, 0, 0, 0) => Value::from(date),
                (_, _, _, 0) => Value::from(format!("{date}T{hour:02}:{minute:02}:{second:02}")),
                _ => Value::from(format!(
                    "{date}T{hour:02}:{minute:02}:{second:02}.{milli:03}"
                )),
            }
        }
        Data::Error(error) => Value::from(error.to_string()),
    }
}

/// Converts a number: spreadsheets have no integers, so integral values become integers.
fn number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

pub(crate) fn write(table: &Table) -> Result<Vec<u8>, TableError> {
    for (what, size, limit) in [
        ("a sheet's number of rows", table.rows.len() + 1, ROWS),
        ("a sheet's number of columns", table.columns.len(), COLUMNS),
    ] {
        if size > limit {
            return Err(TableError::TooLarge {
                what,
                size: size as u64,
                limit: limit as u64,
            });
        }
    }
    let fail = |error: rust_xlsxwriter::XlsxError| TableError::Unwritable {
        format: FORMAT,
        why: error.to_string(),
    };
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    let head: Vec<Value> = table.columns.iter().cloned().map(Value::from).collect();
    for (index, row) in std::iter::once(&head).chain(&table.rows).enumerate() {
        let row_number = u32::try_from(index).unwrap_or(u32::MAX);
        for (column, cell) in row.iter().enumerate() {
            let column = u16::try_from(column).unwrap_or(u16::MAX);
            let number = cell.as_f64().filter(|_| exact(cell));
            match (cell, number) {
                (Value::Null, _) => continue,
                (Value::Bool(yes), _) => sheet.write_boolean(row_number, column, *yes),
                (_, Some(number)) => sheet.write_number(row_number, column, number),
                _ => {
                    let text = shown(cell);
                    if text.chars().count() > TEXT {
                        return Err(TableError::TooLarge {
                            what: "a cell's number of characters",
                            size: text.chars().count() as u64,
                            limit: TEXT as u64,
                        });
                    }
                    // Always a text: a leading `=` must not become a formula.
                    sheet.write_string(row_number, column, text)
                }
            }
            .map_err(fail)?;
        }
    }
    book.save_to_buffer().map_err(fail)
}

/// Returns whether a spreadsheet's number represents it exactly; otherwise it is written as text, so that no digit is lost.
fn exact(cell: &Value) -> bool {
    const EXACT: u64 = 1 << 53;
    match cell {
        Value::Number(number) => {
            number.is_f64() || number.as_i64().is_some_and(|n| n.unsigned_abs() <= EXACT)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn packed(files: &[(&str, &str)]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        for (name, text) in files {
            archive.start_file(*name, options).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    fn xlsx(cells: &str) -> Vec<u8> {
        const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        const RELATIONS: &str =
            "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
        packed(&[
            (
                "[Content_Types].xml",
                &format!("<Types xmlns=\"{PACKAGE}/content-types\"/>"),
            ),
            (
                "_rels/.rels",
                &format!(
                    "<Relationships xmlns=\"{PACKAGE}/relationships\"><Relationship Id=\"rId1\" Type=\"{RELATIONS}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
                ),
            ),
            (
                "xl/workbook.xml",
                &format!(
                    "<workbook xmlns=\"{MAIN}\" xmlns:r=\"{RELATIONS}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
                ),
            ),
            (
                "xl/_rels/workbook.xml.rels",
                &format!(
                    "<Relationships xmlns=\"{PACKAGE}/relationships\"><Relationship Id=\"rId1\" Type=\"{RELATIONS}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
                ),
            ),
            (
                "xl/worksheets/sheet1.xml",
                &format!("<worksheet xmlns=\"{MAIN}\"><sheetData>{cells}</sheetData></worksheet>"),
            ),
        ])
    }

    fn ods(rows: &str) -> Vec<u8> {
        packed(&[
            ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
            ("META-INF/manifest.xml", "<manifest:manifest/>"),
            (
                "content.xml",
                &format!(
                    "<office:document-content><office:body><office:spreadsheet><table:table table:name=\"S\">{rows}</table:table></office:spreadsheet></office:body></office:document-content>"
                ),
            ),
        ])
    }

    /// No memory is allocated for what is between them.
    #[test]
    fn two_cells_that_are_far_from_each_other_are_too_many() {
        let cell = |name: &str, row: u32| {
            format!("<row r=\"{row}\"><c r=\"{name}{row}\"><v>1</v></c></row>")
        };
        let near = xlsx(&[cell("A", 1), cell("C", 3)].concat());
        assert_eq!(read(&near, None).unwrap().rows.len(), 2);
        let value = "<table:table-cell office:value-type=\"float\" office:value=\"1\"/>";
        let row = |repeated: &str, cells: &str| {
            format!("<table:table-row{repeated}>{cells}</table:table-row>")
        };
        let many = |what: &str, count: u32| format!(" table:number-{what}-repeated=\"{count}\"");
        let empty = |count: u32| format!("<table:table-cell{}/>", many("columns", count));
        // As spreadsheets are written, with empty cells at the end.
        let plain = [
            row("", value),
            row(&many("rows", 3), value),
            row(&many("rows", 1_048_572), &empty(16_384)),
        ];
        assert_eq!(read(&ods(&plain.concat()), None).unwrap().rows.len(), 3);
        for far in [
            xlsx(&[cell("A", 1), cell("XFD", 1_048_576)].concat()),
            ods(&row(
                &many("rows", 1_000_000),
                &[empty(16_000), value.to_owned()].concat(),
            )),
            ods(&[
                row("", &[empty(16_000), value.to_owned()].concat()),
                row(&many("rows", 1_000_000), &empty(1)),
                row("", value),
            ]
            .concat()),
            ods(&row(
                &many("rows", 1_000_000),
                &value.replace("/>", &format!("{}/>", many("columns", 16_000))),
            )),
            // Each table alone would be fine.
            ods(&[(); 2]
                .map(|()| {
                    row(
                        &many("rows", 3000),
                        &value.replace("/>", &format!("{}/>", many("columns", 3000))),
                    )
                })
                .join("</table:table><table:table table:name=\"T\">")),
        ] {
            let error = read(&far, None).unwrap_err().to_string();
            assert!(error.starts_with("the number of cells has "), "{error}");
        }
    }

    #[test]
    fn a_packed_file_that_unpacks_to_more_than_there_is_room_for_is_refused() {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        for name in ["xl/workbook.xml", "xl/sharedStrings.xml"] {
            archive.start_file(name, options).unwrap();
            archive.write_all(&vec![0; 150_000]).unwrap();
        }
        let bytes = archive.finish().unwrap().into_inner();
        assert!(bytes.len() < 10_000, "{}", bytes.len());
        assert_eq!(unpacks(&bytes, 300_000), Ok(()));
        let error = unpacks(&bytes, 299_999).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the spreadsheet, unpacked, has 300000, more than the 299999 that are taken"
        );
        // Uncompressed data is not unpacked.
        assert_eq!(unpacks(b"\xd0\xcf\x11\xe0", 1), Ok(()));
    }
}
