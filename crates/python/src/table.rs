//! Tables of results, by the Arrow C stream interface of PyCapsules and as plain values.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

use crate::errors::of_run;

/// A table of results.
#[pyclass(frozen, module = "apportion._native")]
pub struct Table {
    name: &'static str,
    batch: RecordBatch,
}

impl Table {
    pub const fn new(name: &'static str, batch: RecordBatch) -> Self {
        Self { name, batch }
    }

    fn array(&self, column: usize) -> PyResult<&Arc<dyn Array>> {
        self.batch.columns().get(column).ok_or_else(|| PyIndexError::new_err("there is no such column"))
    }
}

#[pymethods]
impl Table {
    #[getter]
    const fn name(&self) -> &'static str {
        self.name
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names, units (empty for none), and the words `text`, `integer`, `number` or `flag`.
    #[getter]
    fn columns(&self) -> Vec<(String, String, &'static str)> {
        let schema = self.batch.schema();
        let column = |field: &Arc<arrow_schema::Field>| {
            let kind = match field.data_type() {
                DataType::UInt64 => "integer",
                DataType::Float64 => "number",
                DataType::Boolean => "flag",
                _ => "text",
            };
            (field.name().clone(), field.metadata().get("unit").cloned().unwrap_or_default(), kind)
        };
        schema.fields().iter().map(column).collect()
    }

    /// Cells of a column from row `start` to before row `stop`; None where unmeasured.
    fn column<'py>(
        &self,
        py: Python<'py>,
        column: usize,
        start: usize,
        stop: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let array = self.array(column)?;
        let stop = stop.min(array.len());
        let array = array.slice(start.min(stop), stop.saturating_sub(start));
        match array.data_type() {
            DataType::UInt64 => PyList::new(py, array.as_primitive::<UInt64Type>()),
            DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>()),
            DataType::Boolean => PyList::new(py, array.as_boolean()),
            _ => PyList::new(py, array.as_string::<i32>()),
        }
    }

    /// Cells of a column of numbers as the bytes of 64-bit floats in native byte order, NaN where unmeasured;
    /// None for a column of another type.
    fn floats<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let array = self.array(column)?;
        let Some(numbers) = array.as_primitive_opt::<Float64Type>() else { return Ok(None) };
        let bytes: Vec<u8> =
            numbers.iter().flat_map(|number| number.unwrap_or(f64::NAN).to_ne_bytes()).collect();
        Ok(Some(PyBytes::new(py, &bytes)))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows ignoring the requested schema: the consumer casts.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.batch.schema()).map_err(of_run)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}
