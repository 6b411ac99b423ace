//! Recorded links: files of delivery opportunities, and tables of rates over time, which become such opportunities.

use std::fmt;
use std::str::FromStr;

use apportion_core::delivery_trace::{DeliveryTrace, OPPORTUNITY};
use apportion_core::units::{Bytes, Rate, Span};

use crate::files::{FileError, MAX_RECORDS, fields};
use crate::problem::TextError;

/// Latest time of an opportunity: 35 years. In nanoseconds below 2^60, so that sums with times of a run fit 64 bits.
const LATEST_MS: u64 = 1 << 40;
/// Latest time of a rate in s, relative to the first line: for times since 1970, until 2096. In nanoseconds
/// below 2^62.
const LATEST: f64 = 4e9;
/// Maximum length of a trace of intervals.
const LONGEST: Span = Span::from_nanos(1 << 60);
/// Maximum rate in bit/s. Chosen: more than any link has.
const HIGHEST: f64 = 1e15;

/// The columns of a trace, for example `s Mbit`: a unit of time, a unit of rate or of size if there are rates
/// or sizes, and `-` for each column that is not used.
///
/// Without rates a line is a delivery opportunity. With rates a line gives the rate from its time on until
/// the next line; the last one lasts as long as the one before it. With sizes a line gives the amount since
/// the line before; the first line has none. `+ms` in place of `ms` gives the length of that interval.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceColumns {
    text: String,
    /// Index of the times, and their unit in seconds.
    time: (usize, f64),
    /// Whether times are lengths of intervals.
    are_lengths: bool,
    /// Index of the rates or sizes, and their unit in bit/s or bits.
    amount: Option<(usize, f64)>,
    /// Whether the amounts are sizes.
    are_sizes: bool,
    count: usize,
}

impl FromStr for TraceColumns {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let fail = |what: &str| {
            TextError::whole(format!(
                "`{text}` {what}; write units of a time and perhaps of a rate, and - for columns that are not used, such \
                 as \"s Mbit\", \"ms - kbit\" or \"- B +ms\""
            ))
        };
        let (mut time, mut amount, mut count) = (None, None, 0);
        let (mut are_lengths, mut are_sizes) = (false, false);
        for unit in text.split([' ', ',']).filter(|unit| !unit.is_empty()) {
            let one = format!("1{}", unit.strip_prefix('+').unwrap_or(unit));
            let column = if unit == "-" {
                None
            } else if let Ok(span) = one.parse::<Span>() {
                are_lengths = unit.starts_with('+');
                time.replace((count, span.as_secs_f64())).map(|_| "times")
            } else if let Ok(rate) = unit_of::<Rate>(unit) {
                amount.replace((count, rate.as_bit() as f64)).map(|_| "rates or sizes")
            } else if let Ok(size) = unit_of::<Bytes>(unit) {
                are_sizes = true;
                amount.replace((count, size.bits() as f64)).map(|_| "rates or sizes")
            } else {
                return Err(fail(&format!("has `{unit}`, which is no unit")));
            };
            if let Some(what) = column {
                return Err(fail(&format!("has two columns of {what}")));
            }
            count += 1;
        }
        let time = time.ok_or_else(|| fail("has no column of times"))?;
        if are_lengths && !are_sizes {
            return Err(fail("has lengths of intervals without sizes of what came in them"));
        }
        Ok(Self { text: text.to_owned(), time, are_lengths, amount, are_sizes, count })
    }
}

/// One unit.
fn unit_of<T: FromStr>(unit: &str) -> Result<T, T::Err> {
    format!("1{unit}").parse()
}

/// Formats the columns as they were written.
impl fmt::Display for TraceColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads a recorded link. Without `columns` in mahimahi's format: one time in whole milliseconds a line, not
/// descending; the last one is the period and is above zero. Empty lines and text after `#` are skipped, and
/// with `columns` a first line of names.
///
/// # Errors
/// The first invalid line, and how to mend it.
pub fn delivery_trace(text: &str, columns: Option<&TraceColumns>) -> Result<DeliveryTrace, FileError> {
    let rows = rows(text, columns)?;
    if rows.is_empty() {
        let message = "there is no line in it; write one time in milliseconds a line";
        return Err(FileError::new(None, message));
    }
    match columns {
        Some(columns) if columns.are_sizes => return columns.of_sizes(&rows),
        Some(columns) if columns.amount.is_some() => return of_rates(&rows),
        _ => (),
    }
    let times = rows.into_iter().map(|(_, time, _)| time).collect();
    let message = "it ends at 0 ms, and would never come to an end; end it with its length";
    DeliveryTrace::new(times).ok_or_else(|| FileError::new(None, message))
}

