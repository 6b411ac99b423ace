//! Conversion of tables to Arrow record batches, for data frames, Parquet, and programs in other languages.

#![expect(clippy::disallowed_types, reason = "metadata of Arrow is a HashMap; here it has one entry")]

use std::collections::HashMap;
use std::sync::Arc;

use apportion_report::Table;
use apportion_report::rows::{Cell, Column, Kind, Row};
use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::league::{LeagueResults, PairsResults};
use crate::results::Results;

/// The metadata key of a field for its unit.
const UNIT: &str = "unit";

impl Results {
    /// Returns a table as one record batch. Columns have the names of the fields of the rows; the metadata of
    /// a column contains its unit, such as `Mb/s`, under `unit`; cells that were not measured are null.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "1s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// use apportion::rows::FlowRow;
    ///
    /// let batch = apportion::Run::new(&scenario).simulate()?.record_batch::<FlowRow>()?;
    /// assert_eq!(batch.num_rows(), 1);
    /// let schema = batch.schema();
    /// assert_eq!(schema.field_with_name("throughput_mbps")?.metadata()["unit"], "Mb/s");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If Arrow cannot hold the table: a column has 2 GiB of text or more.
    pub fn record_batch<R: Table>(&self) -> Result<RecordBatch, ArrowError> {
        batch(self.table::<R>())
    }
}

impl LeagueResults {
    /// Returns all metrics of all cells as one record batch, with units and nulls as for a
    /// [run](Results::record_batch).
    ///
    /// # Errors
    /// As for a run.
    pub fn record_batch(&self) -> Result<RecordBatch, ArrowError> {
        batch(self.rows().into_iter())
    }
}

impl PairsResults {
    /// Returns all cells as one record batch, with units and nulls as for a [run](Results::record_batch).
    ///
    /// # Errors
    /// As for a run.
    pub fn record_batch(&self) -> Result<RecordBatch, ArrowError> {
        batch(self.rows().into_iter())
    }
}

fn batch<R: Row>(rows: impl Iterator<Item = R>) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<Builder> = R::COLUMNS.iter().map(Builder::new).collect();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row.cells()) {
            column.append(cell);
        }
    }
    RecordBatch::try_new(Arc::new(schema::<R>()), columns.into_iter().map(Builder::finish).collect())
}

/// Returns the schema of a table: names, types, units under `unit` in the metadata of fields, and which cells
/// may be null.
#[must_use]
pub fn schema<R: Row>() -> Schema {
    Schema::new(R::COLUMNS.iter().map(field).collect::<Vec<_>>())
}

fn field(column: &Column) -> Field {
    let kind = match column.kind {
        Kind::Text => DataType::Utf8,
        Kind::Integer => DataType::UInt64,
        Kind::Number => DataType::Float64,
        Kind::Flag => DataType::Boolean,
    };
    let field = Field::new(column.name, kind, column.optional);
    if column.unit.is_empty() {
        return field;
    }
    field.with_metadata(HashMap::from([(UNIT.to_owned(), column.unit.to_owned())]))
}

/// A column under construction.
enum Builder {
    Text(StringBuilder),
    Integer(UInt64Builder),
    Number(Float64Builder),
    Flag(BooleanBuilder),
}

impl Builder {
    fn new(column: &Column) -> Self {
        match column.kind {
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Integer => Self::Integer(UInt64Builder::new()),
            Kind::Number => Self::Number(Float64Builder::new()),
            Kind::Flag => Self::Flag(BooleanBuilder::new()),
        }
    }

    /// Appends a cell; the type of the row's field determines both the column's type and the cell's.
    fn append(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Text(column), Cell::Text(text)) => column.append_value(text),
            (Self::Integer(column), Cell::Integer(number)) => column.append_value(number),
            (Self::Number(column), Cell::Number(number)) => column.append_value(number),
            (Self::Flag(column), Cell::Flag(flag)) => column.append_value(flag),
            (Self::Text(column), _) => column.append_null(),
            (Self::Integer(column), _) => column.append_null(),
            (Self::Number(column), _) => column.append_null(),
            (Self::Flag(column), _) => column.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut column) => Arc::new(column.finish()),
            Self::Integer(mut column) => Arc::new(column.finish()),
            Self::Number(mut column) => Arc::new(column.finish()),
            Self::Flag(mut column) => Arc::new(column.finish()),
        }
    }
}
