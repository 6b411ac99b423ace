//! Values of the last hour, one row a second.

use std::collections::VecDeque;
use std::ops::Range;

use serde_json::Value;

/// Number of seconds.
pub(super) const SECONDS: usize = 3_600;

/// Rows of `N` values. Missing values are NaN.
#[derive(Debug)]
pub(super) struct Series<const N: usize> {
    rows: VecDeque<[f32; N]>,
    /// The second after the last one.
    next: u64,
}

impl<const N: usize> Default for Series<N> {
    fn default() -> Self {
        Self { rows: VecDeque::new(), next: 0 }
    }
}

impl<const N: usize> Series<N> {
    /// The second after the last one; 0 if there is none.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Adds the row of this second, which is later than all others.
    pub fn push(&mut self, second: u64, row: [f32; N]) {
        if self.rows.is_empty() {
            self.next = second;
        }
        let missing = second.saturating_sub(self.next).min(SECONDS as u64 - 1) as usize;
        // First, or the buffer would grow.
        let excess = (self.rows.len() + missing + 1).saturating_sub(SECONDS);
        self.rows.drain(..excess);
        self.rows.extend(std::iter::repeat_n([f32::NAN; N], missing));
        self.rows.push_back(row);
        self.next = second + 1;
    }

    /// The seconds that have rows.
    pub fn range(&self) -> Range<u64> {
        self.next - self.rows.len() as u64..self.next
    }

    /// The values of these seconds in a column, converted by `write`.
    pub fn column(&self, column: usize, seconds: Range<u64>, write: impl Fn(f32) -> Value) -> Vec<Value> {
        let first = self.range().start;
        let row = |second: u64| self.rows.get(second.checked_sub(first)? as usize);
        seconds.map(|second| write(row(second).map_or(f32::NAN, |row| row[column]))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_hour_is_kept_and_what_is_missing_is_null() {
        let mut series = Series::<2>::default();
        let write = |value: f32| if value.is_nan() { Value::Null } else { json!(value) };
        series.push(7, [1.0, 2.0]);
        series.push(9, [3.0, 4.0]);
        let column = |series: &Series<2>, seconds| Value::Array(series.column(1, seconds, write));
        assert_eq!(column(&series, 6..11), json!([null, 2.0, null, 4.0, null]));
        (10..5_000).for_each(|second| series.push(second, [0.0, second as f32]));
        assert_eq!((series.range(), series.rows.len()), (1_400..5_000, SECONDS));
        assert_eq!(column(&series, 1_399..1_402), json!([null, 1_400.0, 1_401.0]));
        // A longer gap takes no more memory.
        series.push(u64::from(u32::MAX), [0.0; 2]);
        assert_eq!(series.rows.len(), SECONDS);
        assert!(series.rows.capacity() <= 2 * SECONDS, "{}", series.rows.capacity());
    }
}