/// A line: its number, its time, and its rate, or the bits of its size as a rate.
type Row = (usize, Span, Rate);

fn rows(text: &str, columns: Option<&TraceColumns>) -> Result<Vec<Row>, FileError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut may_be_names = columns.is_some();
    // For tables, the times of the first and the last line, as written.
    let mut known: Option<(f64, f64)> = None;
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let fail = |message: String| FileError::new(number, message);
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let (time, rate) = match columns {
            Some(columns) if std::mem::take(&mut may_be_names) && columns.are_names(line) => continue,
            Some(columns) => {
                let (time, rate) = columns.read(line).map_err(fail)?;
                if columns.are_lengths {
                    let before = rows.last().map_or(Span::ZERO, |row| row.1);
                    let length = Span::from_secs_f64(time * columns.time.1);
                    rows.push((number, before + length, rate));
                    if before + length > LONGEST || rows.len() > MAX_RECORDS {
                        return Err(fail("the trace is longer than a run can be; cut it".to_owned()));
                    }
                    continue;
                }
                let origin = known.map_or(time, |(first, _)| first);
                if known.replace((origin, time)).is_some_and(|(_, before)| time < before) {
                    return Err(fail(format!("`{line}` comes after a later time; sort the lines")));
                }
                (columns.since(origin, time), rate)
            }
            None => (whole_ms(line).map_err(fail)?, Rate::ZERO),
        };
        if rows.last().is_some_and(|(_, before, _)| time < *before) {
            return Err(fail(format!("{line} ms comes after a later time; sort the lines")));
        }
        if rows.len() == MAX_RECORDS {
            return Err(fail(format!("there are more than {MAX_RECORDS} lines; cut the trace")));
        }
        rows.push((number, time, rate));
    }
    Ok(rows)
}

/// A line of mahimahi's format.
fn whole_ms(line: &str) -> Result<Span, String> {
    match line.parse::<u64>() {
        Ok(ms) if ms < LATEST_MS => Ok(Span::from_millis(ms)),
        _ => Err(format!(
            "`{line}` is not a time in milliseconds; write whole numbers such as 12, or say what the columns are, \
             such as \"s Mbit\""
        )),
    }
}

impl TraceColumns {
    /// The time of a line as written, and the rate.
    fn read(&self, line: &str) -> Result<(f64, Rate), String> {
        let fields = fields(line);
        if fields.len() != self.count {
            return Err(format!(
                "`{line}` has {} columns, and `{self}` {}; write - for those that are not used",
                fields.len(),
                self.count
            ));
        }
        let number = |(at, unit): (usize, f64), most: f64, what: &str| {
            let field = fields[at];
            let value = field.parse::<f64>().ok().filter(|value| (0.0..=most / unit).contains(value));
            value.ok_or_else(|| {
                let most = most / unit;
                format!("`{field}` is not a {what} in the unit of `{self}`; write a number from 0 to {most}")
            })
        };
        let latest = if self.amount.is_some() { LATEST } else { LATEST_MS as f64 / 1e3 };
        let time = number(self.time, latest, "time")?;
        let rate = match self.amount {
            Some(column) => number(column, HIGHEST, if self.are_sizes { "size" } else { "rate" })? * column.1,
            None => 0.0,
        };
        Ok((time, Rate::from_bit(libm::round(rate) as u64)))
    }

    /// The time of a line relative to `origin`, the time of the first line: written times may be since 1970,
    /// too large for nanoseconds.
    fn since(&self, origin: f64, time: f64) -> Span {
        let origin = if self.amount.is_some() { origin } else { 0.0 };
        Span::from_secs_f64((time - origin) * self.time.1)
    }

    /// Whether a line has no number where it should.
    fn are_names(&self, line: &str) -> bool {
        let fields = fields(line);
        let places = [Some(self.time), self.amount].into_iter().flatten();
        fields.len() == self.count && places.into_iter().all(|(at, _)| fields[at].parse::<f64>().is_err())
    }
}

