//! Tables as Parquet files: columns of the [rows](crate::rows) by name, texts with dictionaries, pages compressed by LZ4.
//!
//! The key-value metadata of a file has the units of columns, under `unit:COLUMN`.

use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::{Type, TypePtr};

use crate::rows::{Cell, Column, Kind, Row};

/// Maximum of rows in a row group. Chosen: some 20 MB of memory for the widest table, and large enough to
/// compress well.
const GROUP: usize = 1 << 16;

/// Writes a table, row by row.
pub(super) struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Values>,
    /// Number of rows that are not in the file yet.
    rows: usize,
}

/// The cells of a column, in Parquet's form.
struct Values {
    cells: Cells,
    /// For a column whose cells may be missing: 1 for a cell, 0 for a missing one.
    present: Option<Vec<i16>>,
}

enum Cells {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

impl<W: Write + Send> TableWriter<W> {
    pub(super) fn new<R: Row>(out: W) -> io::Result<Self> {
        let units = R::COLUMNS.iter().filter(|column| !column.unit.is_empty());
        let units =
            units.map(|column| KeyValue::new(format!("unit:{}", column.name), column.unit.to_owned()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by("apportion".to_owned())
            .set_key_value_metadata(Some(units.collect()))
            .build();
        let file = SerializedFileWriter::new(out, schema::<R>().map_err(cause)?, Arc::new(properties));
        Ok(Self {
            file: file.map_err(cause)?,
            columns: R::COLUMNS.iter().map(Values::new).collect(),
            rows: 0,
        })
    }

    pub(super) fn add(&mut self, row: &impl Row) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(row.cells()) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == GROUP { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(cause)?;
        for column in &mut self.columns {
            let mut writer =
                group.next_column().map_err(cause)?.ok_or_else(|| io::Error::other("too few columns"))?;
            column.write(writer.untyped()).map_err(cause)?;
            writer.close().map_err(cause)?;
        }
        group.close().map_err(cause)?;
        self.rows = 0;
        Ok(())
    }

    /// Writes the rest and returns the writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner().map_err(cause)
    }
}

impl Values {
    fn new(column: &Column) -> Self {
        let cells = match column.kind {
            Kind::Text => Cells::Text(Vec::new()),
            Kind::Integer => Cells::Integer(Vec::new()),
            Kind::Number => Cells::Number(Vec::new()),
            Kind::Flag => Cells::Flag(Vec::new()),
        };
        Self { cells, present: column.optional.then(Vec::new) }
    }

    /// Adds a cell; the type of its field determines both the column's kind and its own.
    fn push(&mut self, cell: Cell<'_>) {
        if let Some(present) = &mut self.present {
            present.push(i16::from(cell != Cell::Missing));
        }
        match (&mut self.cells, cell) {
            (Cells::Text(all), Cell::Text(text)) => {
                // Labels and names repeat from row to row: such cells share one text.
                let same = all.last().filter(|last| last.data() == text.as_bytes()).cloned();
                all.push(same.unwrap_or_else(|| text.into()));
            }
            // Parquet stores unsigned integers as the same bits.
            (Cells::Integer(all), Cell::Integer(number)) => all.push(number.cast_signed()),
            (Cells::Number(all), Cell::Number(number)) => all.push(number),
            (Cells::Flag(all), Cell::Flag(flag)) => all.push(flag),
            _ => (),
        }
    }

    /// Writes the cells and forgets them.
    fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = self.present.as_mut().map(mem::take);
        let present = present.as_deref();
        match (&mut self.cells, writer) {
            (Cells::Text(all), ColumnWriter::ByteArrayColumnWriter(to)) => {
                to.write_batch(&mem::take(all), present, None)
            }
            (Cells::Integer(all), ColumnWriter::Int64ColumnWriter(to)) => {
                to.write_batch(&mem::take(all), present, None)
            }
            (Cells::Number(all), ColumnWriter::DoubleColumnWriter(to)) => {
                to.write_batch(&mem::take(all), present, None)
            }
            (Cells::Flag(all), ColumnWriter::BoolColumnWriter(to)) => {
                to.write_batch(&mem::take(all), present, None)
            }
            _ => Err(ParquetError::General("a column of another type".to_owned())),
        }
        .map(|_| ())
    }
}

fn schema<R: Row>() -> Result<TypePtr, ParquetError> {
    let column = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Integer => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Flag => (Physical::BOOLEAN, None),
        };
        let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let of = Type::primitive_type_builder(column.name, physical);
        of.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    };
    let columns = R::COLUMNS.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(R::TABLE).with_fields(columns).build().map(Arc::new)
}

/// The I/O error inside an error of Parquet: its kind selects the advice.
fn cause(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

// ---------------------------------------------------------------------------------------------
// Reading

/// The rows of a table that is being read, or why one cannot be read.
pub(super) struct Rows<R> {
    /// None after a failure.
    rows: Option<RowIter<'static>>,
    read: u64,
    of: PhantomData<R>,
}

/// Opens a table and checks its columns.
pub(super) fn open<R: Row>(file: File) -> Result<Rows<R>, String> {
    let reader = guarded(|| SerializedFileReader::new(file))?.map_err(|error| error.to_string())?;
    let wanted = schema::<R>().map_err(|error| error.to_string())?;
    let found = reader.metadata().file_metadata().schema();
    if found.get_fields() != wanted.get_fields() {
        let names =
            |of: &Type| of.get_fields().iter().map(|f| f.name().to_owned()).collect::<Vec<_>>().join(",");
        return Err(format!("its columns are `{}`, not `{}`", names(found).escape_debug(), names(&wanted)));
    }
    Ok(Rows { rows: Some(RowIter::from_file_into(Box::new(reader))), read: 0, of: PhantomData })
}

impl<R: Row> Iterator for Rows<R> {
    type Item = Result<R, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rows = self.rows.take()?;
        self.read += 1;
        let next = guarded(|| (rows.next(), rows)).and_then(|(row, rows)| {
            self.rows = Some(rows);
            row.transpose().map_err(|error| error.to_string())
        });
        let row = next.transpose()?.and_then(|row| {
            let cells: Option<Vec<Cell<'_>>> = row.get_column_iter().map(|(_, field)| cell(field)).collect();
            cells
                .and_then(|cells| R::of_cells(&cells))
                .ok_or_else(|| "a cell is not what its column holds".to_owned())
        });
        Some(row.map_err(|cause| {
            self.rows = None;
            format!("row {}: {cause}", self.read)
        }))
    }
}

/// The crate panics on some malformed files that no writer produces; such a file is refused like others.
fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| "it is damaged".to_owned())
}

/// A cell; none if it has another type or is not a finite number.
fn cell(field: &Field) -> Option<Cell<'_>> {
    Some(match field {
        Field::Null => Cell::Missing,
        Field::Str(text) => Cell::Text(text),
        Field::ULong(number) => Cell::Integer(*number),
        Field::Double(number) if number.is_finite() => Cell::Number(*number),
        Field::Bool(flag) => Cell::Flag(*flag),
        _ => return None,
    })
}
