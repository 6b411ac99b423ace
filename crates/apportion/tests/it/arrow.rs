//! Tables as Arrow record batches: `cargo test -p apportion --features arrow`.

#![cfg(feature = "arrow")]

use apportion::rows::{AllocationRow, CompletionRow, FlowRow, LinkRow, SeriesRow, StatisticRow};
use apportion::{Results, Run, Scenario, Table};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;

fn results() -> Results {
    let scenario = Scenario::from_text(
        r#"
        seed = 3
        stop = "2s"
        [link.bottleneck]
        from = "a"
        to = "b"
        rate = "1Mbit"
        delay = "5ms"
        queue = ["red", "drr"]
        watch = true
        [flow.bulk]
        from = "a"
        to = "b"
        tcp = "rfc"
        [flow.files]
        from = "a"
        to = "b"
        tcp = "rfc"
        source = { kind = "file", size = "10kB" }
        "#,
    );
    Run::new(&scenario.unwrap()).seeds(2).simulate().unwrap()
}

/// Returns the batch of a table, with the same number of rows and with nulls only where its schema allows
/// them.
fn batch<R: Table>(results: &Results) -> RecordBatch {
    let batch = results.record_batch::<R>().unwrap();
    assert_eq!(batch.num_rows(), results.table::<R>().count());
    assert_eq!(*batch.schema(), apportion::arrow::schema::<R>());
    for (column, field) in batch.columns().iter().zip(batch.schema().fields()) {
        assert!(field.is_nullable() || column.null_count() == 0, "{}", field.name());
    }
    batch
}

#[test]
fn a_batch_has_the_rows_of_its_table_and_nulls_for_missing_cells() {
    let results = results();
    let flows = batch::<FlowRow>(&results);
    let text = |name: &str| flows.column_by_name(name).unwrap().as_string::<i32>().clone();
    let number = |name: &str| flows.column_by_name(name).unwrap().as_primitive::<Float64Type>().clone();
    let whole = |name: &str| flows.column_by_name(name).unwrap().as_primitive::<UInt64Type>().clone();
    let mut missing = 0;
    for (at, row) in results.flows().enumerate() {
        assert_eq!(text("point").value(at), row.point);
        assert_eq!(text("flow").value(at), row.flow);
        assert_eq!(whole("seed").value(at), row.seed);
        assert_eq!(whole("sent_bytes").value(at), row.sent_bytes);
        assert_eq!(number("throughput_mbps").value(at).to_bits(), row.throughput_mbps.to_bits());
        let (column, expected) = (number("completion_p50_s"), row.completion_p50_s);
        assert_eq!(column.is_valid(at).then(|| column.value(at)), expected);
        missing += usize::from(expected.is_none());
    }
    // The bulk flow has no completions; the file has.
    assert!(missing > 0 && missing < flows.num_rows(), "{missing}");
}

#[test]
fn every_table_has_a_batch_with_units() {
    let results = results();
    assert!(batch::<SeriesRow>(&results).num_rows() > 0);
    assert!(batch::<CompletionRow>(&results).num_rows() > 0);
    assert!(batch::<StatisticRow>(&results).num_rows() > 0);
    // No queue here allocates rates: a table without rows keeps its columns.
    let empty = batch::<AllocationRow>(&results);
    assert_eq!((empty.num_rows(), empty.num_columns()), (0, 7));
    let links = batch::<LinkRow>(&results).schema();
    let field = |name: &str| links.field_with_name(name).unwrap().clone();
    assert_eq!(field("queue_delay_p95_ms").metadata()["unit"], "ms");
    assert_eq!(field("sent_bytes").metadata()["unit"], "bytes");
    assert!(field("link").metadata().is_empty());
    assert_eq!(*field("watched").data_type(), DataType::Boolean);
    assert!(field("queue_delay_p95_ms").is_nullable() && !field("utilisation").is_nullable());
}