impl TraceColumns {
    /// The trace of sizes: the amount of each interval came at one rate.
    fn of_sizes(&self, rows: &[Row]) -> Result<DeliveryTrace, FileError> {
        // Without lengths, the first line only starts the first interval.
        let begins = if self.are_lengths { Span::ZERO } else { rows[0].1 };
        let rows = if self.are_lengths { rows } else { &rows[1..] };
        let Some(&(_, end, _)) = rows.last() else {
            let message = "one line does not say in which time its size came; write a second one";
            return Err(FileError::new(None, message));
        };
        let begin = |at: usize| at.checked_sub(1).map_or(begins, |before| rows[before].1);
        let mut rates = Vec::new();
        for (at, &(line, to, size)) in rows.iter().enumerate() {
            let nanos = u128::from((to - begin(at)).as_nanos());
            let bits = u128::from(size.as_bit()) * 1_000_000_000;
            if nanos == 0 && bits > 0 {
                return Err(FileError::new(line, "its size came in no time; leave the line out"));
            }
            let rate = (bits + nanos / 2).checked_div(nanos).unwrap_or_default();
            let rate = u64::try_from(rate).ok().filter(|rate| *rate as f64 <= HIGHEST);
            let Some(rate) = rate else {
                let message = format!("its size came at more than {HIGHEST:e} bit/s");
                return Err(FileError::new(line, message));
            };
            rates.push((line, begin(at), Rate::from_bit(rate)));
        }
        opportunities(&rates, end)
    }
}

/// An opportunity each time that the rates add up to the bits of one; the last rate lasts as long as the one
/// before.
fn of_rates(rows: &[Row]) -> Result<DeliveryTrace, FileError> {
    let &[.., (_, before, _), (line, last, _)] = rows else {
        let message = "one line does not say how long its rate lasts; write a second one";
        return Err(FileError::new(rows.first().map(|(line, ..)| *line), message));
    };
    if before == last {
        let message = "this time is that of the line before, so that the last rate would last no time";
        return Err(FileError::new(line, message));
    }
    opportunities(rows, last + (last - before))
}

