//! Conversion of Python values to TOML.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMapping, PyString};
use toml::{Table, Value};

use crate::errors::of_key;

/// Maximum nesting of values. Chosen: scenarios need five levels.
const MAX_DEPTH: usize = 32;

/// Converts a dictionary to a table. `path` is its place, for messages.
///
/// # Errors
/// A key is no text, or a value has no form in TOML.
pub fn table(values: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in values {
        insert(&mut table, "", &key, &value, 0)?;
    }
    Ok(table)
}

fn insert(
    table: &mut Table,
    path: &str,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> PyResult<()> {
    let Ok(key) = key.cast::<PyString>() else {
        return Err(of_key(key.py(), path, &format!("the key {} is no text", key.repr()?)));
    };
    let key = key.to_str()?.to_owned();
    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
    table.insert(key, self::value(&path, value, depth)?);
    Ok(())
}

/// Converts a value: text, a number, a bool, a mapping, or any iterable; also paths, and scalars and arrays
/// of numpy.
///
/// # Errors
/// The value has no form in TOML; the error names its place, `path`.
pub fn value(path: &str, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = value.py();
    if depth > MAX_DEPTH {
        return Err(of_key(py, path, &format!("values are nested deeper than {MAX_DEPTH} levels")));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        // TOML integers end at 2^63; seeds derived from others can be larger, and may be text.
        let text = || value.extract::<u64>().map(|number| Value::String(number.to_string()));
        let number = value.extract::<i64>().map(Value::Integer).or_else(|_| text());
        return number.map_err(|_| of_key(py, path, "the number has more than 64 bits"));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let mut table = Table::new();
        for item in mapping.items()? {
            let (key, inner): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            insert(&mut table, path, &key, &inner, depth + 1)?;
        }
        return Ok(Value::Table(table));
    }
    if let Ok(file) = value.call_method0("__fspath__") {
        return self::value(path, &file, depth + 1);
    }
    // A scalar or an array of numpy.
    if let Ok(plain) = value.call_method0("tolist") {
        return self::value(path, &plain, depth + 1);
    }
    let Ok(items) = value.try_iter() else {
        let name = value.get_type().name()?;
        let why = format!(
            "{} of type {name} has no form in a scenario; write text, a number, True or False, a list or a dict, or leave the key out",
            value.repr()?
        );
        return Err(of_key(py, path, &why));
    };
    items.map(|item| self::value(path, &item?, depth + 1)).collect::<PyResult<_>>().map(Value::Array)
}