/// An opportunity each time that the rates add up to the bits of one, each rate from its time on and the last
/// until `end`.
fn opportunities(rows: &[Row], end: Span) -> Result<DeliveryTrace, FileError> {
    let first = rows.first().map_or(end, |(_, first, _)| *first);
    let ends = rows.iter().skip(1).map(|(_, time, _)| *time).chain([end]);
    let mut times = Vec::new();
    // In bits times 10^-9, since the first line: for rates below 2^50 bit/s and times below 2^62 ns.
    let opportunity = u128::from(OPPORTUNITY.bits()) * 1_000_000_000;
    let (mut given, mut next) = (0, opportunity);
    for (&(line, from, rate), to) in rows.iter().zip(ends) {
        let rate = u128::from(rate.as_bit());
        let gives = rate * u128::from((to - from).as_nanos());
        while next <= given + gives {
            if times.len() == MAX_RECORDS {
                let message = format!("up to here there are more than {MAX_RECORDS} packets; cut the trace");
                return Err(FileError::new(line, message));
            }
            let within = u64::try_from((next - given).div_ceil(rate)).unwrap_or(u64::MAX);
            times.push(from - first + Span::from_nanos(within));
            next += opportunity;
        }
        given += gives;
    }
    let message = format!("its rates give less than a packet of {OPPORTUNITY} until it ends");
    DeliveryTrace::with_period(times, end - first).ok_or_else(|| FileError::new(None, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> TraceColumns {
        text.parse().unwrap()
    }

    /// Packets that a trace delivers from its start until these times in ms.
    fn packets<const N: usize>(text: &str, names: &str, at: [u64; N]) -> [u64; N] {
        let trace = delivery_trace(text, Some(&columns(names))).unwrap();
        at.map(|ms| trace.bytes_until(apportion_core::units::Time::from_millis(ms)).get() / OPPORTUNITY.get())
    }

    fn error(text: &str, names: &str) -> String {
        delivery_trace(text, Some(&columns(names))).unwrap_err().to_string()
    }

    #[test]
    fn sizes_came_in_the_interval_before_their_time() {
        // 3008 B in 100 ms, nothing in 50 ms, 6016 B in 100 ms: 2, 0 and 4 opportunities of 1504 B, and so on.
        let expected = [0, 1, 2, 2, 4, 6, 6, 7];
        let at = [49, 50, 100, 174, 200, 250, 299, 300];
        assert_eq!(packets("7 0\n107 3008\n157 0\n257 6016", "ms B", at), expected);
        assert_eq!(packets("59.1,3.008,100\n59.2,0,50\n59.3,6.016,100", "-,kB,+ms", at), expected);
        assert_eq!(
            error("1 5", "ms B"),
            "one line does not say in which time its size came; write a second one"
        );
        assert_eq!(error("1 5\n1 7", "ms B"), "line 2: its size came in no time; leave the line out");
        let columns = |text: &str| text.parse::<TraceColumns>().unwrap_err().to_string();
        assert!(
            columns("+ms Mbit").contains("has lengths of intervals without sizes"),
            "{}",
            columns("+ms Mbit")
        );
        assert!(columns("ms B Mbit").contains("has two columns of rates or sizes"));
        assert!(columns("+B ms").contains("has `+B`, which is no unit"));
    }

    #[test]
    fn a_delivery_trace_has_one_time_a_line() {
        let error = |text| delivery_trace(text, None).unwrap_err().to_string();
        assert_eq!(
            error("1\n\nx\n"),
            "line 3: `x` is not a time in milliseconds; write whole numbers such as 12, or say what the columns are, such \
             as \"s Mbit\""
        );
        assert_eq!(delivery_trace("5\nx", None).unwrap_err().line, Some(2));
        assert!(error("-1").starts_with("line 1: `-1` is not a time"));
        // Otherwise seconds would be read as milliseconds.
        assert!(error("0.5").starts_with("line 1: `0.5` is not a time"));
        assert!(error("2\n1").starts_with("line 2: 1 ms comes after a later time"));
        assert!(error("").contains("there is no line"));
        assert!(error("0\n0\n").contains("ends at 0 ms"));
        assert_eq!(
            delivery_trace("\u{feff}5\r\n\n 5 # at once\n8", None).unwrap().mean().as_bit(),
            4_512_000
        );
    }

    #[test]
    fn times_may_have_another_unit() {
        let at = [4, 5, 7, 8];
        assert_eq!(packets("0.005\n0.005\n0.008\n", "s", at), [0, 2, 2, 3]);
        assert_eq!(packets("5.0;x\n5;y\n8;z", "ms -", at), [0, 2, 2, 3]);
    }

    #[test]
    fn each_rate_lasts_until_the_next_the_last_as_the_one_before() {
        // 12.032 Mb/s are a packet of 1504 B each ms; 6.016 are one each 2 ms; then 0 for 10 ms, and 10 ms of 12.032 again.
        let text = "# time, Mb/s\n0 12.032\n\n0.010\t6.016\n0.02 0\n0.03  12.032\n";
        let at = [0, 1, 10, 12, 20, 30, 31, 40, 41];
        assert_eq!(packets(text, "s Mbit", at), [0, 1, 10, 11, 15, 15, 16, 25, 26]);
        // Times count from the first line on; here a table with names, other units and another order.
        let text = "kbps,who,time\r\n\"12032\",a,1600000000000\r\n0,\"b\",1600000000010\r\n";
        assert_eq!(packets(text, "kbit - ms", [10, 19, 21]), [10, 10, 11]);
    }

    #[test]
    fn a_bad_table_is_refused_with_the_line() {
        assert_eq!(
            error("0 1\n1 x", "s Mbit"),
            "line 2: `x` is not a rate in the unit of `s Mbit`; write a number from 0 to 1000000000"
        );
        assert!(error("0 1\n1 -1", "s Mbit").starts_with("line 2: `-1` is not a rate"));
        assert!(error("0 1\n1 nan", "s Mbit").starts_with("line 2: `nan` is not a rate"));
        assert!(error("x 1\n1 2", "s Mbit").starts_with("line 1: `x` is not a time"));
        assert_eq!(
            error("0 1 2", "s Mbit"),
            "line 1: `0 1 2` has 3 columns, and `s Mbit` 2; write - for those that are not used"
        );
        assert!(error("1 1\n0 1", "s Mbit").starts_with("line 2: `0 1` comes after a later time"));
        assert!(error("0 1", "s Mbit").starts_with("line 1: one line does not say"));
        assert!(error("0 1\n1 1\n1 1", "s Mbit").starts_with("line 3: this time is that of the line before"));
        assert!(error("a b\nc d\n", "s Mbit").starts_with("line 2: `c` is not a time"));
        assert!(error("a b\n", "s Mbit").contains("there is no line"));
        assert!(error("0 0\n1 0", "s Mbit").contains("less than a packet"));
        assert!(error("0 1000\n1000 1000", "s Mbit").starts_with("line 1: up to here there are more than"));
    }

    #[test]
    fn columns_have_one_time_and_at_most_one_rate() {
        let error = |text: &str| text.parse::<TraceColumns>().unwrap_err().to_string();
        assert!(error("Mbit").starts_with("`Mbit` has no column of times; write units"));
        assert!(error("s ms").contains("two columns of times"));
        assert!(error("s Mbit kbit").contains("two columns of rates"));
        assert!(error("s mbps").contains("`mbps`, which is no unit"));
        assert_eq!(columns("s, - ,Mbit").to_string(), "s, - ,Mbit");
    }
}
